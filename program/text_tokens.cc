// Splitting lines into tokens, numbers without locale, and the names the text form adds to those of types.h and op.h.
#include "program/text_tokens.h"

#include <charconv>
#include <limits>

namespace stepcast::program {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::string_view kMarks = "()[],=";

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_printable(char c) { return c >= ' ' && c <= '~'; }

}  // namespace

std::string_view to_string(MatmulForm f) { return f == MatmulForm::kNT ? "NT" : f == MatmulForm::kNN ? "NN" : "TN"; }
std::string_view to_string(Reduce r) { return r == Reduce::kSum ? "sum" : "max"; }
std::string_view to_string(Init i) { return i == Init::kNormal ? "normal" : i == Init::kOnes ? "ones" : "zeros"; }

std::string_view to_string(ShardKind k) {
  switch (k) {
    case ShardKind::kWeight:
      return "weight";
    case ShardKind::kMaster:
      return "master";
    case ShardKind::kMoment1:
      return "moment1";
    case ShardKind::kMoment2:
      return "moment2";
    case ShardKind::kGradient:
      return "gradient";
  }
  return "?";
}

std::string quoted(std::string_view s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (is_printable(c)) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += "\\x";
      out += kHexDigits[byte >> 4];
      out += kHexDigits[byte & 15];
    }
  }
  return out + "\"";
}

TokenReader::TokenReader(std::string_view line, Location where) : where_(std::move(where)) { split(line); }

void TokenReader::split(std::string_view line) {
  std::size_t at = 0;
  while (at < line.size() && line[at] != '#') {
    const char c = line[at];
    if (is_space(c)) {
      ++at;
    } else if (c == '"') {
      tokens_.push_back({Token::Kind::kString, read_string(line, at)});
    } else if (kMarks.find(c) != std::string_view::npos) {
      tokens_.push_back({Token::Kind::kMark, std::string(1, c)});
      ++at;
    } else if (!is_printable(c)) {
      fail("a byte that is not printable ASCII");
    } else {
      const std::size_t begin = at;
      while (at < line.size() && is_printable(line[at]) && line[at] != ' ' && line[at] != '"' && line[at] != '#' &&
             kMarks.find(line[at]) == std::string_view::npos) {
        ++at;
      }
      tokens_.push_back({Token::Kind::kWord, std::string(line.substr(begin, at - begin))});
    }
  }
  tokens_.push_back({});
}

// `at` is the opening quote; afterwards the position behind the closing one.
std::string TokenReader::read_string(std::string_view line, std::size_t& at) {
  std::string out;
  for (++at; at < line.size(); ++at) {
    const char c = line[at];
    if (c == '"') {
      ++at;
      return out;
    }
    if (!is_printable(c)) fail("a string with a byte that is not printable ASCII; write it as \\xHH");
    if (c != '\\') {
      out += c;
      continue;
    }
    if (at + 1 < line.size() && (line[at + 1] == '"' || line[at + 1] == '\\')) {
      out += line[++at];
    } else if (at + 3 < line.size() && line[at + 1] == 'x') {
      const std::size_t high = kHexDigits.find(line[at + 2]);
      const std::size_t low = kHexDigits.find(line[at + 3]);
      if (high == std::string_view::npos || low == std::string_view::npos) fail("a malformed \\xHH in a string");
      out += static_cast<char>(high * 16 + low);
      at += 3;
    } else {
      fail("an unknown escape in a string");
    }
  }
  fail("a string that does not end on its line");
}

void TokenReader::fail(const std::string& message) const { throw Error(ErrorKind::kInput, message, where_); }

std::string TokenReader::found() const { return at_end() ? "the end of the line" : quoted(peek().text); }

bool TokenReader::accept(std::string_view mark_or_word) {
  if (peek().kind == Token::Kind::kString || at_end() || peek().text != mark_or_word) return false;
  ++next_;
  return true;
}

void TokenReader::expect(std::string_view mark_or_word) {
  if (!accept(mark_or_word)) fail("expected '" + std::string(mark_or_word) + "', found " + found());
}

std::string TokenReader::word() {
  if (peek().kind != Token::Kind::kWord) fail("expected a word, found " + found());
  return tokens_[next_++].text;
}

std::string TokenReader::string() {
  if (peek().kind != Token::Kind::kString) fail("expected a quoted string, found " + found());
  return tokens_[next_++].text;
}

namespace {

template <class T>
std::optional<T> number_from(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::int64_t TokenReader::integer() {
  const auto value = number_from<std::int64_t>(peek().kind == Token::Kind::kWord ? peek().text : "");
  if (!value) fail("expected an integer, found " + found());
  ++next_;
  return *value;
}

std::uint32_t TokenReader::natural() {
  const auto value = number_from<std::uint32_t>(peek().kind == Token::Kind::kWord ? peek().text : "");
  if (!value) fail("expected a number below 2^32, found " + found());
  ++next_;
  return *value;
}

std::uint64_t TokenReader::long_natural() {
  const auto value = number_from<std::uint64_t>(peek().kind == Token::Kind::kWord ? peek().text : "");
  if (!value) fail("expected a number below 2^64, found " + found());
  ++next_;
  return *value;
}

std::uint16_t TokenReader::small_natural() {
  const std::uint32_t value = natural();
  if (value > std::numeric_limits<std::uint16_t>::max()) fail("expected a number below 65536");
  return static_cast<std::uint16_t>(value);
}

double TokenReader::real() {
  const auto value = number_from<double>(peek().kind == Token::Kind::kWord ? peek().text : "");
  if (!value) fail("expected a number, found " + found());
  ++next_;
  return *value;
}

std::uint32_t TokenReader::number_after(std::string_view prefix) {
  const std::string& text = peek().text;
  if (peek().kind == Token::Kind::kWord && text.starts_with(prefix)) {
    if (const auto value = number_from<std::uint32_t>(std::string_view(text).substr(prefix.size()))) {
      ++next_;
      return *value;
    }
  }
  fail("expected " + std::string(prefix) + " and a number, found " + found());
}

void TokenReader::expect_end() {
  if (!at_end()) fail("expected the end of the line, found " + found());
}

}  // namespace stepcast::program
