// A calibration as the text of a file that the cost model's reader takes.
#pragma once

#include <string>
#include <vector>

#include "sim/cost/calibration.h"

namespace stepcast::calibrate {

// Puts a constant in place of the one of its name, or behind the last of its group ("attention.forward").
void put_constant(std::vector<sim::CalibrationConstant>& constants, const sim::CalibrationConstant& constant);

// YAML: `comment` (lines without #) on top, then name, stack, devices and constants as `calibration` lists them. What
// sim::read_calibration makes of it has these values.
std::string calibration_text(const sim::Calibration& calibration, const std::string& comment);

}  // namespace stepcast::calibrate
