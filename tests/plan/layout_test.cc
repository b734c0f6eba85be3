// Layouts: the even rule, Megatron-Core's string, lists.
#include "plan/layout.h"

#include <gtest/gtest.h>

#include <numeric>

namespace stepcast::plan {
namespace {

using Counts = std::vector<std::int64_t>;

TEST(AutoLayout, IsEvenWhereLayersDivide) {
  EXPECT_EQ(auto_layout(32, 4, 1).layers, (Counts{8, 8, 8, 8}));
  EXPECT_EQ(auto_layout(8, 2, 2).layers, (Counts{2, 2, 2, 2}));
  EXPECT_EQ(auto_layout(5, 1, 1).layers, (Counts{5}));
}

// 126 layers of Llama 3.1 405B over pp 16: 126 + 2 = 128 items, 8 a stage, first and last one decoder layer fewer
// (arXiv 2407.21783, section 3.3.2). With vp 8: 128 virtual stages of one item, so the ends hold no decoder layer.
TEST(AutoLayout, CountsEmbeddingAndLossAsLayers) {
  Counts expected(16, 8);
  expected.front() = expected.back() = 7;
  EXPECT_EQ(auto_layout(126, 16, 1).layers, expected);
  const Counts fine = auto_layout(126, 16, 8).layers;
  ASSERT_EQ(fine.size(), 128u);
  EXPECT_EQ(fine.front(), 0);
  EXPECT_EQ(fine[1], 1);
  EXPECT_EQ(fine.back(), 0);
  EXPECT_EQ(std::accumulate(fine.begin(), fine.end(), std::int64_t{0}), 126);
}

// 46 mod 4 = 2 but 48 mod 4 = 0; 47 is prime and 49 = 7 * 7, so over 4 stages nothing is even.
TEST(AutoLayout, ListsChoicesWhereNothingDivides) {
  EXPECT_EQ(auto_layout(46, 4, 1).layers, (Counts{11, 12, 12, 11}));
  const LayoutResult result = auto_layout(47, 4, 1);
  ASSERT_FALSE(result.ok());
  ASSERT_EQ(result.help.size(), 3u);
  EXPECT_EQ(result.help[0], "plan.pp 1, 47: divides 47 layers");
  EXPECT_EQ(result.help[1], "plan.pp 1, 7, 49: divides 49 (embedding and loss counted as layers)");
  EXPECT_EQ(result.help[2], "plan.layout: [11, 13, 12, 11]");  // 11 + 13 + 12 + 11 = 47
}

// 8 ranks to a pipeline: of the divisors of 30 (1, 2, 3, 5, 6, 10, 15, 30) 1 and 2 divide 8, of those of 32 all up to
// 8. Over 7 stages nothing is even (30 mod 7 = 2, 32 mod 7 = 4), and 7 does not divide 8, so no list for it either.
TEST(AutoLayout, OffersOnlyWhatFitsTheRanks) {
  const LayoutResult result = auto_layout(30, 7, 1, 8);
  ASSERT_EQ(result.help.size(), 2u);
  EXPECT_EQ(result.help[0], "plan.pp 1, 2: divides 30 layers");
  EXPECT_EQ(result.help[1], "plan.pp 1, 2, 4, 8: divides 32 (embedding and loss counted as layers)");
  // vp 3 over pp 4: 30 mod 12 = 6, 32 mod 12 = 8. Of 3 * 1, 2, 5 and 10, which divide 30, only 2 is a pipeline that
  // divides 8; no multiple of 3 divides 32; 4 divides 8, so a list is offered.
  const LayoutResult interleaved = auto_layout(30, 4, 3, 8);
  ASSERT_EQ(interleaved.help.size(), 2u);
  EXPECT_EQ(interleaved.help[0], "plan.pp 2 with vp 3: divides 30 layers");
  EXPECT_EQ(interleaved.help[1].rfind("plan.layout: [", 0), 0u);
}

// Megatron-LM's own example: 61 layers on pp 16 and vp 2 are Et*3|(tt|)*29,m|L; without the m it is 3 + 29 * 2 = 61
// layers on 1 + 29 + 1 + 1 = 32 stages.
TEST(ParseLayout, ExpandsRepeats) {
  const LayoutResult result = parse_layout("Et*3|(tt|)*29,|L");
  ASSERT_TRUE(result.ok()) << result.problem;
  ASSERT_EQ(result.layers.size(), 32u);
  EXPECT_EQ(result.layers[0], 3);
  EXPECT_EQ(result.layers[1], 2);
  EXPECT_EQ(result.layers[31], 0);
  EXPECT_EQ(std::accumulate(result.layers.begin(), result.layers.end(), std::int64_t{0}), 61);
  EXPECT_EQ(parse_layout("Ett|((t)*2|)*2tL").layers, (Counts{2, 2, 2, 1}));
}

TEST(ParseLayout, KnowsMultiTokenPredictionButDoesNotSupportIt) {
  const LayoutResult result = parse_layout("Et*3|(tt|)*29,m|L");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.kind, ErrorKind::kUnsupported);
}

TEST(ParseLayout, RefusesWhatIsNotALayout) {
  for (const char* text : {"", "tt|tL", "Ett|tt", "EtE|L", "Et|Lt", "Etx|L", "E(t|L", "Et)|L", "Et*|L", "Et*0|L",
                           "Et*9999999|L", "E((((t*999)*999)*999)*999)*999|L", "(((((((((((E", "E*2tL", "even"}) {
    EXPECT_FALSE(parse_layout(text).ok()) << text;
  }
}

TEST(ListLayout, TakesCounts) {
  EXPECT_EQ(list_layout({"1", "3"}).layers, (Counts{1, 3}));
  for (const char* text : {"-1", "1.5", "t", "", "100001"}) EXPECT_FALSE(list_layout({text}).ok()) << text;
}

TEST(StageItems, PutTheEmbeddingFirstAndTheLossLast) {
  const auto layout = stage_items({1, 2, 0});
  ASSERT_EQ(layout.size(), 3u);
  EXPECT_TRUE(layout[0].embedding);
  EXPECT_FALSE(layout[0].loss);
  EXPECT_EQ(layout[1].first_layer, 1);
  EXPECT_EQ(layout[2].first_layer, 3);
  EXPECT_TRUE(layout[2].loss);
  EXPECT_EQ(layout_text(layout), "E+1 | 2 | 0+L");
}

}  // namespace
}  // namespace stepcast::plan
