// Tracks as bytes, for a process that hands what its rank did to another one of the same program.
#pragma once

#include <string>
#include <string_view>

#include "trace/trace.h"

namespace stepcast::trace {

std::string pack(const Track& track);
// Throws Error (kExecution) for bytes that pack() has not made.
Track unpack(std::string_view bytes);

}  // namespace stepcast::trace
