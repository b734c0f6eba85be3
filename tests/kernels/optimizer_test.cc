// Gradient norm, clip factor and two steps of Adam by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/tensors.h"

namespace stepcast::kernels {
namespace {

// 1 + 0.5 * (9 + 16) = 13.5.
TEST(SumSquares, AddsTheScaledSum) {
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    Buffer in(dtype, {2}, {3, 4});
    Buffer out(DType::kF32, {1}, {1});
    run(OpKind::kSumSquares, with_value(0.5), {&in, &out});
    EXPECT_EQ(out.at(0), 13.5);
  }
}

// 2^24 + 4 ones: a float sum stays at 2^24 = 16777216, since adding 1 to it rounds back. 16777220 is a float.
TEST(SumSquares, DoesNotLoseSmallTermsInALargeSum) {
  constexpr std::int64_t kCount = (1 << 24) + 4;
  std::vector<float> ones(kCount, 1.0F);
  Buffer out = zeros(DType::kF32, {1});
  const Attributes attributes = with_value(1.0);
  const std::vector<Tensor> operands = {{ones.data(), {DType::kF32, {kCount}}}, out.tensor()};
  reference_kernel(OpKind::kSumSquares)({.operands = operands, .attributes = &attributes});
  EXPECT_EQ(out.at(0), 16777220.0);
}

// norm 5: factor = 1 / (5 + 1e-6) for a maximum of 1, and 1 (no scaling up) for a maximum of 10.
TEST(ClipFactor, ScalesDownOnly) {
  Buffer squares(DType::kF64, {1}, {25});
  Buffer factor(DType::kF64, {1});
  run(OpKind::kClipFactor, with_value(1.0), {&squares, &factor});
  EXPECT_NEAR(factor.at(0), 1.0 / 5.000001, 1e-15);
  run(OpKind::kClipFactor, with_value(10.0), {&squares, &factor});
  EXPECT_EQ(factor.at(0), 1.0);
}

Attributes adam_attributes() {
  Attributes a;
  a.learning_rate = 0.1;
  a.beta1 = 0.5;
  a.beta2 = 0.75;
  a.eps = 1.0;
  return a;
}

// Factor 1/2 throughout. Step 1: grad 2, g = 1; m = 0.5, v = 0.25; m/(1-0.5) = 1, v/(1-0.75) = 1; master = 10 - 0.1 *
// 1/(1+1) = 9.95. Step 2: grad -4, g = -2; m = 0.25 - 1 = -0.75, v = 0.1875 + 1 = 1.1875; m/(1-0.25) = -1, v/(1-0.5625)
// = 19/7; master = 9.95 + 0.1 / (sqrt(19/7) + 1).
TEST(Adam, MatchesTwoStepsByHand) {
  Buffer factor(DType::kF64, {1}, {0.5});
  Buffer m = zeros(DType::kF64, {1});
  Buffer v = zeros(DType::kF64, {1});
  Buffer master(DType::kF64, {1}, {10});
  Buffer grad(DType::kF64, {1}, {2});
  run(OpKind::kAdam, adam_attributes(), {&grad, &factor, &m, &v, &master}, {.step = 1});
  EXPECT_NEAR(m.at(0), 0.5, 1e-15);
  EXPECT_NEAR(v.at(0), 0.25, 1e-15);
  EXPECT_NEAR(master.at(0), 9.95, 1e-14);
  grad.set(0, -4);
  run(OpKind::kAdam, adam_attributes(), {&grad, &factor, &m, &v, &master}, {.step = 2});
  EXPECT_NEAR(m.at(0), -0.75, 1e-15);
  EXPECT_NEAR(v.at(0), 1.1875, 1e-15);
  EXPECT_NEAR(master.at(0), 9.95 + 0.1 / (std::sqrt(19.0 / 7.0) + 1), 1e-14);
}

// master 1 - 0.05 = 0.95 = 0x1.e6666p-1; bf16 has 7 fraction bits: 0xe6.666 / 0x80 rounds to 0x1.e6p-1 = 0.94921875.
TEST(Adam, RoundsTheWorkingWeight) {
  Buffer factor(DType::kF32, {1}, {1});
  Buffer m = zeros(DType::kF32, {1});
  Buffer v = zeros(DType::kF32, {1});
  Buffer master(DType::kF32, {1}, {1});
  Buffer grad(DType::kF32, {1}, {1});
  Buffer weight(DType::kBf16, {1});
  run(OpKind::kAdam, adam_attributes(), {&grad, &factor, &m, &v, &master, &weight});
  EXPECT_NEAR(master.at(0), 0.95, 1e-7);
  EXPECT_EQ(weight.at(0), 0x1.e6p-1);
}

// Gradient 1 + 2^-7, exact in bf16 with its 7 fraction bits: m = (1 + 2^-7) / 2 is exact too, v = (1 + 2^-6 + 2^-14) /
// 4 is stored without its last term, which the update still sees: both unbiased moments are those of the gradient g,
// and the master moves by 0.1 g / (g + 1).
TEST(Adam, RoundsStoredMoments) {
  const double g = 1 + 0x1p-7;
  Buffer factor(DType::kF32, {1}, {1});
  Buffer m = zeros(DType::kBf16, {1});
  Buffer v = zeros(DType::kBf16, {1});
  Buffer master(DType::kF32, {1}, {10});
  Buffer grad(DType::kBf16, {1}, {g});
  run(OpKind::kAdam, adam_attributes(), {&grad, &factor, &m, &v, &master});
  EXPECT_EQ(m.at(0), g / 2);
  EXPECT_EQ(v.at(0), (1 + 0x1p-6) / 4);
  EXPECT_NEAR(master.at(0), 10 - 0.1 * g / (g + 1), 1e-6);
}

// Member 1 of 3 with parts of 2: elements 2 and 3, 3^2 + 4^2 = 25.
TEST(SumSquares, TakesTheOwnPart) {
  Buffer in(DType::kF32, {6}, {1, 2, 3, 4, 5, 6});
  Buffer out = zeros(DType::kF32, {1});
  program::Attributes attributes = with_value(1.0);
  attributes.count = 3;
  run(OpKind::kSumSquares, attributes, {&in, &out}, {.index = 1, .index_count = 3});
  EXPECT_EQ(out.at(0), 25);
}

// Two members with parts of 3 do together what one does with all 6 elements; neither touches the other's part.
// Gradient, master and weight hold both parts, moments the own one; and a master of the own part alone is taken as it
// is.
TEST(Adam, WorksOnTheOwnPart) {
  const Attributes attributes = adam_attributes();
  Buffer factor(DType::kF32, {1}, {1});
  Buffer grad = random_buffer(DType::kF32, {6}, "grad");
  Buffer whole_m = zeros(DType::kF32, {6});
  Buffer whole_v = zeros(DType::kF32, {6});
  Buffer whole_master = random_buffer(DType::kF32, {6}, "master");
  const Buffer before = whole_master;
  Buffer whole_weight(DType::kBf16, {6});
  run(OpKind::kAdam, attributes, {&grad, &factor, &whole_m, &whole_v, &whole_master, &whole_weight});
  for (std::int64_t index = 0; index < 2; ++index) {
    const RunOptions member{.index = index, .index_count = 2};
    Buffer m = zeros(DType::kF32, {3});
    Buffer v = zeros(DType::kF32, {3});
    Buffer master = before;
    Buffer weight(DType::kBf16, {6});
    run(OpKind::kAdam, attributes, {&grad, &factor, &m, &v, &master, &weight}, member);
    Buffer own_m = zeros(DType::kF32, {3});
    Buffer own_v = zeros(DType::kF32, {3});
    Buffer own_master(DType::kF32, {3}, {before.at(3 * index), before.at(3 * index + 1), before.at(3 * index + 2)});
    run(OpKind::kAdam, attributes, {&grad, &factor, &own_m, &own_v, &own_master}, member);
    for (std::int64_t i = 0; i < 6; ++i) {
      const bool own = i / 3 == index;
      EXPECT_EQ(master.at(i), own ? whole_master.at(i) : before.at(i));
      EXPECT_EQ(std::isnan(weight.at(i)), !own);
      if (!own) continue;
      EXPECT_EQ(weight.at(i), whole_weight.at(i));
      EXPECT_EQ(m.at(i % 3), whole_m.at(i));
      EXPECT_EQ(own_master.at(i % 3), whole_master.at(i));
    }
  }
}

TEST(Adam, RefusesPartsThatDoNotFit) {
  Buffer factor(DType::kF32, {1}, {1});
  Buffer three = zeros(DType::kF32, {3});
  Buffer seven = zeros(DType::kF32, {7});
  EXPECT_THROW(run(OpKind::kAdam, adam_attributes(), {&seven, &factor, &three, &three, &three}), InternalError);
}

}  // namespace
}  // namespace stepcast::kernels
