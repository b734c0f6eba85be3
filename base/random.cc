#include "base/random.h"

#include <cmath>
#include <numbers>

#include "base/check.h"

namespace stepcast {
namespace {

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;

}  // namespace

std::uint64_t hash_text(std::string_view text, std::uint64_t basis) {
  std::uint64_t hash = basis;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

RandomStream::RandomStream(std::uint64_t seed, std::string_view name) : key_(mix(seed + kGolden) ^ hash_text(name)) {}

std::uint64_t RandomStream::bits_at(std::uint64_t index) const { return mix(mix(key_ + kGolden * (index + 1)) + key_); }

double RandomStream::uniform_at(std::uint64_t index) const {
  return static_cast<double>(bits_at(index) >> 11) * 0x1.0p-53;
}

std::uint64_t RandomStream::integer_at(std::uint64_t index, std::uint64_t bound) const {
  CHECK(bound > 0);
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(bits_at(index)) * bound) >> 64);
}

double RandomStream::normal_at(std::uint64_t index) const {
  const double u = 1.0 - uniform_at(2 * index);  // in (0, 1]
  const double v = uniform_at(2 * index + 1);
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace stepcast
