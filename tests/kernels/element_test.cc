// bf16 emulation against the definition of the format, SiLU against values by hand.
#include "kernels/element.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace stepcast::kernels {
namespace {

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

// bf16 keeps 8 significant bits: neighbours of 1 are 1 + 2^-7 and 1 - 2^-8.
TEST(Bf16, RoundsToTheNearestValue) {
  EXPECT_EQ(to_bf16(1.0F).bits, 0x3f80);
  EXPECT_EQ(to_bf16(1.0F + 0x1p-9F).bits, 0x3f80);    // a quarter step up
  EXPECT_EQ(to_bf16(1.0F + 0x1.8p-8F).bits, 0x3f81);  // three quarters
  EXPECT_EQ(to_bf16(-1.0F - 0x1.8p-8F).bits, 0xbf81);
  EXPECT_EQ(to_bf16(3.14159265F).bits, 0x4049);  // 3.140625 = 0x1.92p1, the next is 3.15625
}

// Ties go to the even last bit: 1 + 2^-8 lies between ...80 and ...81, 1 + 3 * 2^-8 between ...81 and ...82.
TEST(Bf16, BreaksTiesToEven) {
  EXPECT_EQ(to_bf16(1.0F + 0x1p-8F).bits, 0x3f80);
  EXPECT_EQ(to_bf16(1.0F + 0x3p-8F).bits, 0x3f82);
  // The float just above the tie is no tie.
  EXPECT_EQ(to_bf16(from_bits(0x3f808001)).bits, 0x3f81);
}

TEST(Bf16, KeepsInfinityAndSignedZero) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_bf16(infinity).bits, 0x7f80);
  EXPECT_EQ(to_bf16(-infinity).bits, 0xff80);
  EXPECT_EQ(to_bf16(0.0F).bits, 0x0000);
  EXPECT_EQ(to_bf16(-0.0F).bits, 0x8000);
}

// The largest finite bf16 is 0x7f7f; the largest float 0x7f7fffff is nearer to the next step, infinity.
TEST(Bf16, OverflowsToInfinity) {
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(to_bf16(from_bits(0x7f7f7fff)).bits, 0x7f7f);
}

// 0x7f800001 has its only payload bit in the half that is cut off; 0x7fffffff would carry into the sign.
TEST(Bf16, KeepsNaN) {
  for (const std::uint32_t bits : {0x7f800001U, 0x7fffffffU, 0x7fc00000U, 0xff800001U, 0xffffffffU}) {
    const Bf16 rounded = to_bf16(from_bits(bits));
    EXPECT_TRUE(std::isnan(to_float(rounded))) << std::hex << bits;
    EXPECT_EQ(rounded.bits >> 15, bits >> 31) << std::hex << bits;
  }
}

// Denormals round like all others: the smallest bf16 is 2^-133 = 0x0001, half of it is a tie to even, hence zero; the
// largest denormal float is nearest to the smallest normal bf16, 2^-126 = 0x0080.
TEST(Bf16, RoundsDenormals) {
  EXPECT_EQ(to_bf16(0x1p-133F).bits, 0x0001);
  EXPECT_EQ(to_bf16(0x1p-134F).bits, 0x0000);
  EXPECT_EQ(to_bf16(0x1.8p-134F).bits, 0x0001);
  EXPECT_EQ(to_bf16(from_bits(0x007fffff)).bits, 0x0080);
  EXPECT_EQ(to_float(Bf16{0x0001}), 0x1p-133F);
}

// Every bf16 that is not a NaN survives the way through float.
TEST(Bf16, RoundTripsEveryValue) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Bf16 value{static_cast<std::uint16_t>(bits)};
    if (std::isnan(to_float(value))) continue;
    ASSERT_EQ(to_bf16(to_float(value)).bits, bits);
  }
}

// sigmoid(ln 3) = 1 / (1 + 1/3) = 3/4, so silu = 3/4 ln 3 and silu' = 3/4 (1 + ln 3 / 4).
TEST(Silu, MatchesValuesByHand) {
  const double x = std::log(3.0);
  EXPECT_NEAR(silu(x), 0.75 * x, 1e-15);
  EXPECT_NEAR(silu_derivative(x), 0.75 * (1 + x / 4), 1e-15);
  EXPECT_EQ(silu(0.0), 0.0);
  EXPECT_EQ(silu_derivative(0.0), 0.5);
}

TEST(Silu, IsFiniteForLargeArguments) {
  EXPECT_EQ(silu(1000.0F), 1000.0F);
  EXPECT_EQ(silu(-1000.0F), 0.0F);
  EXPECT_EQ(silu_derivative(1000.0F), 1.0F);
  EXPECT_EQ(silu_derivative(-1000.0F), 0.0F);
}

}  // namespace
}  // namespace stepcast::kernels
