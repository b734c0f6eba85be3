// A backward kernel against central differences of its forward kernel, all in double.
//
// L = sum of output * r for fixed random r, so that r is the output's gradient. (L(x+h) - L(x-h)) / 2h with h = 1e-5
// has a truncation error of h^2/6 L''' = 1.7e-11 L''' and a rounding error of about |L| 2^-53 n / h = 1e-9 for the sums
// of some tens of terms used here. Gradients are of the order of 1, so 1e-6 of the largest element leaves room for
// third derivatives far above any here, while a missing or wrong term shows in the first digits.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "tests/kernels/tensors.h"

namespace stepcast::kernels {

inline constexpr DType kF64 = DType::kF64;

inline double dot(const Buffer& a, const Buffer& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) sum += a.at(i) * b.at(i);
  return sum;
}

// `loss` reads x; `gradient` is what the backward kernel says of dL/dx.
inline void expect_gradient(const std::string& name, Buffer& x, const Buffer& gradient,
                            const std::function<double()>& loss) {
  constexpr double kStep = 1e-5;
  double largest = 0;
  for (const double g : gradient.values()) largest = std::max(largest, std::abs(g));
  ASSERT_GT(largest, 1e-3) << name << ": nothing to compare";
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const double at = x.at(i);
    x.set(i, at + kStep);
    const double above = loss();
    x.set(i, at - kStep);
    const double below = loss();
    x.set(i, at);
    ASSERT_NEAR(gradient.at(i), (above - below) / (2 * kStep), 1e-6 * largest) << name << " element " << i;
  }
}

}  // namespace stepcast::kernels
