// Unit types: time, bytes, FLOPs and their rates, with only the operators that mean something.
//
// Time inside a step is int64 picoseconds (106 days). Work over rate becomes a Duration in one place, duration_of(), in
// 128-bit integers and rounded up, so that no result depends on the order of floating-point sums. Formulas that are not
// a quotient (smooth rooflines) end in duration_rounded_up().
#pragma once

#include <compare>
#include <cstdint>

namespace stepcast {

// A length of time. Unit: picoseconds.
struct Duration {
  std::int64_t ps = 0;

  constexpr Duration() = default;
  constexpr explicit Duration(std::int64_t picoseconds) : ps(picoseconds) {}
  constexpr double seconds() const { return static_cast<double>(ps) * 1e-12; }
  // Nearest picosecond to `s` seconds; throws stepcast::Error when it is not finite or out of range.
  static Duration from_seconds(double s);
  auto operator<=>(const Duration&) const = default;
};

// A point in simulated time. Unit: picoseconds after the start of the step.
struct SimTime {
  std::int64_t ps = 0;

  constexpr SimTime() = default;
  constexpr explicit SimTime(std::int64_t picoseconds) : ps(picoseconds) {}
  auto operator<=>(const SimTime&) const = default;
};

// An amount of memory or traffic. Unit: bytes.
struct Bytes {
  std::int64_t count = 0;

  constexpr Bytes() = default;
  constexpr explicit Bytes(std::int64_t n) : count(n) {}
  auto operator<=>(const Bytes&) const = default;
};

// An amount of arithmetic. Unit: floating-point operations (a multiply-add is two).
struct Flops {
  double count = 0;

  constexpr Flops() = default;
  constexpr explicit Flops(double n) : count(n) {}
  auto operator<=>(const Flops&) const = default;
};

// Unit: bytes per second.
struct BytesPerSecond {
  double value = 0;

  constexpr BytesPerSecond() = default;
  constexpr explicit BytesPerSecond(double v) : value(v) {}
  auto operator<=>(const BytesPerSecond&) const = default;
};

// Unit: floating-point operations per second.
struct FlopsPerSecond {
  double value = 0;

  constexpr FlopsPerSecond() = default;
  constexpr explicit FlopsPerSecond(double v) : value(v) {}
  auto operator<=>(const FlopsPerSecond&) const = default;
};

// Sums are checked: an overflow is a broken invariant (CHECK), except of a point in time, which a long enough step can
// reach: Error (kInput).
Duration operator+(Duration a, Duration b);
Duration operator-(Duration a, Duration b);
Duration operator*(Duration a, std::int64_t n);
Duration operator-(SimTime a, SimTime b);
SimTime operator+(SimTime t, Duration d);
Bytes operator+(Bytes a, Bytes b);
Bytes operator-(Bytes a, Bytes b);
Bytes operator*(Bytes a, std::int64_t n);
constexpr Flops operator+(Flops a, Flops b) { return Flops(a.count + b.count); }
inline Duration& operator+=(Duration& a, Duration b) { return a = a + b; }
inline Bytes& operator+=(Bytes& a, Bytes b) { return a = a + b; }
inline Bytes& operator-=(Bytes& a, Bytes b) { return a = a - b; }
inline Flops& operator+=(Flops& a, Flops b) { return a = a + b; }

// The time `work` takes at `rate`, rounded up to a picosecond. Zero work takes no time. `rate` must be at least one
// unit per second (it is rounded to a whole number of units per second); work must not be negative, and a fraction of a
// FLOP counts as a whole one. Throws Error beyond 106 days.
Duration duration_of(Bytes work, BytesPerSecond rate);
Duration duration_of(Flops work, FlopsPerSecond rate);

// The time of an op that a formula gives in seconds, rounded up to a picosecond; must not be negative. Throws Error
// (kInput) when it is not finite or beyond 106 days.
Duration duration_rounded_up(double seconds);

namespace literals {
constexpr Duration operator""_ps(unsigned long long n) { return Duration(static_cast<std::int64_t>(n)); }
constexpr Duration operator""_ns(unsigned long long n) { return Duration(static_cast<std::int64_t>(n) * 1000); }
constexpr Duration operator""_us(unsigned long long n) { return Duration(static_cast<std::int64_t>(n) * 1000000); }
constexpr Duration operator""_ms(unsigned long long n) { return Duration(static_cast<std::int64_t>(n) * 1000000000); }
constexpr Bytes operator""_B(unsigned long long n) { return Bytes(static_cast<std::int64_t>(n)); }
constexpr Bytes operator""_KiB(unsigned long long n) { return Bytes(static_cast<std::int64_t>(n) << 10); }
constexpr Bytes operator""_MiB(unsigned long long n) { return Bytes(static_cast<std::int64_t>(n) << 20); }
constexpr Bytes operator""_GiB(unsigned long long n) { return Bytes(static_cast<std::int64_t>(n) << 30); }
}  // namespace literals

}  // namespace stepcast
