#include "base/random.h"

#include <cmath>
#include <numbers>

#include "base/check.h"

namespace stepcast {

std::uint64_t hash_text(std::string_view text, std::uint64_t basis) {
  std::uint64_t hash = basis;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

RandomStream::RandomStream(std::uint64_t seed, std::string_view name) : key_(mix(seed + kGolden) ^ hash_text(name)) {}

std::uint64_t RandomStream::integer_at(std::uint64_t index, std::uint64_t bound) const {
  CHECK(bound > 0);
  return integer_below(index, bound);
}

double RandomStream::normal_at(std::uint64_t index) const {
  const double u = 1.0 - uniform_at(2 * index);  // in (0, 1]
  const double v = uniform_at(2 * index + 1);
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace stepcast
