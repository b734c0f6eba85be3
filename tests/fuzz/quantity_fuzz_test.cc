// The quantity parser on mutated quantities: a finite value from zero to 9e18, or a problem with help.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

#include "base/quantity.h"
#include "tests/fuzz/mutate.h"

namespace stepcast {
namespace {

constexpr std::array kDimensions = {Dimension::kTime,     Dimension::kBytes,     Dimension::kByteRate,
                                    Dimension::kFlopRate, Dimension::kFrequency, Dimension::kPower,
                                    Dimension::kEnergy,   Dimension::kMoney,     Dimension::kPrice,
                                    Dimension::kTokens,   Dimension::kElements};

TEST(QuantityFuzz, AnswersEveryTextWithAValueOrAProblem) {
  const fuzz::Mutator mutator(
      1, {"450 GB/s", "80 GiB", "2 us", "400 Gb/s", "989.5 TFLOP/s", "1.2e3 ms", "25MiB"},
      {"GB", "Gi", "k", "s", "/s", "e", "E", ".", "1e18", "b", "FLOPS", "W", "USD", "elements"});
  int read = 0;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const std::string text = mutator.text_at(i);
    for (const Dimension dimension : kDimensions) {
      const QuantityResult result = parse_quantity(text, dimension);
      if (!result.ok()) {
        ASSERT_FALSE(result.help.empty()) << "case " << i;
        continue;
      }
      ++read;
      ASSERT_TRUE(std::isfinite(result.value) && result.value >= 0 && result.value <= 9e18) << "case " << i << text;
      // What was read can be written, and at twelve digits reads back as the same quantity.
      const std::string written = format_quantity(result.value, dimension, 12);
      // EiB are written but not read; below one unit the twelve digits are decimals.
      if (dimension == Dimension::kElements || result.value >= 0x1p60 || result.value < 1) continue;
      const QuantityResult again = parse_quantity(written, dimension);
      ASSERT_TRUE(again.ok()) << "case " << i << ": " << written;
      ASSERT_NEAR(again.value, result.value, 1e-10 * result.value) << "case " << i << ": " << text;
    }
  }
  EXPECT_GT(read, 500);  // else the mutations are too wild to test anything but refusals
}

}  // namespace
}  // namespace stepcast
