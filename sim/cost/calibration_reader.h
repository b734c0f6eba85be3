// Reads calibration files.
#pragma once

#include <string>
#include <string_view>

#include "sim/cost/calibration.h"

namespace stepcast::sim {

// `file` names the text in messages. Throws Error (kInput, kUnsupported) with every problem and its location.
Calibration read_calibration(std::string_view text, const std::string& file);

// Whether a device is among those a calibration is for, or the one it describes first. An entry of `devices` is the
// beginning of a name, in any case, up to where a number ends: H20 is not the beginning of H200, MI300 is that of
// MI300X.
bool is_for(const Calibration& calibration, std::string_view device);
bool is_first_for(const Calibration& calibration, std::string_view device);

}  // namespace stepcast::sim
