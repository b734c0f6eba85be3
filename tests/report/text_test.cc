// Number and line formatting of the screens.
#include "report/text.h"

#include <gtest/gtest.h>

#include "report/json_text.h"
#include "report/resolved_plan.h"

namespace stepcast::report {
namespace {

TEST(ScreenText, KeepsSignificantDigits) {
  EXPECT_EQ(significant(11.8765, 4), "11.88");
  EXPECT_EQ(significant(452.6, 3), "453");
  EXPECT_EQ(significant(12345.6, 3), "12346");
  EXPECT_EQ(significant(0.06261, 3), "0.0626");
  EXPECT_EQ(significant(9.9996, 4), "10.00");  // rounding carries into a new digit
  EXPECT_EQ(significant(0, 3), "0");
}

TEST(ScreenText, ShowsMemoryInBinaryUnits) {
  EXPECT_EQ(memory_text(std::int64_t{80} << 30), "80.0 GiB");
  EXPECT_EQ(memory_text(std::int64_t{48} << 20), "48.00 MiB");
}

TEST(ScreenText, WrapsAtTheScreensWidth) {
  std::string words;
  for (int i = 0; i < 60; ++i) words += "word ";
  words += "end";
  const std::string text = wrapped("label", 9, words);
  EXPECT_TRUE(text.starts_with("label    word"));
  std::size_t begin = 0;
  int lines = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    EXPECT_LE(end - begin, kColumns);
    if (lines > 0) {
      EXPECT_EQ(text.substr(begin, 9), "         ");
    }
    begin = end + 1;
    ++lines;
  }
  // 60 words of 5 columns and "end" are 303 columns; a line takes 111 behind the label, 22 words of them.
  EXPECT_EQ(lines, 3);
}

TEST(ScreenText, LeavesNoSpaceAtTheEndOfAWrappedLine) {
  // Two spaces part the words, and the second does not fit: 9 + 100 + 2 + 10 columns.
  const std::string text = wrapped("label", 9, std::string(100, 'x') + "  " + std::string(10, 'y'));
  EXPECT_EQ(text, "label    " + std::string(100, 'x') + "\n         " + std::string(10, 'y') + "\n");
}

TEST(ScreenText, EscapesJsonStrings) { EXPECT_EQ(json_string("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000a\""); }

TEST(PlanText, NamesRecomputedModules) {
  EXPECT_EQ(recompute_text({}), "none");
  EXPECT_EQ(recompute_text({.kind = plan::RecomputeKind::kFull}), "full");
  plan::Recompute selective{.kind = plan::RecomputeKind::kSelective, .layernorm = true, .mlp_act = true};
  EXPECT_EQ(recompute_text(selective), "selective[layernorm,mlp_act]");
}

}  // namespace
}  // namespace stepcast::report
