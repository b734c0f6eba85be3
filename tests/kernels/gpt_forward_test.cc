// Forward kernels of GPT-style layers on tiny inputs, against values by hand, and what dropout masks depend on.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cpu/attention_layout.h"
#include "tests/kernels/tensors.h"

namespace stepcast::kernels {
namespace {

using Values = std::vector<double>;

// (1, 3): mean 2, variance 1; with eps 3 the deviation is 2: (-1/2, 1/2) * (2, 4) + (10, 20).
TEST(LayerNorm, MatchesValuesByHand) {
  Buffer x(DType::kF64, {1, 2}, {1, 3});
  Buffer w(DType::kF64, {2}, {2, 4});
  Buffer b(DType::kF64, {2}, {10, 20});
  Buffer y(DType::kF64, {1, 2});
  Buffer stats(DType::kF64, {2, 1});
  run(OpKind::kLayerNormForward, with_value(3), {&x, &w, &b, &y, &stats});
  EXPECT_EQ(y.values(), (Values{9, 22}));
  EXPECT_EQ(stats.values(), (Values{2, 0.5}));
}

// gelu(1) in the tanh form is 0.841192 and gelu(-1) = gelu(1) - 1; PyTorch's documentation of approximate="tanh".
TEST(Activations, MatchValuesByHand) {
  Buffer in(DType::kF64, {1, 3}, {-1, 0, 2});
  Buffer bias(DType::kF64, {3}, {0, 0, -1});
  Buffer out(DType::kF64, {1, 3});
  run(OpKind::kGeluForward, {}, {&in, &out, &bias});
  EXPECT_NEAR(out.at(0), 0.841192 - 1, 1e-6);
  EXPECT_EQ(out.at(1), 0);
  EXPECT_NEAR(out.at(2), 0.841192, 1e-6);
  run(OpKind::kSquaredReluForward, {}, {&in, &out});
  EXPECT_EQ(out.values(), (Values{0, 0, 4}));
}

// Two interleaved sequences: rows 0 and 1 are position 0. The second of two ranks begins at row 2, position 1.
TEST(Positions, AddTheRowOfTheirPosition) {
  Attributes a;
  a.batch = 2;
  Buffer table(DType::kF32, {2, 1}, {10, 20});
  Buffer x(DType::kF32, {4, 1}, {1, 2, 3, 4});
  run(OpKind::kPositionForward, a, {&table, &x});
  EXPECT_EQ(x.values(), (Values{11, 12, 23, 24}));
  Buffer half(DType::kF32, {2, 1}, {3, 4});
  run(OpKind::kPositionForward, a, {&table, &half}, {.index = 1, .index_count = 2});
  EXPECT_EQ(half.values(), (Values{23, 24}));
}

// Press et al.: for 8 heads 1/2 .. 1/256; for 12 heads those and the odd ones of 16: 2^-0.5, 2^-1.5, 2^-2.5, 2^-3.5.
TEST(Alibi, SlopesAreGeometric) {
  for (std::int64_t h = 0; h < 8; ++h) {
    EXPECT_DOUBLE_EQ(cpu::alibi_slope(h, 8), std::exp2(-static_cast<double>(h + 1)));
    EXPECT_DOUBLE_EQ(cpu::alibi_slope(h, 12), cpu::alibi_slope(h, 8));
  }
  for (std::int64_t h = 8; h < 12; ++h) {
    EXPECT_DOUBLE_EQ(cpu::alibi_slope(h, 12), std::exp2(-0.5 - static_cast<double>(h - 8)));
  }
}

Attributes half_dropped(std::int64_t batch, std::int64_t microbatches, program::DropoutSite site) {
  Attributes a;
  a.value = 0.5;
  a.batch = batch;
  a.microbatches = microbatches;
  a.count = static_cast<std::int64_t>(site);
  return a;
}

Values mask_of(const Attributes& a, Shape shape, RunOptions options) {
  Buffer in = random_buffer(DType::kF32, shape, "in");
  Buffer out(DType::kF32, shape);
  Buffer mask(DType::kU8, shape);
  run(OpKind::kDropoutForward, a, {&in, &out, &mask}, options);
  for (std::int64_t i = 0; i < in.size(); ++i) EXPECT_EQ(out.at(i), mask.at(i) * 2 * in.at(i));
  return mask.values();
}

constexpr program::DropoutSite kSite = program::DropoutSite::kMlpOutput;

// 4096 draws of one half: a standard deviation of 32, so 5 of them are 160.
TEST(Dropout, KeepsTheShareItShould) {
  double kept = 0;
  for (const double x : mask_of(half_dropped(1, 1, kSite), {64, 64}, {.seed = 3})) kept += x;
  EXPECT_NEAR(kept, 2048, 160);
}

// 4 positions of samples 0..3, one column. Samples of two microbatches of two are those of one of four; the rows of two
// ranks of a tensor-parallel group are those of one.
TEST(Dropout, MaskDependsOnTheGlobalElementOnly) {
  const Values whole = mask_of(half_dropped(4, 1, kSite), {16, 1}, {.seed = 3});
  for (std::int64_t m = 0; m < 2; ++m) {
    const Values part = mask_of(half_dropped(2, 2, kSite), {8, 1}, {.microbatch = m, .seed = 3});
    const Values other = mask_of(half_dropped(2, 1, kSite), {8, 1}, {.sample_index = m, .seed = 3});
    EXPECT_EQ(part, other);
    for (std::size_t p = 0; p < 4; ++p) {
      for (std::size_t b = 0; b < 2; ++b) {
        EXPECT_EQ(part[p * 2 + b], whole[p * 4 + static_cast<std::size_t>(2 * m) + b]);
      }
    }
  }
  for (std::int64_t i = 0; i < 2; ++i) {
    const Values rows = mask_of(half_dropped(4, 1, kSite), {8, 1}, {.index = i, .index_count = 2, .seed = 3});
    EXPECT_TRUE(std::equal(rows.begin(), rows.end(), whole.begin() + 8 * i)) << i;
  }
}

// Scores of 4 heads on one rank are those of 2 heads on each of two.
TEST(Dropout, MaskOfScoresDependsOnTheHeadOfTheModel) {
  Attributes a = half_dropped(1, 1, program::DropoutSite::kScores);
  a.heads = 4;
  const Values whole = mask_of(a, {4, 5, 5}, {.seed = 3});
  a.heads = 2;
  for (std::int64_t i = 0; i < 2; ++i) {
    const Values part = mask_of(a, {2, 5, 5}, {.index = i, .index_count = 2, .seed = 3});
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 50 * i)) << i;
  }
}

TEST(Dropout, MasksDifferByLayerSiteStepAndSeed) {
  const Attributes a = half_dropped(1, 1, kSite);
  const Values mask = mask_of(a, {8, 8}, {.seed = 3});
  EXPECT_EQ(mask, mask_of(a, {8, 8}, {.seed = 3}));
  EXPECT_NE(mask, mask_of(a, {8, 8}, {.layer = 1, .seed = 3}));
  EXPECT_NE(mask, mask_of(a, {8, 8}, {.step = 2, .seed = 3}));
  EXPECT_NE(mask, mask_of(a, {8, 8}, {.seed = 4}));
  EXPECT_NE(mask, mask_of(half_dropped(1, 1, program::DropoutSite::kEmbedding), {8, 8}, {.seed = 3}));
}

}  // namespace
}  // namespace stepcast::kernels
