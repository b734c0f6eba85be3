// Quantities to text for people: the prefix is chosen after rounding, so 999.96 ms is "1.00 s", never "1000 ms".
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "base/check.h"
#include "base/quantity.h"

namespace stepcast {
namespace {

// One rung of a ladder of units: used for rounded values below `below` of it.
struct Rung {
  std::string_view symbol;
  double scale;
  double below;
};

// A step time of 90 s reads better in seconds than in minutes, so seconds go up to 1000.
constexpr std::array<Rung, 7> kTime = {{{"ps", 1e-12, 1000},
                                        {"ns", 1e-9, 1000},
                                        {"us", 1e-6, 1000},
                                        {"ms", 1e-3, 1000},
                                        {"s", 1, 1000},
                                        {"h", 3600, 100},
                                        {"d", 86400, 0}}};
constexpr std::array<Rung, 7> kBinary = {{{"", 1, 1024},
                                          {"Ki", 0x1p10, 1024},
                                          {"Mi", 0x1p20, 1024},
                                          {"Gi", 0x1p30, 1024},
                                          {"Ti", 0x1p40, 1024},
                                          {"Pi", 0x1p50, 1024},
                                          {"Ei", 0x1p60, 0}}};
constexpr std::array<Rung, 7> kDecimal = {{{"", 1, 1000},
                                           {"k", 1e3, 1000},
                                           {"M", 1e6, 1000},
                                           {"G", 1e9, 1000},
                                           {"T", 1e12, 1000},
                                           {"P", 1e15, 1000},
                                           {"E", 1e18, 0}}};

std::string fixed(double value, int decimals) {
  std::array<char, 400> text{};  // the largest double has 309 digits before the point
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, decimals);
  CHECK(error == std::errc(), value, decimals);
  return std::string(text.data(), end);
}

// Decimals that leave `digits` significant digits of `value`.
int decimals_for(double value, int digits) {
  if (value == 0) return 0;
  const int whole = static_cast<int>(std::floor(std::log10(value))) + 1;
  return std::clamp(digits - std::max(whole, 1), 0, 12);
}

// `value` rounded as it will be printed.
double rounded(double value, int digits) {
  const double power = std::pow(10.0, decimals_for(value, digits));
  return std::round(value * power) / power;
}

std::string on_ladder(double value, std::span<const Rung> ladder, std::string_view unit, int digits) {
  const auto fits = [&](const Rung& rung) { return rounded(value / rung.scale, digits) < rung.below; };
  auto rung = std::find_if(ladder.begin(), ladder.end(), fits);
  if (rung == ladder.end()) rung = ladder.end() - 1;
  const double mantissa = value / rung->scale;
  // A whole number of the smallest unit (bytes, dollars) has no decimals; 9.996 prints as 10.0, not 10.00.
  const bool whole = rung == ladder.begin() && mantissa == std::round(mantissa);
  const int decimals = whole ? 0 : decimals_for(rounded(mantissa, digits), digits);
  return fixed(mantissa, decimals) + " " + std::string(rung->symbol) + std::string(unit);
}

}  // namespace

std::string format_quantity(double value, Dimension dimension, int digits) {
  CHECK(digits >= 1 && digits <= 12, digits);
  if (!std::isfinite(value)) return "not finite";
  if (value < 0) return "-" + format_quantity(-value, dimension, digits);
  switch (dimension) {
    case Dimension::kTime:
      // Zero would stop at picoseconds.
      return value == 0 ? "0 s" : on_ladder(value, kTime, "", digits);
    case Dimension::kBytes:
      return on_ladder(value, kBinary, "B", digits);
    case Dimension::kByteRate:
      return on_ladder(value, kDecimal, "B/s", digits);
    case Dimension::kFlopRate:
      return on_ladder(value, kDecimal, "FLOP/s", digits);
    case Dimension::kFrequency:
      return on_ladder(value, kDecimal, "Hz", digits);
    case Dimension::kPower:
      return on_ladder(value, kDecimal, "W", digits);
    case Dimension::kEnergy:
      return on_ladder(value, kDecimal, "J", digits);
    case Dimension::kMoney:
      return on_ladder(value, kDecimal, "USD", digits);
    case Dimension::kPrice:
      return on_ladder(value, kDecimal, "$/GPU-h", digits);
    case Dimension::kTokens:
      return on_ladder(value, kDecimal, "tok", digits);
    case Dimension::kElements:
      return format_count(std::llround(value)) + " elements";
  }
  CHECK(false, static_cast<int>(dimension));
}

std::string format_duration(Duration duration, int digits) {
  return format_quantity(duration.seconds(), Dimension::kTime, digits);
}

std::string format_bytes(Bytes bytes, int digits) {
  return format_quantity(static_cast<double>(bytes.count), Dimension::kBytes, digits);
}

std::string format_count(std::int64_t count) {
  std::string text = std::to_string(count);
  const std::ptrdiff_t first = count < 0 ? 1 : 0;
  for (std::ptrdiff_t at = std::ssize(text) - 3; at > first; at -= 3) text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

std::string counted(std::int64_t count, std::string_view noun, std::string_view plural) {
  const std::string number = format_count(count) + " ";
  if (count == 1) return number + std::string(noun);
  return number + (plural.empty() ? std::string(noun) + "s" : std::string(plural));
}

}  // namespace stepcast
