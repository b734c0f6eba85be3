// Integer arithmetic as in $(( )): + - * / % and parentheses over numbers and variables.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace stepcast::imports {

// The number of a variable; nothing where it has none.
using NumberOf = std::function<std::optional<std::int64_t>(const std::string& name)>;

struct ArithmeticResult {
  std::optional<std::int64_t> value;  // nothing: not an expression of the kind above, a variable without a number,
                                      // division by zero, or beyond 64 bits
  std::string unknown;                // the first variable without a number
};

ArithmeticResult evaluate_arithmetic(std::string_view text, const NumberOf& number_of);

}  // namespace stepcast::imports
