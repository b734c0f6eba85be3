// Forward and data-moving kernels on tiny inputs, against values by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/tensors.h"

namespace stepcast::kernels {
namespace {

using Values = std::vector<double>;

void expect_near(const Buffer& actual, const Values& expected, double tolerance) {
  ASSERT_EQ(actual.size(), static_cast<std::int64_t>(expected.size()));
  for (std::int64_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual.at(i), expected[static_cast<std::size_t>(i)], tolerance) << "element " << i;
  }
}

TEST(Elementwise, ZeroCopyAddAccumulate) {
  Buffer a(DType::kF32, {3}, {1, 2, 3});
  Buffer b(DType::kF32, {3}, {10, 20, 30});
  Buffer out(DType::kF32, {3});
  run(OpKind::kAdd, {}, {&a, &b, &out});
  EXPECT_EQ(out.values(), (Values{11, 22, 33}));
  run(OpKind::kAccumulate, {}, {&a, &out});
  EXPECT_EQ(out.values(), (Values{12, 24, 36}));
  run(OpKind::kCopy, {}, {&b, &out});
  EXPECT_EQ(out.values(), (Values{10, 20, 30}));
  run(OpKind::kZeroFill, {}, {&out});
  EXPECT_EQ(out.values(), (Values{0, 0, 0}));
}

// Three parts of two rows. In bf16 the sum is rounded once: 1 + 2^-8 + 2^-8 = 1 + 2^-7, though 1 + 2^-8 alone would be
// rounded to 1.
TEST(Elementwise, SumsPartsOfRows) {
  Buffer in(DType::kF32, {6, 1}, {1, 2, 10, 20, 100, 200});
  Buffer out(DType::kF32, {2, 1});
  run(OpKind::kSumParts, {}, {&in, &out});
  EXPECT_EQ(out.values(), (Values{111, 222}));
  Buffer small(DType::kBf16, {3}, {1, 0x1p-8, 0x1p-8});
  Buffer sum(DType::kBf16, {1});
  run(OpKind::kSumParts, {}, {&small, &sum});
  EXPECT_EQ(sum.at(0), 1 + 0x1p-7);
}

// 1 + 2^-7 is the bf16 after 1. Added to 2^-10 in f32 nothing is lost; in bf16 the sum rounds back.
TEST(Elementwise, AccumulatesAcrossTypes) {
  Buffer in(DType::kBf16, {1}, {1 + 0x1p-7});
  Buffer wide(DType::kF32, {1}, {0x1p-10});
  run(OpKind::kAccumulate, {}, {&in, &wide});
  EXPECT_EQ(wide.at(0), 1 + 0x1p-7 + 0x1p-10);
  Buffer small(DType::kF32, {1}, {0x1p-10});
  run(OpKind::kAccumulate, {}, {&small, &in});
  EXPECT_EQ(in.at(0), 1 + 0x1p-7);
}

// 1/3 = 0x1.55555...: f32 rounds up to 0x1.555556p-2, bf16 to 0x1.56p-2 (the rest, 0x0.0055..., is above no tie: 7
// fraction bits of 1.0101010|1 01.. round up).
TEST(Elementwise, CastsBetweenAllFloatingTypes) {
  const double third = 1.0 / 3.0;
  for (const DType from : {DType::kF32, DType::kBf16, DType::kF64}) {
    for (const DType to : {DType::kF32, DType::kBf16, DType::kF64}) {
      Buffer in(from, {2}, {third, -8});
      Buffer out(to, {2});
      run(OpKind::kCast, {}, {&in, &out});
      const bool through_bf16 = from == DType::kBf16 || to == DType::kBf16;
      const bool through_f32 = from == DType::kF32 || to == DType::kF32;
      EXPECT_EQ(out.at(0), through_bf16 ? 0x1.56p-2 : through_f32 ? 0x1.555556p-2 : third);
      EXPECT_EQ(out.at(1), -8);
    }
  }
}

TEST(Elementwise, RefusesDifferentSizes) {
  Buffer a = zeros(DType::kF32, {3});
  Buffer b = zeros(DType::kF32, {4});
  EXPECT_THROW(run(OpKind::kCopy, {}, {&a, &b}), InternalError);
  EXPECT_THROW(run(OpKind::kAccumulate, {}, {&a, &b}), InternalError);
}

// Holder 1 of 2 with 2 rows each has tokens 2 and 3; the others give zero.
TEST(Embedding, LooksUpOwnRowsAndGivesZeroForOthers) {
  Buffer tokens(DType::kI32, {3}, {3, 0, 2});
  Buffer table(DType::kF32, {2, 2}, {1, 2, 3, 4});
  Buffer out(DType::kF32, {3, 2});
  run(OpKind::kEmbeddingForward, {}, {&tokens, &table, &out}, {.index = 1, .index_count = 2});
  EXPECT_EQ(out.values(), (Values{3, 4, 0, 0, 1, 2}));
  Buffer beyond(DType::kI32, {3}, {3, 4, 2});
  EXPECT_THROW(run(OpKind::kEmbeddingForward, {}, {&beyond, &table, &out}, {.index = 1, .index_count = 2}),
               InternalError);
}

// (3, 4) has a mean square of 12.5; ones with eps 3 have 1 + 3 = 4, rstd 1/2.
TEST(RmsNorm, MatchesValuesByHand) {
  Buffer x(DType::kF64, {1, 2}, {3, 4});
  Buffer w(DType::kF64, {2}, {1, 2});
  Buffer y(DType::kF64, {1, 2});
  Buffer rstd(DType::kF64, {1});
  run(OpKind::kRmsNormForward, with_value(0), {&x, &w, &y, &rstd});
  expect_near(rstd, {1 / std::sqrt(12.5)}, 1e-16);
  expect_near(y, {3 / std::sqrt(12.5), 8 / std::sqrt(12.5)}, 1e-15);
  x = Buffer(DType::kF64, {1, 2}, {1, 1});
  run(OpKind::kRmsNormForward, with_value(3), {&x, &w, &y, &rstd});
  EXPECT_EQ(y.values(), (Values{0.5, 1}));
}

// head_dim 4 and theta 100: pairs (0,2) and (1,3) turn by position * 1 and position * 0.1. One q head, one kv head, two
// interleaved sequences, so rows 0 and 1 are position 0 and rows 2 and 3 position 1.
TEST(Rotary, TurnsPairsHalfAHeadApart) {
  Attributes attributes = heads_of(1, 1, 4, 2);
  attributes.value = 100;
  Values qkv;
  for (int row = 0; row < 4; ++row) {
    for (const double head : {1, 10, 100}) qkv.insert(qkv.end(), {head, 2 * head, 3 * head, 4 * head});
  }
  Buffer x(DType::kF64, {4, 12}, qkv);
  run(OpKind::kRotaryForward, attributes, {&x});
  const double c0 = std::cos(1.0), s0 = std::sin(1.0), c1 = std::cos(0.1), s1 = std::sin(0.1);
  Values expected(qkv.begin(), qkv.begin() + 24);
  for (int row = 2; row < 4; ++row) {
    for (const double head : {1, 10}) {
      expected.insert(expected.end(),
                      {head * (c0 - 3 * s0), head * (2 * c1 - 4 * s1), head * (3 * c0 + s0), head * (4 * c1 + 2 * s1)});
    }
    expected.insert(expected.end(), {100, 200, 300, 400});
  }
  expect_near(x, expected, 1e-13);
}

// Two positions of one head with head_dim 4, scale 1/2. Position 0 sees itself: out = v0, lse = q0 k0 / 2 = 0. Position
// 1 scores 2 * 0 / 2 = 0 and 2 * ln 3 / 2 = ln 3: probabilities 1/4 and 3/4, lse = ln 4.
TEST(Attention, IsCausalAndScaled) {
  const double ln3 = std::log(3.0);
  Buffer qkv(DType::kF64, {2, 12}, {5, 0, 0, 0, 0,   0, 0, 0, 4, 8, 12, 16,  //
                                    2, 0, 0, 0, ln3, 0, 0, 0, 8, 0, 12, -16});
  Buffer out(DType::kF64, {2, 4});
  Buffer lse(DType::kF64, {2, 1});
  run(OpKind::kAttentionForward, heads_of(1, 1, 4, 1), {&qkv, &out, &lse});
  expect_near(out, {4, 8, 12, 16, 7, 2, 12, -8}, 1e-14);
  expect_near(lse, {0, std::log(4.0)}, 1e-15);
}

// At position 0 every query sees one key, so q head h gives the value of kv head h / 2 of its own sequence, and lse is
// the score q k of head_dim 1 (scale 1).
TEST(Attention, SharesKvHeadsWithinTheSequence) {
  // Row of sequence b: q 1 2 3 4 | k 10 20 | v 100+b 200+b.
  Buffer qkv(DType::kF64, {2, 8}, {1, 2, 3, 4, 10, 20, 100, 200, 1, 2, 3, 4, 10, 20, 101, 201});
  Buffer out(DType::kF64, {2, 4});
  Buffer lse(DType::kF64, {2, 4});
  run(OpKind::kAttentionForward, heads_of(4, 2, 1, 2), {&qkv, &out, &lse});
  EXPECT_EQ(out.values(), (Values{100, 100, 200, 200, 101, 101, 201, 201}));
  EXPECT_EQ(lse.values(), (Values{10, 20, 60, 80, 10, 20, 60, 80}));
}

// Interleaving sequences must not change them: two at once equal each alone, to the last bit.
TEST(Attention, TreatsSequencesIndependently) {
  const Buffer both = random_buffer(DType::kF32, {10, 16}, "qkv");
  Buffer qkv = both;
  Buffer out(DType::kF32, {10, 8});
  Buffer lse(DType::kF32, {10, 4});
  run(OpKind::kAttentionForward, heads_of(4, 2, 2, 2), {&qkv, &out, &lse});
  for (std::int64_t b = 0; b < 2; ++b) {
    Buffer own(DType::kF32, {5, 16});
    for (std::int64_t i = 0; i < own.size(); ++i) own.set(i, both.at((i / 16 * 2 + b) * 16 + i % 16));
    Buffer own_out(DType::kF32, {5, 8});
    Buffer own_lse(DType::kF32, {5, 4});
    run(OpKind::kAttentionForward, heads_of(4, 2, 2, 1), {&own, &own_out, &own_lse});
    for (std::int64_t i = 0; i < own_out.size(); ++i) ASSERT_EQ(own_out.at(i), out.at((i / 8 * 2 + b) * 8 + i % 8));
  }
}

// Scores of 1e4 overflow exp in float without subtracting the maximum.
TEST(Attention, SurvivesLargeScores) {
  Buffer qkv(DType::kF32, {2, 3}, {100, 100, 1, 100, 100, 3});
  Buffer out(DType::kF32, {2, 1});
  Buffer lse(DType::kF32, {2, 1});
  run(OpKind::kAttentionForward, heads_of(1, 1, 1, 1), {&qkv, &out, &lse});
  EXPECT_EQ(out.values(), (Values{1, 2}));
}

// silu(ln 3) = 3/4 ln 3 (element_test.cc), times 4.
TEST(SwiGlu, MatchesValuesByHand) {
  Buffer gate_up(DType::kF64, {1, 4}, {std::log(3.0), 0, 4, 9});
  Buffer out(DType::kF64, {1, 2});
  run(OpKind::kSwiGluForward, {}, {&gate_up, &out});
  expect_near(out, {3 * std::log(3.0), 0}, 1e-15);
}

struct Microbatch {
  std::int64_t rank, microbatches, count, batch;
};

Values tokens_of(const Microbatch& m, std::uint64_t seed, bool targets = false) {
  Attributes a;
  a.microbatches = m.microbatches;
  a.count = m.count;
  a.batch = m.batch;
  a.vocab = 50;
  Buffer tokens(DType::kI32, {6 * m.batch});
  Buffer next(DType::kI32, {6 * m.batch});
  run(OpKind::kTokenLoad, a, {&tokens, &next}, {.index = m.rank, .index_count = 4, .seed = seed});
  return targets ? next.values() : tokens.values();
}

// Sample 5 is rank 2's second of 2 microbatches of 1, rank 1's second of 4, and the second sequence of rank 1's first
// microbatch of 2 (2 microbatches): (2*2+1)*1, (1*4+1)*1, (1*2+0)*2+1.
TEST(TokenLoad, DependsOnTheSampleAlone) {
  const Values tokens = tokens_of({2, 2, 1, 1}, 3);
  EXPECT_EQ(tokens, tokens_of({1, 4, 1, 1}, 3));
  const Values interleaved = tokens_of({1, 2, 0, 2}, 3);
  for (std::size_t p = 0; p < 6; ++p) EXPECT_EQ(interleaved[2 * p + 1], tokens[p]);
  EXPECT_NE(tokens, tokens_of({1, 4, 2, 1}, 3));
  EXPECT_NE(tokens, tokens_of({1, 4, 1, 1}, 4));
}

TEST(TokenLoad, FollowsTheDocumentedFormula) {
  const Values tokens = tokens_of({2, 2, 1, 1}, 3);
  const Values targets = tokens_of({2, 2, 1, 1}, 3, true);
  const RandomStream stream(3, "tokens");
  for (std::uint64_t p = 0; p < 6; ++p) {
    EXPECT_EQ(tokens[p], static_cast<double>(stream.integer_at(5 * (1U << 20) + p, 50)));
    EXPECT_EQ(targets[p], static_cast<double>(stream.integer_at(5 * (1U << 20) + p + 1, 50)));
  }
}

}  // namespace
}  // namespace stepcast::kernels
