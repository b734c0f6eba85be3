// How many random cases a test tries.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace stepcast::testing {

// All of `full`, or one in STEPCAST_RANDOM_PART of them where that is set: under sanitizers, which look for faults on
// every path rather than for rare inputs, and take ten to twenty times as long.
inline std::uint64_t random_cases(std::uint64_t full) {
  const char* part = std::getenv("STEPCAST_RANDOM_PART");  // NOLINT(concurrency-mt-unsafe): nothing sets it meanwhile
  const long divisor = part == nullptr ? 1 : std::strtol(part, nullptr, 10);
  return std::max<std::uint64_t>(1, full / static_cast<std::uint64_t>(std::max(1L, divisor)));
}

}  // namespace stepcast::testing
