// Random mutations of known good texts, for tests of parsers: the parser must answer with a value or with
// stepcast::Error, never crash, hang or throw anything else.
//
// Case `i` of a Mutator depends on (seed, corpus, tokens, i) only, so a failing case is named by its number. Mutations
// work on bytes (flip, insert, delete, any of 256 values), on lines (delete, duplicate, swap, truncate) and on tokens
// (a number or word replaced by an awkward one), since byte noise alone seldom gets past a tokeniser.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"

namespace stepcast::fuzz {

// Values that parsers of numbers and text are known to trip over.
inline const std::vector<std::string>& awkward_tokens() {
  static const std::vector<std::string> tokens = {"0",
                                                  "-1",
                                                  "1e400",
                                                  "-0",
                                                  "nan",
                                                  ".inf",
                                                  "9223372036854775808",
                                                  "1e-400",
                                                  "00",
                                                  "0x10",
                                                  "",
                                                  "null",
                                                  "~",
                                                  "true",
                                                  "[]",
                                                  "{}",
                                                  "\"",
                                                  "'",
                                                  ": ",
                                                  "- ",
                                                  "#",
                                                  "&a",
                                                  "*a",
                                                  "!!str",
                                                  "\xff",
                                                  "\xc3",
                                                  "\t",
                                                  "\r\n",
                                                  "\\u0000",
                                                  "%",
                                                  "1 GB/s",
                                                  "450",
                                                  "{",
                                                  "]",
                                                  ",",
                                                  "|",
                                                  "1_0",
                                                  "1.5",
                                                  "é",
                                                  "<<",
                                                  "999999999999",
                                                  "--",
                                                  "...",
                                                  "@",
                                                  "`",
                                                  "?",
                                                  "\x7f"};
  return tokens;
}

class Mutator {
 public:
  // `corpus`: good texts, at least one. `tokens`: words of the language (keys, units), used beside awkward_tokens().
  Mutator(std::uint64_t seed, std::vector<std::string> corpus, std::vector<std::string> tokens = {})
      : seed_(seed), corpus_(std::move(corpus)), tokens_(std::move(tokens)) {
    CHECK(!corpus_.empty());
    tokens_.insert(tokens_.end(), awkward_tokens().begin(), awkward_tokens().end());
  }

  // One text of the corpus after one to six mutations.
  std::string text_at(std::uint64_t index) const {
    Dice dice(seed_, index);
    std::string text = corpus_[dice.below(corpus_.size())];
    const std::uint64_t mutations = 1 + dice.below(6);
    for (std::uint64_t i = 0; i < mutations; ++i) mutate(text, dice);
    return text;
  }

 private:
  // The draws of one case, in order.
  class Dice {
   public:
    Dice(std::uint64_t seed, std::uint64_t index) : stream_(seed ^ (index * 0x9e3779b97f4a7c15ULL), "mutate") {}
    std::size_t below(std::size_t bound) { return static_cast<std::size_t>(stream_.integer_at(next_++, bound)); }

   private:
    RandomStream stream_;
    std::uint64_t next_ = 0;
  };

  struct Range {
    std::size_t begin;
    std::size_t size;
  };

  static bool in_word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_';
  }

  // The word around a random position; empty when there is none.
  static Range random_word(const std::string& text, Dice& dice) {
    std::size_t begin = dice.below(text.size());
    std::size_t end = begin;
    while (begin > 0 && in_word(text[begin - 1])) --begin;
    while (end < text.size() && in_word(text[end])) ++end;
    return {begin, end - begin};
  }

  // The line around a random position, its end of line included.
  static Range random_line(const std::string& text, Dice& dice) {
    const std::size_t at = dice.below(text.size());
    const std::size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    const std::size_t after = text.find('\n', at);
    const std::size_t end = after == std::string::npos ? text.size() : after + 1;
    return {begin, end - begin};
  }

  void mutate(std::string& text, Dice& dice) const {
    if (text.empty()) {
      text = tokens_[dice.below(tokens_.size())];
      return;
    }
    switch (dice.below(4)) {
      case 0:
        return mutate_byte(text, dice);
      case 1:
        return mutate_line(text, dice);
      default:  // twice as often: tokens reach deepest
        return mutate_token(text, dice);
    }
  }

  static void mutate_byte(std::string& text, Dice& dice) {
    const std::size_t at = dice.below(text.size());
    const auto any = static_cast<char>(static_cast<unsigned char>(dice.below(256)));
    switch (dice.below(4)) {
      case 0:
        text[at] = any;
        return;
      case 1:
        text.insert(at, 1, any);
        return;
      case 2:
        text.erase(at, 1 + dice.below(8));
        return;
      default:
        text[at] = static_cast<char>(static_cast<unsigned char>(text[at]) ^ (1U << dice.below(8)));
        return;
    }
  }

  static void mutate_line(std::string& text, Dice& dice) {
    const Range line = random_line(text, dice);
    const std::string copy = text.substr(line.begin, line.size);
    switch (dice.below(4)) {
      case 0:
        text.erase(line.begin, line.size);
        return;
      case 1:  // twice the same key, say
        text.insert(line.begin, copy);
        return;
      case 2:  // moved to another line's start
        text.erase(line.begin, line.size);
        text.insert(text.empty() ? 0 : random_line(text, dice).begin, copy);
        return;
      default:
        text.resize(line.begin + dice.below(line.size + 1));
        return;
    }
  }

  void mutate_token(std::string& text, Dice& dice) const {
    const Range word = random_word(text, dice);
    const std::string& token = tokens_[dice.below(tokens_.size())];
    if (dice.below(4) == 0) {
      text.insert(word.begin, token);
    } else {
      text.replace(word.begin, word.size, token);
    }
  }

  std::uint64_t seed_;
  std::vector<std::string> corpus_;
  std::vector<std::string> tokens_;
};

}  // namespace stepcast::fuzz
