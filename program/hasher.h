// Hashes of Program parts by content: for the fingerprint and for storing equal parts once.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

#include "program/program.h"

namespace stepcast::program {

// A running 64-bit hash of words; mixes each with a multiply and a rotation (the constants are those of MurmurHash3's
// 64-bit finaliser, Appleby 2011, public domain). Not for adversaries.
class Hasher {
 public:
  void word(std::uint64_t v) {
    v *= 0xff51afd7ed558ccdULL;
    v ^= v >> 32;
    state_ = std::rotl((state_ ^ v) * 0xc4ceb9fe1a85ec53ULL, 27) + 0x52dce729ULL;
  }
  template <class T>
  void number(T v) {
    word(static_cast<std::uint64_t>(v));
  }
  // A zero of either sign hashes alike, as it compares.
  void real(double v) { word(std::bit_cast<std::uint64_t>(v == 0 ? 0.0 : v)); }
  void text(std::string_view s);
  template <class T>
  void maybe(const std::optional<T>& v);
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0x9e3779b97f4a7c15ULL;
};

// With `names`: also the names of slots, temps and buffers, which the fingerprint leaves out.
void add(Hasher& h, const View& v);
void add(Hasher& h, const Segment& s, bool names);
void add(Hasher& h, const RankProgram& r, bool names);

}  // namespace stepcast::program
