// RMSNorm of one row by one block, forward and backward to the input; formulas and source: cpu/norm.cc. Results may lie
// where operands do: a thread writes only columns that it alone reads.
#pragma once

#include <cmath>

#include "kernels/cuda/reduce.h"

namespace stepcast::kernels::cuda {

// y = x * rstd * weight; returns rstd, on every thread.
template <class S>
__device__ float normalise_row(const S* x, const S* weight, std::int64_t width, double eps, S* y) {
  double squares = 0;
  for (std::int64_t c = threadIdx.x; c < width; c += blockDim.x) {
    const auto value = static_cast<double>(widen(x[c]));
    squares += value * value;
  }
  squares = block_sum(squares);
  const float r = static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(width) + eps));
  for (std::int64_t c = threadIdx.x; c < width; c += blockDim.x) y[c] = narrow<S>(widen(x[c]) * r * widen(weight[c]));
  return r;
}

template <class S>
struct RmsGradientRow {
  const S* dy;
  const S* x;
  const S* weight;
  const S* residual;  // nullptr: none
  float rstd;
  std::int64_t width;
};

// dx = residual + what dy gives through the norm.
template <class S>
__device__ void rms_input_gradient(const RmsGradientRow<S>& row, S* dx) {
  double dot = 0;
  for (std::int64_t c = threadIdx.x; c < row.width; c += blockDim.x) {
    dot += static_cast<double>(widen(row.dy[c]) * widen(row.weight[c])) * static_cast<double>(widen(row.x[c]));
  }
  dot = block_sum(dot);
  const float r = row.rstd;
  const float along_x = static_cast<float>(dot / static_cast<double>(row.width)) * r * r * r;
  for (std::int64_t c = threadIdx.x; c < row.width; c += blockDim.x) {
    const float through_norm = r * widen(row.weight[c]) * widen(row.dy[c]) - along_x * widen(row.x[c]);
    dx[c] = narrow<S>(row.residual != nullptr ? widen(row.residual[c]) + through_norm : through_norm);
  }
}

// What row t adds to the gradient of the weight: dy * x * rstd (column_sums.h).
template <class S>
struct RmsWeightTerm {
  static constexpr int kSums = 1;
  const S* dy;
  const S* x;
  const float* rstd;
  std::int64_t width;

  __device__ void add(std::int64_t t, std::int64_t c, float* sum) const {
    sum[0] += widen(dy[t * width + c]) * widen(x[t * width + c]) * rstd[t];
  }
};

}  // namespace stepcast::kernels::cuda
