// One step of Adam on one element; source: cpu/optimizer.cc. Templates, so that device code can include them.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/check.h"
#include "program/ops/op.h"

namespace stepcast::kernels {

// The constants of a step, in the type it computes in.
template <class A>
struct AdamStep {
  A beta1, beta2, fresh1, fresh2, unbias1, unbias2, rate, eps;
};

// `step` counts from 1.
template <class A>
AdamStep<A> adam_step(const program::Attributes& a, std::int64_t step) {
  CHECK(step >= 1, step);
  const auto steps = static_cast<double>(step);
  AdamStep<A> s;
  s.beta1 = static_cast<A>(a.beta1);
  s.beta2 = static_cast<A>(a.beta2);
  // 1 - beta is formed in double: in float it would lose half of its digits for beta2 = 0.999.
  s.fresh1 = static_cast<A>(1.0 - a.beta1);
  s.fresh2 = static_cast<A>(1.0 - a.beta2);
  s.unbias1 = static_cast<A>(1.0 / (1.0 - std::pow(a.beta1, steps)));
  s.unbias2 = static_cast<A>(1.0 / (1.0 - std::pow(a.beta2, steps)));
  s.rate = static_cast<A>(a.learning_rate);
  s.eps = static_cast<A>(a.eps);
  return s;
}

template <class A>
struct AdamElement {
  A m, v, master;
};

// `gradient` is clipped already.
template <class A>
constexpr AdamElement<A> adam_update(const AdamStep<A>& s, const AdamElement<A>& before, A gradient) {
  const A m = s.beta1 * before.m + s.fresh1 * gradient;
  const A v = s.beta2 * before.v + s.fresh2 * gradient * gradient;
  return {m, v, before.master - s.rate * (m * s.unbias1) / (std::sqrt(v * s.unbias2) + s.eps)};
}

}  // namespace stepcast::kernels
