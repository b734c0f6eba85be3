// Tokens and names of the text form, shared by its writer and its reader.
//
// A line is words, quoted strings and the marks ( ) [ ] , = ; a # outside a string starts a comment. Strings escape the
// quote, the backslash and every byte outside printable ASCII (\xHH), so that a line is always one line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "program/check_parts.h"
#include "program/program.h"

namespace stepcast::program {

inline constexpr std::string_view kTextHeader = "stepcast-program 1";

std::string_view to_string(MatmulForm f);
std::string_view to_string(Reduce r);
std::string_view to_string(ShardKind k);
std::string_view to_string(Init i);

// The string with its quotes and escapes.
std::string quoted(std::string_view s);

struct Token {
  enum class Kind : std::uint8_t { kWord, kString, kMark, kEnd };
  Kind kind = Kind::kEnd;
  std::string text;  // a string without quotes and escapes
};

// Reads one line token by token. Every failure throws Error (kInput) with `where`.
class TokenReader {
 public:
  TokenReader(std::string_view line, Location where);

  bool at_end() const { return peek().kind == Token::Kind::kEnd; }
  const Token& peek() const { return tokens_[next_]; }
  // True, and steps on, where the next token is this mark or word.
  bool accept(std::string_view mark_or_word);
  void expect(std::string_view mark_or_word);
  std::string word();
  std::string string();
  std::int64_t integer();
  std::uint32_t natural();
  std::uint16_t small_natural();
  std::uint64_t long_natural();
  double real();
  // A number behind a letter: v12.
  std::uint32_t number_after(std::string_view prefix);
  // One of the `count` values of E, by name.
  template <class E>
  E one_of(int count, const char* what);
  void expect_end();
  [[noreturn]] void fail(const std::string& message) const;
  // "'abc'" or "the end of the line".
  std::string found() const;

 private:
  void split(std::string_view line);
  std::string read_string(std::string_view line, std::size_t& at);

  Location where_;
  std::vector<Token> tokens_;  // ends with kEnd
  std::size_t next_ = 0;
};

template <class E>
E TokenReader::one_of(int count, const char* what) {
  for (int i = 0; i < count; ++i) {
    if (peek().kind != Token::Kind::kWord || to_string(static_cast<E>(i)) != peek().text) continue;
    ++next_;
    return static_cast<E>(i);
  }
  std::string names;
  for (int i = 0; i < count; ++i) names += (i == 0 ? "" : ", ") + std::string(to_string(static_cast<E>(i)));
  fail("expected " + std::string(what) + " (" + names + "), found " + found());
}

}  // namespace stepcast::program
