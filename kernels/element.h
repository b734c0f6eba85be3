// Element types and element functions shared by the kernels of every backend.
//
// bf16 is emulated: 16 bits of storage, the upper half of an IEEE binary32, rounded to nearest with ties to even; all
// arithmetic happens in the accumulate type (float for f32 and bf16, double for f64). Everything here is constexpr and
// needs no library beyond <cmath>, so that device code can include it too.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace stepcast::kernels {

struct Bf16 {
  std::uint16_t bits = 0;
};

// Exact: every bf16 value is a float.
constexpr float to_float(Bf16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }

// Nearest bf16, ties to even; values above the largest finite bf16 by half a step or more become infinite. A NaN keeps
// its sign and upper payload and is made quiet: plain rounding could carry it into infinity or zero.
constexpr Bf16 to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return Bf16{static_cast<std::uint16_t>((bits >> 16) | 0x40U)};
  const std::uint32_t half = 0x7fffU + ((bits >> 16) & 1U);  // just below half a step, or half when the last bit is odd
  return Bf16{static_cast<std::uint16_t>((bits + half) >> 16)};
}

// The type in which elements stored as S are computed and summed.
template <class S>
using Accumulate = std::conditional_t<std::is_same_v<S, double>, double, float>;

// Stored element to accumulate type; exact.
constexpr float widen(float x) { return x; }
constexpr double widen(double x) { return x; }
constexpr float widen(Bf16 x) { return to_float(x); }

// Computed value to storage. A double reaches bf16 through float, so it is rounded twice; only f64 checks do that.
template <class S, class A>
constexpr S narrow(A x) {
  if constexpr (std::is_same_v<S, Bf16>) {
    return to_bf16(static_cast<float>(x));
  } else {
    return static_cast<S>(x);
  }
}

template <class A>
constexpr A sigmoid(A x) {
  return A(1) / (A(1) + std::exp(-x));
}

// SiLU, x * sigmoid(x) (Elfwing, Uchibe, Doya 2017, arXiv:1702.03118, eq. 3) and its derivative (eq. 5).
template <class A>
constexpr A silu(A x) {
  return x * sigmoid(x);
}
template <class A>
constexpr A silu_derivative(A x) {
  const A s = sigmoid(x);
  return s * (A(1) + x * (A(1) - s));
}

// GELU in the tanh form (Hendrycks, Gimpel 2016, arXiv:1606.08415, section 2) and its derivative: with
// u = sqrt(2/pi) (x + 0.044715 x^3), gelu = x (1 + tanh u) / 2.
template <class A>
constexpr A gelu_argument(A x) {
  constexpr double kRoot = 0.79788456080286535588;  // sqrt(2/pi)
  return static_cast<A>(kRoot) * (x + static_cast<A>(0.044715) * x * x * x);
}
template <class A>
constexpr A gelu(A x) {
  return x * (A(1) + std::tanh(gelu_argument(x))) / A(2);
}
template <class A>
constexpr A gelu_derivative(A x) {
  constexpr double kRoot = 0.79788456080286535588;
  const A t = std::tanh(gelu_argument(x));
  const A slope = static_cast<A>(kRoot) * (A(1) + static_cast<A>(3 * 0.044715) * x * x);
  return (A(1) + t) / A(2) + x * (A(1) - t * t) * slope / A(2);
}

// max(x, 0)^2 (So et al. 2021, arXiv:2109.08668, section 4) and its derivative.
template <class A>
constexpr A squared_relu(A x) {
  return x > A(0) ? x * x : A(0);
}
template <class A>
constexpr A squared_relu_derivative(A x) {
  return x > A(0) ? A(2) * x : A(0);
}

// Activations of MLPs of two matrices, for kernels that are templates on one.
struct Gelu {
  template <class A>
  static constexpr A value(A x) {
    return gelu(x);
  }
  template <class A>
  static constexpr A derivative(A x) {
    return gelu_derivative(x);
  }
};
struct SquaredRelu {
  template <class A>
  static constexpr A value(A x) {
    return squared_relu(x);
  }
  template <class A>
  static constexpr A derivative(A x) {
    return squared_relu_derivative(x);
  }
};

}  // namespace stepcast::kernels
