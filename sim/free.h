// "If free": what a step would take if one kind of time cost nothing.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/exposed.h"

namespace stepcast::sim {

// Communication or copies of the kind the name says, the host's launches, the optimizer's ops; kSlowdown: what ops that
// share a device take from one another; links stay shared.
enum class Free : std::uint8_t { kNothing, kTp, kCp, kEp, kPp, kDp, kGather, kCopy, kHost, kOptimizer, kSlowdown };
inline constexpr int kFreeCount = 11;

constexpr Free free_of(Exposed kind) { return static_cast<Free>(static_cast<int>(Free::kTp) + static_cast<int>(kind)); }
// The kind of communication or copies that it frees; nothing for the others.
constexpr std::optional<Exposed> exposed_of(Free free) {
  if (free < Free::kTp || free > Free::kCopy) return std::nullopt;
  return static_cast<Exposed>(static_cast<int>(free) - static_cast<int>(Free::kTp));
}
static_assert(free_of(Exposed::kGather) == Free::kGather && free_of(Exposed::kCopy) == Free::kCopy);

}  // namespace stepcast::sim
