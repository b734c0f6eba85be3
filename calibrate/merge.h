// A calibration with the constants that fits found, each with where it comes from.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibrate/kernel_fit.h"

namespace stepcast::calibrate {

// A fit with the table it was made from.
struct SourcedFit {
  KernelFit fit;
  std::string file;
  std::vector<std::string> sources;  // of the rows
};

// "fit to 179 rows of gemm.csv (microsoft/vidur ...): error 4.0 % in the median, 13.0 % at the 90th percentile ...".
std::string provenance(const SourcedFit& fitted, const FittedConstant& constant);

// `base` under the name `name`, its constants of the fitted kernels replaced; what a fit of matmuls left out of what
// refines them is taken out. Only constants listed by name are merged (Calibration::constants): the text of
// calibration_text is what counts.
sim::Calibration merge(const sim::Calibration& base, const std::string& name, std::span<const SourcedFit> fits);

}  // namespace stepcast::calibrate
