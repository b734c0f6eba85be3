// What a GPT-style layer keeps between its passes, read off lowered Programs, against the closed forms of Korthikanti
// et al. (2022, Reducing Activation Recomputation in Large Transformer Models, arXiv:2205.05198, section 4 and table
// 2).
//
// With s tokens, b sequences, h hidden, a heads, bf16, f = 4h and dropout:
//   attention   norm output 2sbh; q, k, v 6sbh; probabilities 2as^2b, their mask as^2b, dropped probabilities 2as^2b;
//               mixed values 2sbh; mask of the output sbh                                        11sbh + 5as^2b
//   MLP         norm output 2sbh; input and output of the activation 8sbh + 8sbh; mask sbh       19sbh
//   norms       their inputs 2sbh each                                                           4sbh
// in all sbh(34 + 5as/h). The paper leaves out the norms' statistics (its 2sb): here means and reciprocal deviations
// are f32, two norms of 2 * 4 bytes per token, 16sb, and are added to every form.
#include <gtest/gtest.h>

#include <cstdint>

#include "plan/lowering.h"
#include "program/check.h"
#include "program/lifetimes.h"
#include "tests/plan/tiny_scenario.h"

namespace stepcast::plan {
namespace {

using testing::TinyPlan;
using testing::TinyShape;

TinyShape gpt_shape() {
  TinyShape shape;
  shape.hidden = 32;
  shape.heads = 8;
  shape.kv_heads = 8;
  shape.ffn = 4 * shape.hidden;
  shape.sequence = 16;
  shape.global_batch = 2;
  shape.compute = program::DType::kBf16;
  return shape;
}

TinyPlan gpt_plan() {
  return {.name = "gpt",
          .micro_batch = 2,
          .norm = models::NormKind::kLayerNorm,
          .activation = models::Activation::kGeluTanh,
          .positions = models::PositionKind::kLearned,
          .biases = true,
          .dropout = 0.1,
          .attention = AttentionKind::kUnfused};
}

// Bytes of activations that one more layer adds to the peak: what it keeps.
std::int64_t bytes_per_layer(TinyShape shape, const TinyPlan& plan) {
  const auto peak = [&](std::int64_t layers) {
    shape.layers = layers;
    const program::CheckedProgram p(lower(make_scenario(shape, plan)));
    const program::RankProgramId id(0);
    const program::Lifetimes lifetimes =
        program::derive_lifetimes(p.program(), p.program().rank_programs[id], p.resolution(id));
    return lifetimes.class_peak[static_cast<std::size_t>(program::MemoryClass::kActivations)];
  };
  return peak(5) - peak(4);
}

// The sizes of the formulas.
struct Sizes {
  explicit Sizes(const TinyShape& x, const TinyPlan& p)
      : sb(x.sequence * p.micro_batch), sbh(sb * x.hidden), scores(x.heads * x.sequence * sb), t(p.tp) {}
  std::int64_t sb, sbh;
  std::int64_t scores;  // as^2b
  std::int64_t t;
};

TinyPlan with_tp(TinyPlan p, std::int32_t tp, bool sequence_parallel) {
  p.tp = tp;
  p.sequence_parallel = sequence_parallel;
  return p;
}

TinyPlan with_recompute(TinyPlan p, Recompute recompute) {
  p.recompute = recompute;
  return p;
}

constexpr Recompute kCore{RecomputeKind::kSelective, false, false, true};
constexpr Recompute kFull{RecomputeKind::kFull, false, false, false};

// sbh(34 + 5as/h), equation 1.
TEST(GptMemory, OneLayerKeepsEquation1) {
  const TinyPlan p = gpt_plan();
  const Sizes n(gpt_shape(), p);
  EXPECT_EQ(bytes_per_layer(gpt_shape(), p), 34 * n.sbh + 5 * n.scores + 16 * n.sb);
}

// sbh(10 + 24/t + 5as/(ht)), equation 2: norm inputs and outputs (8) and the two masks (2) are on every rank whole.
TEST(GptMemory, TensorParallelismKeepsEquation2) {
  for (const std::int32_t tp : {2, 4}) {
    const TinyPlan p = with_tp(gpt_plan(), tp, false);
    const Sizes n(gpt_shape(), p);
    EXPECT_EQ(bytes_per_layer(gpt_shape(), p), 10 * n.sbh + 24 * n.sbh / tp + 5 * n.scores / tp + 16 * n.sb) << tp;
  }
}

// sbh/t (34 + 5as/h), equation 4: sequence parallelism divides the rest, statistics included.
TEST(GptMemory, SequenceParallelismKeepsEquation4) {
  for (const std::int32_t tp : {2, 4}) {
    const TinyPlan p = with_tp(gpt_plan(), tp, true);
    const Sizes n(gpt_shape(), p);
    EXPECT_EQ(bytes_per_layer(gpt_shape(), p), (34 * n.sbh + 5 * n.scores + 16 * n.sb) / tp) << tp;
  }
}

// Selective recompute makes the attention core again and drops 5as^2b: 34sbh, equation 6 with t; its output, which the
// projection saves, stays.
TEST(GptMemory, SelectiveRecomputeDropsTheScores) {
  const Sizes n(gpt_shape(), gpt_plan());
  const auto bytes = [](const TinyPlan& p) { return bytes_per_layer(gpt_shape(), with_recompute(p, kCore)); };
  EXPECT_EQ(bytes(gpt_plan()), 34 * n.sbh + 16 * n.sb);
  EXPECT_EQ(bytes(with_tp(gpt_plan(), 2, false)), 10 * n.sbh + 12 * n.sbh + 16 * n.sb);
  EXPECT_EQ(bytes(with_tp(gpt_plan(), 2, true)), (34 * n.sbh + 16 * n.sb) / 2);
}

// Full recompute keeps a layer's input alone: 2sbh, on every rank whole without sequence parallelism.
TEST(GptMemory, FullRecomputeKeepsTheInput) {
  const Sizes n(gpt_shape(), gpt_plan());
  const auto bytes = [](const TinyPlan& p) { return bytes_per_layer(gpt_shape(), with_recompute(p, kFull)); };
  EXPECT_EQ(bytes(gpt_plan()), 2 * n.sbh);
  EXPECT_EQ(bytes(with_tp(gpt_plan(), 2, false)), 2 * n.sbh);
  EXPECT_EQ(bytes(with_tp(gpt_plan(), 2, true)), n.sbh);
}

// A fused kernel keeps the log-sum-exp, 4a bytes per token, in place of the score matrices.
TEST(GptMemory, FusedAttentionKeepsTheLogSumExp) {
  TinyPlan p = gpt_plan();
  p.attention = AttentionKind::kFused;
  const Sizes n(gpt_shape(), p);
  EXPECT_EQ(bytes_per_layer(gpt_shape(), p), 34 * n.sbh + 4 * gpt_shape().heads * n.sb + 16 * n.sb);
}

// Each term by what it depends on. Without dropout: no masks (as^2b and 2sbh) and no dropped probabilities (2as^2b).
TEST(GptMemory, DropoutAddsItsMasksAndTheDroppedProbabilities) {
  TinyPlan p = gpt_plan();
  const Sizes n(gpt_shape(), p);
  p.dropout = 0;
  EXPECT_EQ(bytes_per_layer(gpt_shape(), p), 32 * n.sbh + 2 * n.scores + 16 * n.sb);
}

// Twice the heads of half the size: only the score terms double.
TEST(GptMemory, ScoresGrowWithHeads) {
  TinyShape more = gpt_shape();
  more.heads = more.kv_heads = 16;
  const Sizes n(gpt_shape(), gpt_plan());
  EXPECT_EQ(bytes_per_layer(more, gpt_plan()) - bytes_per_layer(gpt_shape(), gpt_plan()), 5 * n.scores);
}

// A column of the MLP is kept before and after its activation, 4 bytes per token; with SwiGLU the gate comes to it: 6.
// RMSNorm has no means: 8 bytes per token less.
TEST(GptMemory, MlpAndNormsKeepWhatTheirKindNeeds) {
  TinyShape wide = gpt_shape();
  wide.ffn += 8;
  TinyPlan p = gpt_plan();
  const Sizes n(gpt_shape(), p);
  EXPECT_EQ(bytes_per_layer(wide, p) - bytes_per_layer(gpt_shape(), p), 4 * 8 * n.sb);
  p.activation = models::Activation::kSilu;
  EXPECT_EQ(bytes_per_layer(wide, p) - bytes_per_layer(gpt_shape(), p), 6 * 8 * n.sb);
  const std::int64_t layer_norm = bytes_per_layer(gpt_shape(), p);
  p.norm = models::NormKind::kRmsNorm;
  EXPECT_EQ(layer_norm - bytes_per_layer(gpt_shape(), p), 8 * n.sb);
}

// Learned positions are weights, gradients and states of the first stage only; vectors behind a reduction are on every
// tp rank. Parameters of tp ranks: matrices and their split biases by 2; norms, o and down biases and positions whole.
TEST(GptMemory, StatesCountEveryParameter) {
  TinyPlan p = gpt_plan();
  p.bucket_elements = 0;
  const auto parameters_of = [](const TinyPlan& plan) {
    const program::CheckedProgram checked(lower(make_scenario(gpt_shape(), plan)));
    const program::RankProgramId id(0);
    const program::Lifetimes lifetimes =
        program::derive_lifetimes(checked.program(), checked.program().rank_programs[id], checked.resolution(id));
    return lifetimes.persistent[static_cast<std::size_t>(program::MemoryClass::kWeights)] / 2;
  };
  const TinyShape x = gpt_shape();
  const std::int64_t h = x.hidden, layers = x.layers, positions = (x.sequence + 4) * h, tables = 2 * x.vocab * h;
  EXPECT_EQ(parameters_of(p), layers * (12 * h * h + 13 * h) + positions + tables + 2 * h);
  p.tp = 2;
  const std::int64_t split = layers * (12 * h * h + 7 * h) + tables;  // biases of qkv 3h and up 4h
  EXPECT_EQ(parameters_of(p), split / 2 + layers * 6 * h + positions + 2 * h);
}

}  // namespace
}  // namespace stepcast::plan
