// Recursive descent; every step is checked for overflow.
#include "import/shell_arithmetic.h"

#include <cctype>
#include <limits>

#include "config/text.h"

namespace stepcast::imports {
namespace {

constexpr int kDeepestArithmetic = 64;

class Evaluator {
 public:
  Evaluator(std::string_view text, const NumberOf& number_of) : text_(text), number_of_(number_of) {}

  ArithmeticResult run() {
    const std::int64_t value = sum();
    skip_blanks();
    if (failed_ || at_ != text_.size()) return {std::nullopt, unknown_};
    return {value, {}};
  }

 private:
  std::int64_t fail() {
    failed_ = true;
    return 0;
  }

  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::int64_t sum() {
    std::int64_t value = product();
    while (!failed_) {
      std::int64_t result = 0;
      if (take('+')) {
        if (__builtin_add_overflow(value, product(), &result)) return fail();
      } else if (take('-')) {
        if (__builtin_sub_overflow(value, product(), &result)) return fail();
      } else {
        return value;
      }
      value = result;
    }
    return 0;
  }

  std::int64_t product() {
    std::int64_t value = factor();
    while (!failed_) {
      std::int64_t result = 0;
      if (take('*')) {
        if (__builtin_mul_overflow(value, factor(), &result)) return fail();
      } else if (take('/')) {
        result = quotient(value, factor(), false);
      } else if (take('%')) {
        result = quotient(value, factor(), true);
      } else {
        return value;
      }
      value = result;
    }
    return 0;
  }

  std::int64_t quotient(std::int64_t value, std::int64_t by, bool rest) {
    if (failed_ || by == 0 || (by == -1 && value == std::numeric_limits<std::int64_t>::min())) return fail();
    return rest ? value % by : value / by;
  }

  std::int64_t factor() {
    if (++nesting_ > kDeepestArithmetic) return fail();
    const std::int64_t value = atom();
    --nesting_;
    return value;
  }

  std::int64_t atom() {
    if (take('(')) {
      const std::int64_t value = sum();
      return take(')') ? value : fail();
    }
    if (take('-')) {
      std::int64_t result = 0;
      return __builtin_sub_overflow(std::int64_t{0}, factor(), &result) ? fail() : result;
    }
    const bool dollar = take('$');
    const bool brace = dollar && take('{');
    const std::string word = name_or_number();
    if (word.empty() || (brace && !take('}'))) return fail();
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0 && !dollar) {
      const auto number = config::parse_integer(word);
      return number ? *number : fail();
    }
    const auto number = number_of_(word);
    if (!number && unknown_.empty()) unknown_ = word;
    return number ? *number : fail();
  }

  std::string name_or_number() {
    skip_blanks();
    const std::size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_')) {
      ++at_;
    }
    return std::string(text_.substr(start, at_ - start));
  }

  std::string_view text_;
  const NumberOf& number_of_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  bool failed_ = false;
  std::string unknown_;
};

}  // namespace

ArithmeticResult evaluate_arithmetic(std::string_view text, const NumberOf& number_of) {
  return Evaluator(text, number_of).run();
}

}  // namespace stepcast::imports
