// Quantities of the schema: base/quantity's dimensions by their number in config/options.proto.
#pragma once

#include <string_view>

#include "base/error.h"
#include "config/options.pb.h"

namespace stepcast::config {

// The value in the base unit of `dimension` (bytes, seconds, ...), which is not BARE. On a fault adds a problem at
// `where` that says what is wrong and which units work, and returns 0.
double read_quantity(std::string_view text, Dimension dimension, const Location& where, ProblemList& problems);

}  // namespace stepcast::config
