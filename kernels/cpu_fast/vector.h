// Loops that compilers vectorise as they stand: sums in lanes of their own, and an exponential without branches. To be
// used inside functions marked STEPCAST_VECTORISED, into which they are inlined.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace stepcast::kernels::cpu_fast {

// e^x within 3e-7 of its value, for x in [-87.3, 88]; beyond, what it is at the nearer end. By Cody and Waite's
// reduction, x = n ln 2 + r, and the polynomial of S. Moshier's Cephes library (expf.c, 1989). NaN stays NaN.
[[gnu::always_inline]] inline float exponential(float x) {
  x = x < -87.3F ? -87.3F : x;
  x = x > 88.0F ? 88.0F : x;
  // Added to a float of that size, the bits behind the binary point fall off: rounding to nearest.
  constexpr float kRounder = 12582912.0F;  // 1.5 * 2^23
  const float shifted = x * 1.44269504088896341F + kRounder;
  const float n = shifted - kRounder;
  const float r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + r + 1.0F;
  const auto exponent = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kRounder) + 127U;
  return p * std::bit_cast<float>(exponent << 23U);
}

[[gnu::always_inline]] inline float fast_sigmoid(float x) { return 1.0F / (1.0F + exponential(-x)); }

// The sum of term(0) to term(n - 1) in double: sixteen partial sums, added in order at the end.
template <class Term>
[[gnu::always_inline]] inline double sum_in_lanes(std::int64_t n, const Term& term) {
  constexpr std::int64_t kLanes = 16;
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t j = 0; j < kLanes; ++j) lanes[j] += static_cast<double>(term(i + j));
  }
  double total = 0;
  for (const double lane : lanes) total += lane;
  for (; i < n; ++i) total += static_cast<double>(term(i));
  return total;
}

}  // namespace stepcast::kernels::cpu_fast
