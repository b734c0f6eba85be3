// Unit types: exactness, rounding up, and the edges of 63 and 128 bits.
#include "base/units.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "base/random.h"

namespace stepcast {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
__extension__ using Wide = __int128;

TEST(DurationOf, IsExactWhereTheQuotientIsWhole) {
  // 450 GB over 450 GB/s is one second, 1e12 ps.
  EXPECT_EQ(duration_of(Bytes(450'000'000'000), BytesPerSecond(450e9)), Duration(1'000'000'000'000));
  // 1 byte at 1 TB/s is one picosecond.
  EXPECT_EQ(duration_of(Bytes(1), BytesPerSecond(1e12)), Duration(1));
  // 2e15 FLOPs at 1e15 FLOP/s are two seconds.
  EXPECT_EQ(duration_of(Flops(2e15), FlopsPerSecond(1e15)), Duration(2'000'000'000'000));
}

TEST(DurationOf, RoundsUp) {
  // 1 byte at 3 TB/s is a third of a picosecond.
  EXPECT_EQ(duration_of(Bytes(1), BytesPerSecond(3e12)), Duration(1));
  // 10 bytes at 3 TB/s are 3.33 ps.
  EXPECT_EQ(duration_of(Bytes(10), BytesPerSecond(3e12)), Duration(4));
  // 9 bytes at 3 TB/s are 3 ps exactly.
  EXPECT_EQ(duration_of(Bytes(9), BytesPerSecond(3e12)), Duration(3));
  EXPECT_EQ(duration_of(Bytes(1), BytesPerSecond(9e18)), Duration(1));
}

TEST(DurationOf, CountsEveryByteAndEveryUnitOfTheRate) {
  // 2^53 + 1 bytes, which no double holds, at 1 TB/s: as many picoseconds.
  EXPECT_EQ(duration_of(Bytes(9'007'199'254'740'993), BytesPerSecond(1e12)), Duration(9'007'199'254'740'993));
  // One byte more than 2040 s at 2^52 + 1 = 4503599627370497 B/s: a picosecond more. At one B/s more it would be none.
  EXPECT_EQ(duration_of(Bytes(9'187'343'239'835'813'881), BytesPerSecond(4503599627370497.0)),
            Duration(2'040'000'000'000'001));
}

TEST(DurationOf, TakesAPartOfAFlopForAWholeOne) {
  EXPECT_EQ(duration_of(Flops(0.5), FlopsPerSecond(1e12)), Duration(1));
  EXPECT_EQ(duration_of(Flops(2.25), FlopsPerSecond(1e12)), Duration(3));
}

TEST(DurationRoundedUp, IsTheNextPicosecondAndRefusesWhatDoesNotFit) {
  EXPECT_EQ(duration_rounded_up(0), Duration(0));
  EXPECT_EQ(duration_rounded_up(0.25e-12), Duration(1));
  EXPECT_EQ(duration_rounded_up(0.25), Duration(250'000'000'000));
  EXPECT_THROW(duration_rounded_up(9.3e6), Error);  // 107 days
  EXPECT_THROW(duration_rounded_up(std::numeric_limits<double>::infinity()), Error);
  EXPECT_THROW(duration_rounded_up(std::numeric_limits<double>::quiet_NaN()), Error);
  EXPECT_THROW(duration_rounded_up(-1), InternalError);
}

TEST(DurationOf, TakesNoTimeForNoWork) {
  EXPECT_EQ(duration_of(Bytes(0), BytesPerSecond(450e9)), Duration(0));
  EXPECT_EQ(duration_of(Flops(0), FlopsPerSecond(0)), Duration(0));
}

TEST(DurationOf, NeedsMoreThan64Bits) {
  // 8e9 bytes * 1e12 ps/s = 8e21 > 2^64 = 1.8e19; over 4e9 B/s it is 2 s.
  EXPECT_EQ(duration_of(Bytes(8'000'000'000), BytesPerSecond(4e9)), Duration(2'000'000'000'000));
  // The largest work and the largest duration: 9.2e6 s at 1e9 B/s.
  EXPECT_EQ(duration_of(Bytes(9'200'000'000'000'000), BytesPerSecond(1e9)), Duration(9'200'000'000'000'000'000));
  // 1e26 FLOPs at 9e18 FLOP/s: 1e38 / 9e18 = 11111111111111111111.1 ps, above 2^63.
  EXPECT_THROW(duration_of(Flops(1e26), FlopsPerSecond(9e18)), Error);
}

TEST(DurationOf, RefusesWhatCannotBePriced) {
  EXPECT_THROW(duration_of(Bytes(1), BytesPerSecond(0)), Error);
  EXPECT_THROW(duration_of(Bytes(1), BytesPerSecond(0.5)), Error);
  EXPECT_THROW(duration_of(Bytes(1), BytesPerSecond(-1)), Error);
  EXPECT_THROW(duration_of(Bytes(1), BytesPerSecond(std::numeric_limits<double>::infinity())), Error);
  EXPECT_THROW(duration_of(Bytes(1), BytesPerSecond(std::numeric_limits<double>::quiet_NaN())), Error);
  EXPECT_THROW(duration_of(Bytes(10'000'000), BytesPerSecond(1)), Error);  // 1e7 s are 116 days
  EXPECT_THROW(duration_of(Flops(2e26), FlopsPerSecond(1e15)), Error);
  EXPECT_THROW(duration_of(Bytes(-1), BytesPerSecond(1e9)), InternalError);
}

// The definition: the smallest t with t * rate >= work * 1e12, checked in integers on seeded random cases.
TEST(DurationOf, IsTheSmallestSufficientTime) {
  const RandomStream stream(1, "duration_of");
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const auto work = static_cast<std::int64_t>(stream.integer_at(2 * i, 1ULL << (1 + i % 40)));
    const auto rate = static_cast<std::int64_t>(1'000'000 + stream.integer_at(2 * i + 1, 1ULL << (1 + i % 42)));
    const Duration t = duration_of(Bytes(work), BytesPerSecond(static_cast<double>(rate)));
    const Wide needed = static_cast<Wide>(work) * 1'000'000'000'000;
    EXPECT_GE(static_cast<Wide>(t.ps) * rate, needed) << work << " at " << rate;
    if (t.ps > 0) {
      EXPECT_LT(static_cast<Wide>(t.ps - 1) * rate, needed) << work << " at " << rate;
    }
  }
}

TEST(DurationOf, NeverShrinksWithMoreWorkOrLessRate) {
  const RandomStream stream(2, "monotone");
  for (std::uint64_t i = 0; i < 500; ++i) {
    const auto work = static_cast<std::int64_t>(stream.integer_at(2 * i, 1ULL << 40));
    const double rate = 1e9 + static_cast<double>(stream.integer_at(2 * i + 1, 1ULL << 40));
    const Duration t = duration_of(Bytes(work), BytesPerSecond(rate));
    EXPECT_LE(t, duration_of(Bytes(work + 1), BytesPerSecond(rate)));
    EXPECT_GE(t, duration_of(Bytes(work), BytesPerSecond(rate + 1)));
  }
}

TEST(Duration, ComesFromSeconds) {
  EXPECT_EQ(Duration::from_seconds(1.5e-12), Duration(2));  // the nearest picosecond, halves away from zero
  EXPECT_EQ(Duration::from_seconds(-1.5e-12), Duration(-2));
  EXPECT_EQ(Duration::from_seconds(0.25), Duration(250'000'000'000));
  EXPECT_THROW(Duration::from_seconds(9.3e6), Error);
  EXPECT_THROW(Duration::from_seconds(std::numeric_limits<double>::quiet_NaN()), Error);
}

TEST(Units, CheckTheirSums) {
  EXPECT_EQ(Duration(2) + Duration(3), Duration(5));
  EXPECT_EQ(SimTime(5) - SimTime(3), Duration(2));
  EXPECT_EQ(SimTime(5) + Duration(3), SimTime(8));
  EXPECT_EQ(Bytes(5) * 3, Bytes(15));
  EXPECT_THROW(Duration(kMax) + Duration(1), InternalError);
  EXPECT_THROW(Duration(-kMax) - Duration(2), InternalError);
  EXPECT_THROW(SimTime(kMax) + Duration(1), Error);  // a step that long is asked for, not a bug
  EXPECT_THROW(Bytes(kMax) + Bytes(1), InternalError);
  EXPECT_THROW(Bytes(kMax) * 2, InternalError);
  EXPECT_EQ(Bytes(kMax) + Bytes(0), Bytes(kMax));
}

TEST(Units, HaveLiterals) {
  using literals::operator""_us;
  using literals::operator""_ms;
  using literals::operator""_GiB;
  EXPECT_EQ(5_us, Duration(5'000'000));
  EXPECT_EQ(1_ms, Duration(1'000'000'000));
  EXPECT_EQ(80_GiB, Bytes(80LL << 30));
}

}  // namespace
}  // namespace stepcast
