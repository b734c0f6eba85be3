// Locale-free formatting on fmt.
#include "report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stepcast::report {

std::string significant(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return fmt::format("{}", value);
  const auto decimals_of = [digits](double v) {
    return std::clamp(digits - 1 - static_cast<int>(std::floor(std::log10(std::fabs(v)))), 0, 12);
  };
  // Rounding can carry into one more whole digit (9.996 -> 10.00), which then needs one decimal less.
  const int decimals = decimals_of(value);
  const double scale = std::pow(10.0, decimals);
  return fmt::format("{:.{}f}", value,
                     decimals_of(std::round(value * scale) / scale == 0 ? value : std::round(value * scale) / scale));
}

std::string percent(double fraction) { return fmt::format("{:.1f} %", fraction * 100); }

std::string memory_text(std::int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (std::fabs(value) < 0.1 * 0x1p30) return fmt::format("{:.2f} MiB", value / 0x1p20);
  return fmt::format("{:.1f} GiB", value / 0x1p30);
}

TimeUnit time_unit_for(double seconds) {
  if (seconds >= 1) return {"s", 1};
  if (seconds >= 1e-3) return {"ms", 1e3};
  return {"us", 1e6};
}

std::string wrapped(std::string_view label, std::size_t indent, std::string_view text) {
  std::string result;
  std::string line(label);
  line.resize(std::max(indent, line.size()), ' ');
  bool empty = true;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    if (!empty && line.size() + 1 + word.size() > kColumns) {
      line.erase(line.find_last_not_of(' ') + 1);
      result += line + "\n";
      line.assign(indent, ' ');
      empty = true;
    }
    if (!empty) line += ' ';
    line += word;
    empty = false;
  }
  return result + line + "\n";
}

std::string aligned_rows(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& words) {
  std::vector<std::size_t> widths(words.size(), 0);
  for (const std::vector<std::string>& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row.at(i).size());
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      line += words[i] ? fmt::format("{:<{}}  ", row[i], widths[i]) : fmt::format("{:>{}}  ", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

}  // namespace stepcast::report
