#include "base/units.h"

#include <cmath>
#include <limits>
#include <string>

#include "base/check.h"
#include "base/error.h"

namespace stepcast {
namespace {

constexpr std::int64_t kPicosecondsPerSecond = 1'000'000'000'000;

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  const bool overflow = __builtin_add_overflow(a, b, &sum);
  CHECK(!overflow, a, b);
  return sum;
}

std::int64_t checked_subtract(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  const bool overflow = __builtin_sub_overflow(a, b, &difference);
  CHECK(!overflow, a, b);
  return difference;
}

std::int64_t checked_multiply(std::int64_t a, std::int64_t n) {
  std::int64_t product = 0;
  const bool overflow = __builtin_mul_overflow(a, n, &product);
  CHECK(!overflow, a, n);
  return product;
}

__extension__ using Wide = unsigned __int128;

constexpr const char* kTooLong = "less work for it, or rates of the cluster that are not as low";

// Picoseconds for `work` units at `rate` units per second, rounded up, in 128 bits. 1e26 * 1e12 still fits.
Duration work_over_rate(Wide work, double rate, const char* unit) {
  if (work == 0) return Duration(0);
  if (!(rate >= 1) || !std::isfinite(rate) || rate > 9e18) {
    throw Error(ErrorKind::kInput, std::string("a rate of at least 1 ") + unit +
                                       " per second is needed to price work, got " + std::to_string(rate));
  }
  const Wide numerator = work * static_cast<Wide>(kPicosecondsPerSecond);
  // Adding a half and truncating would be off by one above 2^52.
  const Wide denominator = static_cast<Wide>(std::llround(rate));
  const Wide ps = (numerator + denominator - 1) / denominator;
  if (ps > static_cast<Wide>(std::numeric_limits<std::int64_t>::max())) {
    throw Error(ErrorKind::kInput, "one op takes longer than 106 days", {}, {kTooLong});
  }
  return Duration(static_cast<std::int64_t>(ps));
}

}  // namespace

Duration Duration::from_seconds(double s) {
  const double ps = s * static_cast<double>(kPicosecondsPerSecond);
  if (!std::isfinite(ps) || ps >= 9.2e18 || ps <= -9.2e18) {
    throw Error(ErrorKind::kInput, "a duration must be finite and below 106 days, got " + std::to_string(s) + " s");
  }
  return Duration(std::llround(ps));
}

Duration operator+(Duration a, Duration b) { return Duration(checked_add(a.ps, b.ps)); }
Duration operator-(Duration a, Duration b) { return Duration(checked_subtract(a.ps, b.ps)); }
Duration operator*(Duration a, std::int64_t n) { return Duration(checked_multiply(a.ps, n)); }
Duration operator-(SimTime a, SimTime b) { return Duration(checked_subtract(a.ps, b.ps)); }
SimTime operator+(SimTime t, Duration d) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(t.ps, d.ps, &sum))
    throw Error(ErrorKind::kInput, "the step takes longer than 106 days", {}, {kTooLong});
  return SimTime(sum);
}
Bytes operator+(Bytes a, Bytes b) { return Bytes(checked_add(a.count, b.count)); }
Bytes operator-(Bytes a, Bytes b) { return Bytes(checked_subtract(a.count, b.count)); }
Bytes operator*(Bytes a, std::int64_t n) { return Bytes(checked_multiply(a.count, n)); }

Duration duration_of(Bytes work, BytesPerSecond rate) {
  CHECK(work.count >= 0, work.count);
  return work_over_rate(static_cast<Wide>(work.count), rate.value, "byte");
}

Duration duration_of(Flops work, FlopsPerSecond rate) {
  CHECK(work.count >= 0, work.count);
  // A longer step than 106 days is refused anyway.
  if (work.count > 1e26) throw Error(ErrorKind::kInput, "too much work for one op, in FLOP");
  return work_over_rate(static_cast<Wide>(std::ceil(work.count)), rate.value, "FLOP");
}

Duration duration_rounded_up(double seconds) {
  CHECK(!(seconds < 0), seconds);
  const double ps = std::ceil(seconds * static_cast<double>(kPicosecondsPerSecond));
  if (!std::isfinite(ps) || ps >= 9.2e18) {
    throw Error(ErrorKind::kInput, "one op takes longer than 106 days: " + std::to_string(seconds) + " s", {},
                {kTooLong});
  }
  return Duration(static_cast<std::int64_t>(ps));
}

}  // namespace stepcast
