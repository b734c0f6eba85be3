// Seeded streams: addressed by index, stable across machines, and as even as they claim.
#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/check.h"

namespace stepcast {
namespace {

TEST(HashText, IsFnv1a) {
  // From the test vectors of the FNV reference code (Landon Curt Noll): the empty text, "a" and "foobar".
  EXPECT_EQ(hash_text(""), 0xcbf29ce484222325ULL);
  EXPECT_EQ(hash_text("a"), 0xaf63dc4c8601ec8cULL);
  EXPECT_EQ(hash_text("foobar"), 0x85944171f73967e8ULL);
}

TEST(RandomStream, DependsOnSeedNameAndIndexOnly) {
  const RandomStream a(7, "weights");
  const RandomStream b(7, "weights");
  EXPECT_EQ(a.bits_at(1000), b.bits_at(1000));
  EXPECT_EQ(a.bits_at(3), b.bits_at(3));  // asked in another order
  EXPECT_NE(a.bits_at(3), a.bits_at(4));
  EXPECT_NE(a.bits_at(3), RandomStream(8, "weights").bits_at(3));
  EXPECT_NE(a.bits_at(3), RandomStream(7, "tokens").bits_at(3));
}

TEST(RandomStream, IsUniform) {
  const RandomStream stream(1, "uniform");
  constexpr std::size_t kBins = 16;
  constexpr std::uint64_t kDraws = 160000;
  std::array<double, kBins> bins{};
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const double u = stream.uniform_at(i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    bins[static_cast<std::size_t>(u * kBins)] += 1;
  }
  // Chi-squared with 15 degrees of freedom: 99.99 % lie below 44.3 (tables of the distribution).
  constexpr double kExpected = static_cast<double>(kDraws) / kBins;
  double chi_squared = 0;
  for (const double count : bins) chi_squared += (count - kExpected) * (count - kExpected) / kExpected;
  EXPECT_LT(chi_squared, 44.3);
}

TEST(RandomStream, HasBitsThatDoNotFollowEachOther) {
  // Neighbouring indices differ in half of the 64 bits: over 10000 pairs the mean is 32 with deviation 4/100.
  const RandomStream stream(3, "bits");
  int flipped = 0;
  for (std::uint64_t i = 0; i < 10000; ++i) flipped += __builtin_popcountll(stream.bits_at(i) ^ stream.bits_at(i + 1));
  EXPECT_NEAR(flipped / 10000.0, 32.0, 5 * 0.04);
}

TEST(RandomStream, DrawsIntegersBelowTheBound) {
  const RandomStream stream(1, "integers");
  std::array<int, 3> seen{};
  for (std::uint64_t i = 0; i < 3000; ++i) ++seen.at(stream.integer_at(i, 3));
  // 1000 each, with a deviation of sqrt(3000 * 1/3 * 2/3) = 26.
  for (const int count : seen) EXPECT_NEAR(count, 1000, 5 * 26);
  EXPECT_EQ(stream.integer_at(5, 1), 0U);
  EXPECT_THROW(stream.integer_at(5, 0), InternalError);
}

TEST(RandomStream, IsNormal) {
  const RandomStream stream(1, "normal");
  constexpr std::uint64_t kDraws = 100000;
  double sum = 0;
  double squares = 0;
  int beyond_two = 0;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const double x = stream.normal_at(i);
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    beyond_two += std::abs(x) > 2 ? 1 : 0;
  }
  // Mean 0 (deviation 1/sqrt(n) = 0.0032), variance 1 (sqrt(2/n) = 0.0045), 4.55 % beyond two (0.066 %).
  EXPECT_NEAR(sum / kDraws, 0.0, 5 * 0.0032);
  EXPECT_NEAR(squares / kDraws, 1.0, 5 * 0.0045);
  EXPECT_NEAR(beyond_two / static_cast<double>(kDraws), 0.0455, 5 * 0.00066);
}

}  // namespace
}  // namespace stepcast
