#include "kernels/cpu_fast/row_math.h"

#include "kernels/cpu_fast/vector.h"

namespace stepcast::kernels::cpu_fast {

[[STEPCAST_VECTORISED]] void widen_row(const Bf16* from, std::int64_t n, float* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = to_float(from[i]);
}

[[STEPCAST_VECTORISED]] void narrow_row(const float* from, std::int64_t n, Bf16* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = to_bf16(from[i]);
}

[[STEPCAST_VECTORISED]] double sum_of(const float* x, std::int64_t n) {
  return sum_in_lanes(n, [x](std::int64_t i) { return x[i]; });
}

[[STEPCAST_VECTORISED]] double sum_of_squares(const float* x, std::int64_t n) {
  return sum_in_lanes(n, [x](std::int64_t i) { return static_cast<double>(x[i]) * static_cast<double>(x[i]); });
}

[[STEPCAST_VECTORISED]] double dot_of(const float* x, const float* y, std::int64_t n) {
  return sum_in_lanes(n, [x, y](std::int64_t i) { return static_cast<double>(x[i]) * static_cast<double>(y[i]); });
}

[[STEPCAST_VECTORISED]] float largest_of(const float* x, std::int64_t n) {
  constexpr std::int64_t kLanes = 16;
  float lanes[kLanes];
  for (float& lane : lanes) lane = x[0];
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t j = 0; j < kLanes; ++j) lanes[j] = std::max(lanes[j], x[i + j]);
  }
  float largest = lanes[0];
  for (const float lane : lanes) largest = std::max(largest, lane);
  for (; i < n; ++i) largest = std::max(largest, x[i]);
  return largest;
}

[[STEPCAST_VECTORISED]] void add_row(const float* x, std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] += x[i];
}

[[STEPCAST_VECTORISED]] void scale_row(float factor, std::int64_t n, float* x) {
  for (std::int64_t i = 0; i < n; ++i) x[i] *= factor;
}

// Exponentials and their sum are two loops: one for both is not vectorised.
[[STEPCAST_VECTORISED]] double sum_of_exponentials(const float* x, std::int64_t n, float largest) {
  constexpr std::int64_t kPiece = 256;
  float piece[kPiece];
  double total = 0;
  for (std::int64_t first = 0; first < n; first += kPiece) {
    const std::int64_t count = std::min(kPiece, n - first);
    for (std::int64_t i = 0; i < count; ++i) piece[i] = exponential(x[first + i] - largest);
    total += sum_of(piece, count);
  }
  return total;
}

[[STEPCAST_VECTORISED]] double exponentiate(float* x, std::int64_t n, float largest) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = exponential(x[i] - largest);
  return sum_of(x, n);
}

}  // namespace stepcast::kernels::cpu_fast
