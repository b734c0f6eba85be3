// What `calibrate` says of its fits.
#pragma once

#include <string>
#include <vector>

#include "calibrate/kernel_fit.h"

namespace stepcast::cli {

struct CalibrateAnswer {
  std::string gpu;     // as the tables name it
  std::string device;  // whose vendor rates were taken
  std::string base;
  std::string out;  // empty: not written
  std::vector<calibrate::KernelFit> fits;
  std::vector<std::string> not_taken;  // rows of the tables, by reason
  std::vector<std::string> taken;      // kernels whose constants were written, or would be
};

// Constants with their standard errors, errors before and after, warnings. End in a newline.
std::string calibrate_screen(const CalibrateAnswer& answer);
std::string calibrate_json(const CalibrateAnswer& answer);

}  // namespace stepcast::cli
