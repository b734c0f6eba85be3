// Small text tools of the readers: numbers without locale, nearest names, UTF-8 validation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::config {

// Decimal integer with an optional sign, the whole text; nothing when it is not one or does not fit 64 bits.
std::optional<std::int64_t> parse_integer(std::string_view text);
// True for a text that is an integer of any length.
bool looks_like_integer(std::string_view text);
// Finite decimal number, the whole text ("NaN", "inf" and hexadecimal are not).
std::optional<double> parse_number(std::string_view text);

// Shortest decimal text that reads back as the same number; whole numbers below 1e15 without exponent.
std::string number_text(double value);

// Levenshtein distance with swaps of neighbours counted as one (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);
// The candidates close enough to be a typing mistake, nearest first, at most `limit`; equal distances in given order.
std::vector<std::string> nearest_names(std::string_view name, std::span<const std::string> candidates,
                                       std::size_t limit = 3);

// Byte offset of the first byte that is not valid UTF-8, or is a control character other than tab and newline.
std::optional<std::size_t> first_bad_byte(std::string_view text);

// "a, b, c"
std::string join(std::span<const std::string> parts, std::string_view separator = ", ");

// Text for a message: control characters and bytes outside UTF-8 as '?', long text cut.
std::string printable(std::string_view text, std::size_t limit = 60);

}  // namespace stepcast::config
