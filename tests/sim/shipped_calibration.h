// The calibrations that ship, for tests that price with them.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "sim/cost/calibration_reader.h"

namespace stepcast::testing {

inline std::string calibration_file(const std::string& name) {
  return std::string(STEPCAST_SOURCE_DIR) + "/scenarios/calibrations/" + name + ".yaml";
}

inline std::string calibration_text(const std::string& name) {
  std::ifstream file(calibration_file(name));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline sim::Calibration shipped_calibration(const std::string& name) {
  return sim::read_calibration(calibration_text(name), calibration_file(name));
}

}  // namespace stepcast::testing
