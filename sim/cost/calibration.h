// The constants of the analytic cost model. Each has a physical meaning (a kernel's achieved share of a vendor rate, a
// latency, the size at which a curve reaches half its rate) and a source; none is fitted to the duration of a training
// step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace stepcast::sim {

// One pass of fused attention: rate = peak * efficiency * hd/(hd + head_dim_half) * S/(S + sequence_half) * n/(n +
// tiles_half), S the mean keys of a query, n heads x sequences x tiles of 128 queries: what multiprocessors share.
struct AttentionConstants {
  double efficiency = 1;
  double head_dim_half = 0;  // elements
  double sequence_half = 0;  // tokens
  double tiles_half = 0;
  double diagonal_keys = 0;  // tokens: what a query is multiplied with beyond those it sees, under the causal mask
};

// What a group's members move data at, as shares of a scale-up port's vendor rate, once a message is large; and what
// small ones lose: time = latency + bytes / rate x (1 + sqrt(half_size / S)).
struct CollectiveConstants {
  double ring = 1;          // bytes into the port, and out of it
  double tree = 1;          // likewise
  double nvls = 1;          // likewise, with reductions in the switch
  double nvls_payload = 1;  // the buffer's own bytes through such a kernel, whatever the group's size
  double all_to_all = 1;    // bytes out of the port
  double host_link = 1;     // between domains of a node: of the host link's rate
  Duration start;           // on top of the latencies of NCCL's own model
  double half_size = 0;     // bytes; with the LL protocol nothing is lost
};

struct TransferConstants {
  double bandwidth = 1;  // of the link's vendor rate
  Duration latency;
};

struct MessageConstants {
  double bandwidth = 1;      // of the scale-up port's vendor rate; with few links of a mesh, of theirs
  Duration latency;          // within a domain
  Duration network_latency;  // between nodes, on top of the path's own
};

// One line for people: "matmul.bf16", "0.715", what it means, where it comes from.
struct CalibrationConstant {
  std::string name;
  std::string value;
  std::string meaning;
  std::string source;
};

// A long matmul of K reduced elements reaches efficiency * K / (K + k_half) of the peak.
struct MatmulRate {
  double efficiency = 1;
  double k_half = 0;
};

// What a matmul loses beside that (kernel_time.h); as it stands here, nothing.
struct MatmulRefinement {
  double tile_share = 0;      // of what whole tiles of 128 x 128 add to the output, 0 to 1
  double wave_share = 0;      // of what whole waves of such tiles add to that, 0 to 1
  double accumulation = 1;    // times slower where the product is added to its output
  double sustained_drop = 0;  // kernels much longer than the next take 1 + this times as long
  Duration sustained_after;   // at which half of it is lost
};

struct Calibration {
  std::string name;
  std::string stack;
  std::vector<std::string> devices;  // beginnings of the device names it describes: H100, H800

  double matmul_bf16 = 1;  // asymptotic share of the peak rate
  double matmul_fp32 = 1;
  double matmul_k_half = 0;                    // K at which a long matmul reaches half of it
  std::optional<MatmulRate> matmul_fp8;        // of 8-bit operands; none: as bf16
  std::optional<MatmulRate> matmul_fp8_block;  // with a scale for each 128 elements; none: as matmul_fp8
  double matmul_memory = 1;                    // share of the memory rate that its operands reach
  MatmulRefinement matmul_refinement;
  std::optional<Duration> matmul_start;  // start and drain of a matmul; none: kernel_gap
  AttentionConstants attention_forward;
  AttentionConstants attention_backward;

  // Shares of the memory rate, by kind of kernel.
  double elementwise = 1;
  double norm = 1;
  double activation = 1;
  double rotary = 1;
  double embedding = 1;
  double loss = 1;
  double optimizer = 1;
  double multiprocessors = 1;  // share of them that a kernel bound by memory needs at full speed

  Duration kernel_gap;    // start and drain of any kernel
  Duration launch;        // host time per kernel or communication op
  Duration sync_launch;   // host time per event wait
  Duration graph_launch;  // host time per graph

  CollectiveConstants collective;
  MessageConstants p2p;
  TransferConstants copy;  // device <-> host

  std::vector<CalibrationConstant> constants;  // as the file lists them
};

}  // namespace stepcast::sim
