// The mutator itself: repeatable, and it reaches every kind of change.
#include "tests/fuzz/mutate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace stepcast::fuzz {
namespace {

const std::string kText = "model: llama\ngpus: 8\nplan: {tp: 2, pp: 4}\n";

TEST(Mutator, GivesTheSameTextForTheSameSeedAndIndex) {
  const Mutator a(5, {kText});
  const Mutator b(5, {kText});
  for (std::uint64_t i = 100; i-- > 0;) EXPECT_EQ(a.text_at(i), b.text_at(i));
  EXPECT_NE(a.text_at(1), Mutator(6, {kText}).text_at(1));
}

TEST(Mutator, SeldomRepeatsOrKeepsTheText) {
  const Mutator mutator(5, {kText});
  std::set<std::string> texts;
  int unchanged = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    texts.insert(mutator.text_at(i));
    unchanged += mutator.text_at(i) == kText ? 1 : 0;
  }
  EXPECT_GT(texts.size(), 800U);
  EXPECT_LT(unchanged, 50);
}

TEST(Mutator, ReachesEveryKindOfChange) {
  const Mutator mutator(5, {kText}, {"zero_stage"});
  int token = 0;
  int high_byte = 0;
  int fewer_lines = 0;
  int more_lines = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const std::string text = mutator.text_at(i);
    const auto lines = std::count(text.begin(), text.end(), '\n');
    token += text.find("zero_stage") != std::string::npos ? 1 : 0;
    high_byte += std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 128; });
    fewer_lines += lines < 3 ? 1 : 0;
    more_lines += lines > 3 ? 1 : 0;
  }
  EXPECT_GT(token, 20);
  EXPECT_GT(high_byte, 20);
  EXPECT_GT(fewer_lines, 20);
  EXPECT_GT(more_lines, 20);
}

TEST(Mutator, StartsFromAnEmptyText) {
  const Mutator mutator(1, {""});
  for (std::uint64_t i = 0; i < 200; ++i) EXPECT_NO_THROW(mutator.text_at(i));
}

}  // namespace
}  // namespace stepcast::fuzz
