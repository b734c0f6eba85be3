// Reads calibration files.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sim/cost/calibration.h"

namespace stepcast::sim {

// `file` names the text in messages. Throws Error (kInput, kUnsupported) with every problem and its location.
Calibration read_calibration(std::string_view text, const std::string& file);

// Which of `calibrations` describes a device best: the one with the longest beginning of its name among its devices,
// the first of equals; none if none has one.
std::optional<std::size_t> calibration_for(std::string_view device, std::span<const Calibration> calibrations);

}  // namespace stepcast::sim
