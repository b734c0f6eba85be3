// Seeded random streams addressed by (seed, name, index): the value at an index does not depend on who asks, in which
// order or on how many ranks. std distributions differ between libraries, so uniform and normal are our own.
//
// Mixing function: the 64-bit finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), applied to a counter.
#pragma once

#include <cstdint>
#include <string_view>

namespace stepcast {

class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view name);

  // 64 random bits for `index`.
  std::uint64_t bits_at(std::uint64_t index) const;
  // Uniform in [0, 1), 53 bits.
  double uniform_at(std::uint64_t index) const;
  // Uniform in [0, bound), bound > 0 (multiply-shift; the bias is below bound / 2^64).
  std::uint64_t integer_at(std::uint64_t index, std::uint64_t bound) const;
  // Standard normal (Box-Muller).
  double normal_at(std::uint64_t index) const;

 private:
  std::uint64_t key_;
};

// FNV-1a, 64 bits: hashes names and text; not for adversaries.
std::uint64_t hash_text(std::string_view text, std::uint64_t basis = 14695981039346656037ULL);

}  // namespace stepcast
