// The constants of the analytic cost model. Each has a physical meaning (a kernel's achieved share of a vendor rate, a
// latency, the size at which a curve reaches half its rate) and a source; none is fitted to the duration of a training
// step.
#pragma once

#include <string>
#include <vector>

#include "base/units.h"

namespace stepcast::sim {

// One pass of fused attention: rate = peak * efficiency * hd/(hd + head_dim_half) * S/(S + sequence_half) * n/(n +
// heads_half).
struct AttentionConstants {
  double efficiency = 1;
  double head_dim_half = 0;  // elements
  double sequence_half = 0;  // tokens
};

// Time = base + steps * step + S * factor / B * (1 + sqrt(half_size / S)).
struct CollectiveConstants {
  double bandwidth = 1;  // bus bandwidth over the link's vendor rate
  Duration base_latency;
  Duration step_latency;  // per step of a ring
  double half_size = 0;   // bytes
};

struct TransferConstants {
  double bandwidth = 1;  // of the link's vendor rate
  Duration latency;
};

// One line for people: "matmul.bf16", "0.715", what it means, where it comes from.
struct CalibrationConstant {
  std::string name;
  std::string value;
  std::string meaning;
  std::string source;
};

struct Calibration {
  std::string name;
  std::string stack;

  double matmul_bf16 = 1;  // asymptotic share of the peak rate
  double matmul_fp32 = 1;
  double matmul_k_half = 0;  // K at which a long matmul reaches half of it
  double matmul_memory = 1;  // share of the memory rate that its operands reach
  AttentionConstants attention_forward;
  AttentionConstants attention_backward;
  double attention_heads_half = 0;  // heads x sequences

  // Shares of the memory rate, by kind of kernel.
  double elementwise = 1;
  double norm = 1;
  double activation = 1;
  double rotary = 1;
  double embedding = 1;
  double loss = 1;
  double optimizer = 1;

  Duration kernel_gap;    // start and drain of any kernel
  Duration launch;        // host time per kernel or communication op
  Duration sync_launch;   // host time per event wait
  Duration graph_launch;  // host time per graph

  CollectiveConstants collective;
  TransferConstants p2p;
  TransferConstants copy;  // device <-> host

  std::vector<CalibrationConstant> constants;  // as the file lists them
};

}  // namespace stepcast::sim
