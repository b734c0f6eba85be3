// Small helpers of the screens: numbers in columns, times in one unit per table, lines of at most 120 columns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::report {

// Screens are this wide.
inline constexpr std::size_t kColumns = 120;

// `value` with `digits` significant digits and no exponent: 11.88, 453, 0.0626. Never fewer digits than the whole part
// has.
std::string significant(double value, int digits);

// "45.7 %".
std::string percent(double fraction);

// Bytes in GiB with one decimal, or MiB below 0.1 GiB: "56.3 GiB".
std::string memory_text(std::int64_t bytes);

// The unit a table of times up to `seconds` is printed in.
struct TimeUnit {
  std::string_view symbol;  // s, ms, us
  double per_second = 1;    // 1, 1e3, 1e6
};
TimeUnit time_unit_for(double seconds);

inline constexpr std::size_t kLabelWidth = 9;  // of screens whose lines start with a word such as "memory"

// Breaks `text` at spaces so that no line exceeds the columns; the first line starts with `label`, padded to `indent`,
// the others with spaces. Ends in a newline.
std::string wrapped(std::string_view label, std::size_t indent, std::string_view text);

// Rows of equally many cells as lines: every column as wide as its widest cell, two spaces between them, numbers to the
// right and the columns of `words` to the left.
std::string aligned_rows(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& words);

std::string joined(const std::vector<std::string>& parts, std::string_view separator);

}  // namespace stepcast::report
