// How many random cases, or rows of a long table, a test tries.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

namespace stepcast::testing {

// STEPCAST_RANDOM_PART where that is set, else 1: under sanitizers, which look for faults on every path rather than for
// rare inputs, and take ten to twenty times as long, one case in so many is tried.
inline std::uint64_t random_part() {
  const char* part = std::getenv("STEPCAST_RANDOM_PART");  // NOLINT(concurrency-mt-unsafe): nothing sets it meanwhile
  return static_cast<std::uint64_t>(part == nullptr ? 1 : std::max(1L, std::strtol(part, nullptr, 10)));
}

// Of `full` random cases so many are tried.
inline std::uint64_t random_cases(std::uint64_t full) { return std::max<std::uint64_t>(1, full / random_part()); }

// Of a table so many rows are tried: every random_part()-th.
template <class T>
std::vector<T> sampled(std::vector<T> table) {
  std::vector<T> rows;
  for (std::size_t i = 0; i < table.size(); i += random_part()) rows.push_back(std::move(table[i]));
  return rows;
}

}  // namespace stepcast::testing
