// Quantities: every unit, every refusal, and the text people read.
#include "base/quantity.h"

#include <gtest/gtest.h>

#include <clocale>
#include <limits>

namespace stepcast {
namespace {

double value(std::string_view text, Dimension dimension) {
  const QuantityResult result = parse_quantity(text, dimension);
  EXPECT_TRUE(result.ok()) << text << ": " << result.problem;
  return result.value;
}

std::string problem(std::string_view text, Dimension dimension) {
  const QuantityResult result = parse_quantity(text, dimension);
  EXPECT_FALSE(result.ok()) << text << " was read as " << result.value;
  EXPECT_FALSE(result.help.empty()) << text;
  return result.problem;
}

std::string first_help(std::string_view text, Dimension dimension) {
  const QuantityResult result = parse_quantity(text, dimension);
  return result.help.empty() ? "" : result.help.front();
}

TEST(Quantity, ReadsDecimalAndBinaryBytes) {
  EXPECT_EQ(value("80 GiB", Dimension::kBytes), 80.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(value("80 GB", Dimension::kBytes), 80e9);
  EXPECT_EQ(value("25 MiB", Dimension::kBytes), 25.0 * 1024 * 1024);
  EXPECT_EQ(value("1 kB", Dimension::kBytes), 1000.0);
  EXPECT_EQ(value("1 KiB", Dimension::kBytes), 1024.0);
  EXPECT_EQ(value("7 B", Dimension::kBytes), 7.0);
  EXPECT_EQ(value("0.5 TiB", Dimension::kBytes), 0x1p39);
}

TEST(Quantity, DividesBitRatesByEight) {
  EXPECT_EQ(value("450 GB/s", Dimension::kByteRate), 450e9);
  EXPECT_EQ(value("400 Gb/s", Dimension::kByteRate), 50e9);
  EXPECT_EQ(value("400 Gbps", Dimension::kByteRate), 50e9);
  EXPECT_EQ(value("8 kbit/s", Dimension::kByteRate), 1000.0);
  EXPECT_EQ(value("1 GiB/s", Dimension::kByteRate), 0x1p30);
}

TEST(Quantity, ReadsTimesRatesAndTheRest) {
  EXPECT_DOUBLE_EQ(value("2 us", Dimension::kTime), 2e-6);
  EXPECT_DOUBLE_EQ(value("2 \u00b5s", Dimension::kTime), 2e-6);
  EXPECT_DOUBLE_EQ(value("1.2 ms", Dimension::kTime), 1.2e-3);
  EXPECT_EQ(value("3 h", Dimension::kTime), 10800.0);
  EXPECT_EQ(value("2 min", Dimension::kTime), 120.0);
  EXPECT_DOUBLE_EQ(value("989.5 TFLOP/s", Dimension::kFlopRate), 989.5e12);
  EXPECT_DOUBLE_EQ(value("1.98 GHz", Dimension::kFrequency), 1.98e9);
  EXPECT_EQ(value("0.7 kW", Dimension::kPower), 700.0);
  EXPECT_EQ(value("1 kWh", Dimension::kEnergy), 3.6e6);
  EXPECT_EQ(value("2.5 $/GPU-h", Dimension::kPrice), 2.5);
  EXPECT_EQ(value("16 Mitok", Dimension::kTokens), 0x1p24);
  EXPECT_EQ(value("40e6 elements", Dimension::kElements), 40e6);
}

TEST(Quantity, AcceptsMissingAndExtraSpaces) {
  EXPECT_EQ(value("80GiB", Dimension::kBytes), 80.0 * 0x1p30);
  EXPECT_EQ(value("  80 \t GiB ", Dimension::kBytes), 80.0 * 0x1p30);
  EXPECT_EQ(value("0 us", Dimension::kTime), 0.0);
  EXPECT_EQ(value(".5 s", Dimension::kTime), 0.5);
}

TEST(Quantity, RefusesABareNumberAndSaysWhichUnitsWork) {
  EXPECT_EQ(problem("450", Dimension::kByteRate), "\"450\" has no unit");
  const std::string help = first_help("450", Dimension::kByteRate);
  EXPECT_NE(help.find("GB/s"), std::string::npos) << help;
  EXPECT_NE(help.find("Gb/s"), std::string::npos) << help;
}

TEST(Quantity, SuggestsTheSpellingThatDiffersInCase) {
  problem("450 gb/s", Dimension::kByteRate);
  EXPECT_EQ(first_help("450 gb/s", Dimension::kByteRate), "did you mean GB/s or Gb/s?");
  EXPECT_EQ(first_help("2 US", Dimension::kTime), "did you mean us?");
}

TEST(Quantity, RefusesUnitsOfOtherDimensionsAndTrailingText) {
  for (const char* text : {"2 GB", "2 s", "2 GB/s x", "2 GB/ s", "2 Gi", "2 KiFLOP/s", "2 GB/s GB/s", "1,5 GB/s"}) {
    EXPECT_NE(problem(text, Dimension::kByteRate).find("not a unit"), std::string::npos) << text;
  }
  // Binary prefixes belong to bytes, not to bits.
  problem("2 Gib/s", Dimension::kByteRate);
  problem("2 TiHz", Dimension::kFrequency);
}

TEST(Quantity, RefusesWhatIsNotAFiniteNumberFromZeroUp) {
  for (const char* text :
       {"", "  ", "GB", "nan GB", "inf GB", "infinity GB", "-1 GB", "-0 GB", "+1 GB", "x1 GB", "."}) {
    problem(text, Dimension::kBytes);
  }
  EXPECT_EQ(problem("1e400 B", Dimension::kBytes), "\"1e400 B\" is out of range");
  EXPECT_EQ(problem("1e300 TB", Dimension::kBytes), "\"1e300 TB\" is out of range");
  // 9e18 is the last that is accepted; 2^63 is 9.22e18.
  EXPECT_EQ(value("9 EB", Dimension::kBytes), 9e18);
  problem("9.1 EB", Dimension::kBytes);
}

TEST(Quantity, QuotesStrangeTextSafely) {
  EXPECT_EQ(problem("\xff\x01", Dimension::kBytes), "\"??\" does not start with a number");
  EXPECT_LT(problem(std::string(100000, '7') + "e", Dimension::kBytes).size(), 200U);
}

TEST(Quantity, DoesNotDependOnTheLocale) {
  // A German locale would read and write a decimal comma; where it is not installed the test is the plain case.
  const char* chosen = std::setlocale(LC_ALL, "de_DE.UTF-8");
  EXPECT_EQ(value("1.5 kB", Dimension::kBytes), 1500.0);
  EXPECT_EQ(format_quantity(1500, Dimension::kByteRate), "1.50 kB/s");
  if (chosen != nullptr) std::setlocale(LC_ALL, "C");
}

TEST(QuantityFormat, PicksThePrefixAndTheDigits) {
  EXPECT_EQ(format_quantity(56.3 * 0x1p30, Dimension::kBytes), "56.3 GiB");
  EXPECT_EQ(format_quantity(11.88, Dimension::kTime, 4), "11.88 s");
  EXPECT_EQ(format_quantity(2.96e12, Dimension::kByteRate), "2.96 TB/s");
  EXPECT_EQ(format_quantity(453e12, Dimension::kFlopRate), "453 TFLOP/s");
  EXPECT_EQ(format_quantity(2.5e-6, Dimension::kTime), "2.50 us");
  EXPECT_EQ(format_quantity(5400, Dimension::kTime), "1.50 h");
  EXPECT_EQ(format_bytes(Bytes(1023)), "1023 B");
  EXPECT_EQ(format_bytes(Bytes(1024)), "1.00 KiB");
  EXPECT_EQ(format_bytes(Bytes(0)), "0 B");
  EXPECT_EQ(format_duration(Duration(0)), "0 s");
  EXPECT_EQ(format_duration(Duration(-2'500'000), 3), "-2.50 us");
  EXPECT_EQ(format_count(4194304), "4,194,304");
  EXPECT_EQ(format_count(-1000), "-1,000");
  EXPECT_EQ(format_count(-100), "-100");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(counted(1, "key"), "1 key");
  EXPECT_EQ(counted(0, "key"), "0 keys");
  EXPECT_EQ(counted(2000, "class", "classes"), "2,000 classes");
}

TEST(QuantityFormat, ChoosesThePrefixAfterRounding) {
  // 999.96 ms rounds to 1000 ms at three digits, which is 1.00 s.
  EXPECT_EQ(format_quantity(0.99996, Dimension::kTime), "1.00 s");
  EXPECT_EQ(format_quantity(0.99996, Dimension::kTime, 5), "999.96 ms");
  EXPECT_EQ(format_quantity(9.996, Dimension::kTime), "10.0 s");
  // 1023.7 MiB rounds to 1024 MiB.
  EXPECT_EQ(format_quantity(1023.7 * 0x1p20, Dimension::kBytes), "1.00 GiB");
}

TEST(QuantityFormat, SurvivesExtremes) {
  EXPECT_EQ(format_quantity(std::numeric_limits<double>::infinity(), Dimension::kTime), "not finite");
  EXPECT_EQ(format_quantity(1e-15, Dimension::kTime), "0 ps");  // a thousandth of the smallest unit
  EXPECT_FALSE(format_quantity(std::numeric_limits<double>::max(), Dimension::kBytes, 12).empty());
}

}  // namespace
}  // namespace stepcast
