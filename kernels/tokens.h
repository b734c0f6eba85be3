// Synthetic training data: every token is a function of (seed, sample, position), so that any layout of ranks and
// microbatches trains on the same samples. constexpr, so that device code can include it.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace stepcast::kernels {

inline constexpr std::int64_t kMaxSequence = std::int64_t{1} << 20;  // positions of samples never share an index

// The token of sample `sample` at `position` < kMaxSequence, below `vocab`; `stream` is that of (seed, "tokens").
constexpr std::int32_t token_at(const RandomStream& stream, std::int64_t sample, std::int64_t position,
                                std::int64_t vocab) {
  const auto index = static_cast<std::uint64_t>(sample * kMaxSequence + position);
  return static_cast<std::int32_t>(stream.integer_below(index, static_cast<std::uint64_t>(vocab)));
}

}  // namespace stepcast::kernels
