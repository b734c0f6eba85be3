// Reads calibration files.
#pragma once

#include <string>
#include <string_view>

#include "sim/cost/calibration.h"

namespace stepcast::sim {

// `file` names the text in messages. Throws Error (kInput, kUnsupported) with every problem and its location.
Calibration read_calibration(std::string_view text, const std::string& file);

}  // namespace stepcast::sim
