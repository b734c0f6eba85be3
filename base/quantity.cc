// Reading quantities. Writing them is in quantity_format.cc. Unit symbols follow the SI brochure and IEC 80000-13.
#include "base/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace stepcast {
namespace {

enum class Prefixes : std::uint8_t { kNone, kDecimal, kDecimalAndBinary };

struct Unit {
  std::string_view symbol;
  double scale;  // of the symbol without a prefix, in the base unit
  Prefixes prefixes;
};

struct Prefix {
  std::string_view symbol;
  double scale;
  bool binary;
};

constexpr std::array<Prefix, 12> kPrefixes = {{{"", 1, false},
                                               {"k", 1e3, false},
                                               {"M", 1e6, false},
                                               {"G", 1e9, false},
                                               {"T", 1e12, false},
                                               {"P", 1e15, false},
                                               {"E", 1e18, false},
                                               {"Ki", 0x1p10, true},
                                               {"Mi", 0x1p20, true},
                                               {"Gi", 0x1p30, true},
                                               {"Ti", 0x1p40, true},
                                               {"Pi", 0x1p50, true}}};

constexpr std::array<Unit, 9> kTimeUnits = {{{"ps", 1e-12, Prefixes::kNone},
                                             {"ns", 1e-9, Prefixes::kNone},
                                             {"us", 1e-6, Prefixes::kNone},
                                             {"\u00b5s", 1e-6, Prefixes::kNone},
                                             {"ms", 1e-3, Prefixes::kNone},
                                             {"s", 1, Prefixes::kNone},
                                             {"min", 60, Prefixes::kNone},
                                             {"h", 3600, Prefixes::kNone},
                                             {"d", 86400, Prefixes::kNone}}};
constexpr std::array<Unit, 1> kByteUnits = {{{"B", 1, Prefixes::kDecimalAndBinary}}};
constexpr std::array<Unit, 4> kByteRateUnits = {{{"B/s", 1, Prefixes::kDecimalAndBinary},
                                                 {"b/s", 0.125, Prefixes::kDecimal},
                                                 {"bit/s", 0.125, Prefixes::kDecimal},
                                                 {"bps", 0.125, Prefixes::kDecimal}}};
constexpr std::array<Unit, 2> kFlopRateUnits = {{{"FLOP/s", 1, Prefixes::kDecimal}, {"FLOPS", 1, Prefixes::kDecimal}}};
constexpr std::array<Unit, 1> kFrequencyUnits = {{{"Hz", 1, Prefixes::kDecimal}}};
constexpr std::array<Unit, 2> kPowerUnits = {{{"W", 1, Prefixes::kDecimal}, {"mW", 1e-3, Prefixes::kNone}}};
constexpr std::array<Unit, 2> kEnergyUnits = {{{"J", 1, Prefixes::kDecimal}, {"Wh", 3600, Prefixes::kDecimal}}};
constexpr std::array<Unit, 1> kMoneyUnits = {{{"USD", 1, Prefixes::kDecimal}}};
constexpr std::array<Unit, 1> kPriceUnits = {{{"$/GPU-h", 1, Prefixes::kNone}}};
constexpr std::array<Unit, 1> kTokenUnits = {{{"tok", 1, Prefixes::kDecimalAndBinary}}};
constexpr std::array<Unit, 1> kElementUnits = {{{"elements", 1, Prefixes::kNone}}};

std::span<const Unit> units_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::kTime:
      return kTimeUnits;
    case Dimension::kBytes:
      return kByteUnits;
    case Dimension::kByteRate:
      return kByteRateUnits;
    case Dimension::kFlopRate:
      return kFlopRateUnits;
    case Dimension::kFrequency:
      return kFrequencyUnits;
    case Dimension::kPower:
      return kPowerUnits;
    case Dimension::kEnergy:
      return kEnergyUnits;
    case Dimension::kMoney:
      return kMoneyUnits;
    case Dimension::kPrice:
      return kPriceUnits;
    case Dimension::kTokens:
      return kTokenUnits;
    case Dimension::kElements:
      return kElementUnits;
  }
  CHECK(false, static_cast<int>(dimension));
}

bool allowed(const Prefix& prefix, Prefixes prefixes) {
  if (prefix.symbol.empty()) return true;
  return prefix.binary ? prefixes == Prefixes::kDecimalAndBinary : prefixes != Prefixes::kNone;
}

// Calls visit(spelling, scale) for every spelling of every unit of `dimension`.
template <class Visit>
void for_each_spelling(Dimension dimension, Visit visit) {
  for (const Unit& unit : units_of(dimension)) {
    for (const Prefix& prefix : kPrefixes) {
      if (allowed(prefix, unit.prefixes)) {
        visit(std::string(prefix.symbol) + std::string(unit.symbol), prefix.scale * unit.scale);
      }
    }
  }
}

std::optional<double> scale_of(std::string_view unit, Dimension dimension) {
  std::optional<double> found;
  for_each_spelling(dimension, [&](const std::string& spelling, double scale) {
    if (spelling == unit) found = scale;
  });
  return found;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

// "GB/s or Gb/s" for "gb/s": the spellings that differ in case only; empty when there is none.
std::string same_but_for_case(std::string_view unit, Dimension dimension) {
  std::string names;
  for_each_spelling(dimension, [&](const std::string& spelling, double) {
    if (lower(spelling) == lower(unit)) names += (names.empty() ? "" : " or ") + spelling;
  });
  return names;
}

bool is_space(char c) { return c == ' ' || c == '\t'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

QuantityResult refused(std::string problem, Dimension dimension) {
  return {.value = 0, .problem = std::move(problem), .help = {"write " + std::string(expected_text(dimension))}};
}

// Shortened and in printable ASCII: the text may come from a file that is not even text.
std::string quoted(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string shown(text.substr(0, kLongest));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return "\"" + shown + (text.size() > kLongest ? "...\"" : "\"");
}

QuantityResult unknown_unit(std::string_view text, std::string_view unit, Dimension dimension) {
  QuantityResult result = refused(quoted(text) + ": " + quoted(unit) + " is not a unit of this quantity", dimension);
  const std::string names = same_but_for_case(unit, dimension);
  if (!names.empty()) result.help.insert(result.help.begin(), "did you mean " + names + "?");
  return result;
}

}  // namespace

QuantityResult parse_quantity(std::string_view text, Dimension dimension) {
  constexpr double kLargest = 9e18;
  const std::string_view body = trimmed(text);
  if (body.empty()) return refused("a quantity is missing here", dimension);
  if (body.front() == '-') return refused(quoted(text) + " is negative", dimension);
  // Also keeps inf and nan out, which from_chars would read.
  const bool digit = body.front() >= '0' && body.front() <= '9';
  if (!digit && body.front() != '.') return refused(quoted(text) + " does not start with a number", dimension);

  double number = 0;
  const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), number);
  if (error == std::errc::result_out_of_range) return refused(quoted(text) + " is out of range", dimension);
  if (error != std::errc()) return refused(quoted(text) + " does not start with a number", dimension);

  const std::string_view unit = trimmed(body.substr(static_cast<std::size_t>(end - body.data())));
  if (unit.empty()) return refused(quoted(text) + " has no unit", dimension);
  const std::optional<double> scale = scale_of(unit, dimension);
  if (!scale) return unknown_unit(text, unit, dimension);
  const double value = number * *scale;
  if (!std::isfinite(value) || value > kLargest) return refused(quoted(text) + " is out of range", dimension);
  return {.value = value, .problem = {}, .help = {}};
}

std::string_view expected_text(Dimension dimension) {
  switch (dimension) {
    case Dimension::kTime:
      return "a time, such as 2 us (ps, ns, us, ms, s, min, h, d)";
    case Dimension::kBytes:
      return "an amount of memory, such as 80 GiB (B, kB, MB, GB, TB, or KiB, MiB, GiB, TiB)";
    case Dimension::kByteRate:
      return "a bandwidth, such as 450 GB/s or 400 Gb/s (bytes: B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, "
             "TiB/s; bits: b/s, kb/s, Mb/s, Gb/s, Tb/s)";
    case Dimension::kFlopRate:
      return "an arithmetic rate, such as 989.5 TFLOP/s (FLOP/s, GFLOP/s, TFLOP/s, PFLOP/s)";
    case Dimension::kFrequency:
      return "a frequency, such as 1.98 GHz (Hz, kHz, MHz, GHz)";
    case Dimension::kPower:
      return "a power, such as 700 W (mW, W, kW, MW)";
    case Dimension::kEnergy:
      return "an energy, such as 1.5 MJ (J, kJ, MJ, GJ, or Wh, kWh, MWh)";
    case Dimension::kMoney:
      return "an amount of money, such as 2.5 USD (USD, kUSD, MUSD)";
    case Dimension::kPrice:
      return "a price, such as 2.5 $/GPU-h";
    case Dimension::kTokens:
      return "a number of tokens, such as 4 Mtok or 16 Mitok (tok, ktok, Mtok, Gtok, or Kitok, Mitok, Gitok)";
    case Dimension::kElements:
      return "a number of elements, such as 40e6 elements";
  }
  CHECK(false, static_cast<int>(dimension));
}

}  // namespace stepcast
