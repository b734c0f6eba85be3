// Cross-entropy over a vocabulary held by one or several ranks: values by hand, whole against split, gradient against
// central differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/kernels/tensors.h"

namespace stepcast::kernels {
namespace {

struct Result {
  double loss = 0;
  std::vector<Buffer> gradients;  // per holder
};

// What a plan does: the four kernels on every holder, with the reductions between them.
Result cross_entropy(std::vector<Buffer> logits, Buffer targets, double scale, DType statistics) {
  const auto holders = static_cast<std::int64_t>(logits.size());
  const std::int64_t tokens = targets.size();
  Buffer max(statistics, {tokens});
  Buffer sums = zeros(statistics, {2, tokens});
  for (std::int64_t h = 0; h < holders; ++h) {
    Buffer own(statistics, {tokens});
    run(OpKind::kCrossEntropyMax, {}, {&logits[static_cast<std::size_t>(h)], &own});
    for (std::int64_t t = 0; t < tokens; ++t) max.set(t, h == 0 ? own.at(t) : std::max(max.at(t), own.at(t)));
  }
  for (std::int64_t h = 0; h < holders; ++h) {
    Buffer own(statistics, {2, tokens});
    run(OpKind::kCrossEntropySum, {}, {&logits[static_cast<std::size_t>(h)], &max, &targets, &own},
        {.index = h, .index_count = holders});
    for (std::int64_t i = 0; i < own.size(); ++i) sums.set(i, sums.at(i) + own.at(i));
  }
  Buffer loss = zeros(statistics, {1});
  run(OpKind::kCrossEntropyLoss, with_value(scale), {&max, &sums, &loss});
  for (std::int64_t h = 0; h < holders; ++h) {
    run(OpKind::kCrossEntropyBackward, with_value(scale), {&max, &sums, &targets, &logits[static_cast<std::size_t>(h)]},
        {.index = h, .index_count = holders});
  }
  return {loss.at(0), std::move(logits)};
}

// Columns [first, first + width) of [tokens, vocab] logits.
Buffer columns(const Buffer& logits, std::int64_t tokens, std::int64_t first, std::int64_t width) {
  const std::int64_t vocab = logits.size() / tokens;
  Buffer result(logits.dtype(), {tokens, width});
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t v = 0; v < width; ++v) result.set(t * width + v, logits.at(t * vocab + first + v));
  }
  return result;
}

// Logits (0, ln 3) have probabilities (1/4, 3/4). Targets 0 and 1: loss = ln 4 + ln(4/3), gradient p - onehot. Scale
// 1/2.
TEST(CrossEntropy, MatchesValuesByHand) {
  const double ln3 = std::log(3.0);
  const Result r = cross_entropy({Buffer(DType::kF64, {2, 2}, {0, ln3, 0, ln3})}, Buffer(DType::kI32, {2}, {0, 1}), 0.5,
                                 DType::kF64);
  EXPECT_NEAR(r.loss, 0.5 * (std::log(4.0) + std::log(4.0 / 3.0)), 1e-15);
  const std::vector<double> expected = {-0.375, 0.375, 0.125, -0.125};
  for (std::int64_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(r.gradients[0].at(i), expected[static_cast<std::size_t>(i)], 1e-15);
  }
}

// Equal logits over V entries: loss is ln V whatever their common value; 1e4 would overflow without the maximum.
TEST(CrossEntropy, SurvivesLargeLogits) {
  const Result r = cross_entropy({Buffer(DType::kF32, {1, 4}, {1e4, 1e4, 1e4, 1e4})}, Buffer(DType::kI32, {1}, {2}),
                                 1.0, DType::kF32);
  EXPECT_NEAR(r.loss, std::log(4.0), 1e-3);  // 1e4 + ln 4 is formed in double; half a float step of 1e4 is 5e-4
}

// Targets fall on both holders. Splitting a double sum of 10 terms in two moves it by a few 2^-53.
TEST(CrossEntropy, SplitOverTwoHoldersEqualsTheWhole) {
  const Buffer logits = random_buffer(DType::kF64, {5, 10}, "logits");
  const Buffer targets(DType::kI32, {5}, {0, 4, 5, 9, 7});
  const Result whole = cross_entropy({logits}, targets, 0.2, DType::kF64);
  const Result split = cross_entropy({columns(logits, 5, 0, 5), columns(logits, 5, 5, 5)}, targets, 0.2, DType::kF64);
  EXPECT_NEAR(split.loss, whole.loss, 1e-14);
  for (std::int64_t h = 0; h < 2; ++h) {
    const Buffer expected = columns(whole.gradients[0], 5, 5 * h, 5);
    for (std::int64_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(split.gradients[static_cast<std::size_t>(h)].at(i), expected.at(i), 1e-15);
    }
  }
}

// See gradient_test.cc for step and tolerance. Both holders' logits are moved; the gradient of each is its own.
TEST(CrossEntropy, GradientOfBothHoldersMatchesCentralDifferences) {
  constexpr double kStep = 1e-5;
  const Buffer targets(DType::kI32, {3}, {1, 6, 4});
  std::vector<Buffer> logits = {random_buffer(DType::kF64, {3, 4}, "first"),
                                random_buffer(DType::kF64, {3, 4}, "second")};
  const Result r = cross_entropy(logits, targets, 2.0, DType::kF64);
  for (std::size_t h = 0; h < 2; ++h) {
    for (std::int64_t i = 0; i < logits[h].size(); ++i) {
      const double at = logits[h].at(i);
      logits[h].set(i, at + kStep);
      const double above = cross_entropy(logits, targets, 2.0, DType::kF64).loss;
      logits[h].set(i, at - kStep);
      const double below = cross_entropy(logits, targets, 2.0, DType::kF64).loss;
      logits[h].set(i, at);
      ASSERT_NEAR(r.gradients[h].at(i), (above - below) / (2 * kStep), 2e-6) << "holder " << h << " element " << i;
    }
  }
}

// The loss of a step is summed over microbatches.
TEST(CrossEntropy, LossIsAccumulated) {
  Buffer max(DType::kF32, {1}, {0});
  Buffer sums(DType::kF32, {2, 1}, {1, -2});  // log 1 + 0 - (-2) = 2
  Buffer loss(DType::kF32, {1}, {10});
  run(OpKind::kCrossEntropyLoss, with_value(0.25), {&max, &sums, &loss});
  EXPECT_EQ(loss.at(0), 10.5);
}

TEST(CrossEntropy, RefusesTargetsBeyondTheVocabulary) {
  Buffer logits = zeros(DType::kF32, {1, 4});
  Buffer max = zeros(DType::kF32, {1});
  Buffer targets(DType::kI32, {1}, {8});
  Buffer sums(DType::kF32, {2, 1});
  EXPECT_THROW(run(OpKind::kCrossEntropySum, {}, {&logits, &max, &targets, &sums}, {.index = 1, .index_count = 2}),
               InternalError);
}

}  // namespace
}  // namespace stepcast::kernels
