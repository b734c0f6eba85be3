// The angles of rotary position embedding and the turn of a pair; formulas and their source: cpu/rotary.cc. Templates,
// so that device code can include them.
#pragma once

#include <cmath>
#include <cstdint>

namespace stepcast::kernels {

// theta^(-2 pair / turned): the angle between neighbouring positions.
template <class A>
constexpr A rotary_frequency(A theta, std::int64_t pair, std::int64_t turned) {
  return std::pow(theta, A(-2) * static_cast<A>(pair) / static_cast<A>(turned));
}

template <class A>
struct Turn {
  A cosine;
  A sine;
};

// `direction` is +1 forward and -1 backward. Angles are in double whatever A is: a float keeps no fraction of a large
// one.
template <class A>
constexpr Turn<A> rotary_turn(double direction, std::int64_t position, double frequency) {
  const double angle = direction * static_cast<double>(position) * frequency;
  return {static_cast<A>(std::cos(angle)), static_cast<A>(std::sin(angle))};
}

template <class A>
struct Pair {
  A x;
  A y;
};

template <class A>
constexpr Pair<A> turned_pair(const Pair<A>& p, const Turn<A>& turn) {
  return {p.x * turn.cosine - p.y * turn.sine, p.y * turn.cosine + p.x * turn.sine};
}

}  // namespace stepcast::kernels
