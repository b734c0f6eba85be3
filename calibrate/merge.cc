#include "calibrate/merge.h"

#include <cmath>
#include <cstdio>

#include "calibrate/calibration_writer.h"
#include "config/text.h"

namespace stepcast::calibrate {
namespace {

std::string percent_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

// The folders above a file are the machine's, not the data's.
std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::string provenance(const SourcedFit& fitted, const FittedConstant& constant) {
  if (!constant.derivation.empty()) return constant.derivation;
  const KernelFit& f = fitted.fit;
  std::string text = "fit to the " + std::to_string(f.rows) + " rows of " + f.kernel + " of this device in " +
                     file_name(fitted.file) + " (" + config::join(fitted.sources, "; ") + "): error " +
                     percent_text(f.after.median) + " in the median, " + percent_text(f.after.p90) +
                     " at the 90th percentile, of rows left out " + percent_text(f.left_out.median) + " and " +
                     percent_text(f.left_out.p90);
  if (constant.standard_error > 0 && std::isfinite(constant.standard_error)) {
    text += "; standard error of the value " + percent_text(constant.standard_error);
  } else {
    text += "; the rows do not tell it more closely than its range";
  }
  return text;
}

sim::Calibration merge(const sim::Calibration& base, const std::string& name, std::span<const SourcedFit> fits) {
  sim::Calibration merged = base;
  merged.name = name;
  for (const SourcedFit& fitted : fits) {
    if (fitted.fit.kernel == "matmul") {
      std::erase_if(merged.constants, [](const auto& c) { return is_matmul_refinement(c.name); });
    }
    for (const FittedConstant& c : fitted.fit.constants) {
      put_constant(merged.constants, {c.name, c.value, c.meaning, provenance(fitted, c)});
    }
  }
  return merged;
}

}  // namespace stepcast::calibrate
