// The kinds of communication and copies that a rank can be exposed to, and which one an op is.
#pragma once

#include <cstdint>
#include <optional>

#include "program/program.h"

namespace stepcast::sim {

enum class Exposed : std::uint8_t { kTp, kCp, kEp, kPp, kDp, kGather, kCopy };
inline constexpr int kExposedCount = 7;

// The kind of communication that runs on a stream; nothing for the compute stream.
std::optional<Exposed> exposed_on(program::Stream stream);

// Of a communication op: by its stream; on the compute stream, which says nothing, by the name of its role.
Exposed exposed_by(const program::Program& p, const program::Op& op);

}  // namespace stepcast::sim
