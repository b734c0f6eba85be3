// CHECK: a broken invariant of ours. On in release. It throws InternalError, which cli/ reports as a bug (exit 70).
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace stepcast {

// A defect of stepcast itself, never of its input.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {

template <class... Values>
[[noreturn, gnu::cold, gnu::noinline]] void check_failed(const char* file, int line, const char* condition,
                                                         const Values&... values) {
  std::ostringstream text;
  text << file << ":" << line << ": CHECK(" << condition << ") failed";
  if constexpr (sizeof...(values) > 0) {
    text << ", with";
    ((text << ' ' << values), ...);
  }
  throw InternalError(text.str());
}

}  // namespace detail
}  // namespace stepcast

// CHECK(condition, value...): the values are printed when the condition does not hold.
#define CHECK(condition, ...)                                                                      \
  do {                                                                                             \
    if (!(condition)) [[unlikely]] {                                                               \
      ::stepcast::detail::check_failed(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
    }                                                                                              \
  } while (false)
