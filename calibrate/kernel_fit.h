// Fits the cost model's constants of matmuls and of fused attention to measured kernels. What is evaluated are the
// functions that price ops (sim/cost/kernel_time.h), with vendor rates of a cluster's device.
#pragma once

#include <string>
#include <vector>

#include "calibrate/fit.h"
#include "calibrate/kernel_rows.h"
#include "sim/cost/calibration.h"
#include "topology/cluster.h"

namespace stepcast::calibrate {

struct FittedConstant {
  std::string name;           // matmul.bf16
  std::string before;         // as the base calibration writes it; empty: it has none
  std::string value;          // as a calibration file writes it
  std::string meaning;        // with its unit
  double standard_error = 0;  // relative; infinity where rows do not tell
  std::string derivation;     // of a constant that is not fitted; else empty
};

struct KernelFit {
  std::string kernel;  // "matmul", "FA3 fwd"
  std::vector<FittedConstant> constants;
  std::size_t rows = 0;
  ErrorQuantiles before;    // with the base calibration as it is
  ErrorQuantiles after;     // with the values as written
  ErrorQuantiles left_out;  // of rows predicted by fits that did not see them
  std::vector<std::string> warnings;
  std::vector<double> log_ratios;  // of the rows, with the values as written
};

// What a calibration can leave out of a matmul's constants, and a fit too. The start replaces the gap of all kernels.
bool is_matmul_refinement(const std::string& name);

// bf16, k_half, memory and those of what refines them that the rows tell (at most nine constants); left out are whole
// (N, K), in five parts. Throws Error (kInput) for no more rows than constants.
KernelFit fit_matmul(const KernelRows<MatmulRow>& rows, const sim::Calibration& base,
                     const topology::DeviceSpec& device);

// One fit for each kernel of the table ("FA3 fwd"), in order of name; left out is every third row, in three turns. The
// constants are named attention.forward.* or, of backward passes, attention.backward.*; of both passes in one rate
// "fwd+bwd" they are those of the common rate, which a calibration has no place for: they have no name's beginning.
// Kernels of fewer than five rows are left out of the result.
std::vector<KernelFit> fit_attention(const KernelRows<AttentionRow>& rows, const sim::Calibration& base,
                                     const topology::DeviceSpec& device);

}  // namespace stepcast::calibrate
