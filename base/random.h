// Seeded random streams addressed by (seed, name, index): the value at an index does not depend on who asks, in which
// order or on how many ranks. std distributions differ between libraries, so uniform and normal are our own.
//
// Mixing function: the 64-bit finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), applied to a counter. What
// draws is constexpr and in the header, so that device code can include it.
#pragma once

#include <cstdint>
#include <string_view>

namespace stepcast {

class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view name);

  // 64 random bits for `index`.
  constexpr std::uint64_t bits_at(std::uint64_t index) const { return mix(mix(key_ + kGolden * (index + 1)) + key_); }
  // Uniform in [0, 1), 53 bits.
  constexpr double uniform_at(std::uint64_t index) const {
    return static_cast<double>(bits_at(index) >> 11) * 0x1.0p-53;
  }
  // Uniform in [0, bound), bound > 0 (multiply-shift; the bias is below bound / 2^64). The first form checks the bound.
  std::uint64_t integer_at(std::uint64_t index, std::uint64_t bound) const;
  constexpr std::uint64_t integer_below(std::uint64_t index, std::uint64_t bound) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(bits_at(index)) * bound) >> 64);
  }
  // Standard normal (Box-Muller).
  double normal_at(std::uint64_t index) const;

 private:
  static constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
  static constexpr std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  std::uint64_t key_;
};

// FNV-1a, 64 bits: hashes names and text; not for adversaries.
std::uint64_t hash_text(std::string_view text, std::uint64_t basis = 14695981039346656037ULL);

}  // namespace stepcast
