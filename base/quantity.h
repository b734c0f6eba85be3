// Quantities as people write them: "450 GB/s", "80 GiB", "2 us", "989.5 TFLOP/s", and back to text.
//
// Strict: a bare number where a unit belongs is an error that says which units work, for a bare 900 of bandwidth cannot
// be told from bits, GB or GiB. k M G T P E are powers of ten, Ki Mi Gi Ti Pi powers of 1024, B is a byte and b a bit.
// Case matters: Gb/s and GB/s differ by eight. Nothing here depends on the locale.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/units.h"

namespace stepcast {

// What a quantity measures; the base unit its value is in stands beside it.
enum class Dimension : std::uint8_t {
  kTime,       // seconds
  kBytes,      // bytes
  kByteRate,   // bytes per second; bit rates are accepted and divided by 8
  kFlopRate,   // floating-point operations per second
  kFrequency,  // hertz
  kPower,      // watts
  kEnergy,     // joules
  kMoney,      // US dollars
  kPrice,      // US dollars per GPU hour
  kTokens,     // tokens; Ki, Mi, Gi are powers of 1024 here too
  kElements,   // a number of tensor elements
};

// A value in the base unit, or what is wrong with the text and what would work (one line each).
struct QuantityResult {
  double value = 0;
  std::string problem;  // empty: the text was good
  std::vector<std::string> help;

  bool ok() const { return problem.empty(); }
};

// Reads `text` as a quantity of `dimension`. Finite and not negative; at most 9e18 in the base unit, so that bytes and
// rates fit 63 bits (2^63 = 9.22e18).
QuantityResult parse_quantity(std::string_view text, Dimension dimension);

// "a time, such as 2 us (ps, ns, us, ms, s, min, h, d)": ends a sentence that says what was expected.
std::string_view expected_text(Dimension dimension);

// Human text in the prefix that leaves 1 to 999 before the point (1 to 1023 for bytes, which use Ki, Mi, ...), with
// `digits` significant digits: 56.3 GiB, 11.9 s, 2.96 TB/s. Never fewer digits than the whole part has.
std::string format_quantity(double value, Dimension dimension, int digits = 3);
std::string format_duration(Duration duration, int digits = 4);
std::string format_bytes(Bytes bytes, int digits = 3);

// 4194304 as "4,194,304".
std::string format_count(std::int64_t count);

// "1 key", "2,000 keys"; `plural` where an s does not make it.
std::string counted(std::int64_t count, std::string_view noun, std::string_view plural = {});

}  // namespace stepcast
