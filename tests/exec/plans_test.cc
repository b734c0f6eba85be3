// Every parallel plan, executed, reproduces the single-rank losses and gradients.
//
// Bounds: losses within 1e-5 relative at every step; every gradient, before the optimizer step, within 1e-4 of max(its
// norm, 1e-4 of the global norm) at step 1; all gradients together within 1e-3 of the global norm later, when
// parameters have moved apart by rounding, which Adam makes as large as any update where a gradient is rounding only.
// The single-rank plan shares the kernels; their own errors are caught by finite differences in tests/kernels.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/exec/plan_runs.h"
#include "tests/plan/plan_table.h"
#include "tests/random_cases.h"

namespace stepcast::exec {
namespace {

using plan::testing::TinyPlan;
using plan::testing::TinyShape;

void expect_plan_equals_reference(const TinyShape& shape, const TinyPlan& p) {
  SCOPED_TRACE(p.name);
  const plan::Scenario scenario = plan::testing::make_scenario(shape, p);
  const RunRecord reference = execute(plan::single_rank_reference(scenario));
  const RunRecord run = execute(scenario);
  for (std::size_t step = 0; step < kSteps; ++step) {
    expect_within_bounds(reference, run, step);
  }
}

class Plans : public ::testing::TestWithParam<TinyPlan> {};

TEST_P(Plans, ReproduceTheSingleRank) { expect_plan_equals_reference(TinyShape{}, GetParam()); }

INSTANTIATE_TEST_SUITE_P(Table, Plans, ::testing::ValuesIn(stepcast::testing::sampled(plan::testing::plan_table())),
                         [](const auto& param) { return param.param.name; });

// The long form: eight layers. Run by `./stepcast test -L slow`.
class DeepPlans : public ::testing::TestWithParam<TinyPlan> {};

TEST_P(DeepPlans, ReproduceTheSingleRank) {
  TinyShape shape;
  shape.layers = 8;
  expect_plan_equals_reference(shape, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Table, DeepPlans,
                         ::testing::ValuesIn(stepcast::testing::sampled(plan::testing::plan_table_for(2))),
                         [](const auto& param) { return param.param.name; });

// bf16 (8 bits of precision, emulated): sums of different order differ by rounding, so losses are compared within 1e-2
// relative and gradients within 0.1 of their norm; a lost or doubled contribution errs by far more.
TEST(Bf16Plans, StayCloseToTheSingleRank) {
  TinyShape shape;
  shape.compute = program::DType::kBf16;
  for (const TinyPlan& p :
       {TinyPlan{.name = "tp2_sp_pp2", .tp = 2, .sequence_parallel = true, .pp = 2},
        TinyPlan{.name = "dp2_zero1", .dp = 2, .zero = 1}, TinyPlan{.name = "dp2_zero3", .dp = 2, .zero = 3},
        TinyPlan{.name = "dp2_pp2_bf16_gradients",
        .dp = 2,
        .pp = 2,
        .accumulation = plan::GradientAccumulation::kSeparate,
        .gradients = program::DType::kBf16},
        TinyPlan{.name = "tp2_unfused_loss", .tp = 2, .head_loss = plan::HeadLoss::kUnfused},
        TinyPlan{.name = "gpt_tp2_sp",
        .tp = 2,
        .sequence_parallel = true,
        .norm = models::NormKind::kLayerNorm,
        .activation = models::Activation::kGeluTanh,
        .positions = models::PositionKind::kLearned,
        .biases = true,
        .dropout = 0.1,
        .attention = plan::AttentionKind::kUnfused}}) {
    SCOPED_TRACE(p.name);
    const plan::Scenario scenario = plan::testing::make_scenario(shape, p);
    const Worst worst = compare_step(execute(plan::single_rank_reference(scenario)), execute(scenario), 0);
    EXPECT_LE(worst.loss, 1e-2);
    EXPECT_LE(worst.gradient, 0.1) << worst.parameter;
  }
}

// Gradients and moments stored as bf16, in the plan and in its reference: bounds as above, at the third step too, when
// rounded moments have been read twice; and the loss still falls.
TEST(Bf16States, StayCloseToTheSingleRank) {
  TinyShape shape;
  shape.compute = shape.gradients = shape.moments = program::DType::kBf16;
  for (const TinyPlan& p :
       {TinyPlan{.name = "dp2", .dp = 2}, TinyPlan{.name = "dp2_zero1", .dp = 2, .zero = 1},
        TinyPlan{.name = "dp2_zero2", .dp = 2, .zero = 2}, TinyPlan{.name = "dp2_zero3", .dp = 2, .zero = 3},
        TinyPlan{.name = "dp2_tp2_sp", .dp = 2, .tp = 2, .sequence_parallel = true, .zero = 1},
        TinyPlan{.name = "hsdp2x2_zero3", .dp = 4, .zero = 3, .replicate = 2}}) {
    SCOPED_TRACE(p.name);
    const plan::Scenario scenario = plan::testing::make_scenario(shape, p);
    const RunRecord reference = execute(plan::single_rank_reference(scenario));
    const RunRecord run = execute(scenario);
    const Worst worst = compare_step(reference, run, 0);
    EXPECT_LE(worst.loss, 1e-2);
    EXPECT_LE(worst.gradient, 0.1) << worst.parameter;
    EXPECT_LE(compare_step(reference, run, 2).loss, 1e-2);
    EXPECT_LT(run.steps[2].loss, run.steps[0].loss);
  }
}

// fp32 shards that are cast as they are gathered give the very bits of bf16 shards that the optimizer writes from its
// fp32 master copy: the same numbers are rounded, at another time.
TEST(Fp32Shards, GiveTheLossesOfAMasterCopy) {
  for (TinyPlan p : plan::testing::fp32_shard_plans()) {
    if (p.gradients == program::DType::kBf16) continue;
    SCOPED_TRACE(p.name);
    const RunRecord shards = execute(plan::testing::make_scenario(TinyShape{}, p));
    p.fp32_shards = false;
    TinyShape shape;
    shape.compute = program::DType::kBf16;
    const RunRecord master = execute(plan::testing::make_scenario(shape, p));
    for (std::size_t step = 0; step < kSteps; ++step) {
      EXPECT_EQ(shards.steps[step].loss, master.steps[step].loss) << step;
      EXPECT_EQ(shards.steps[step].gradients, master.steps[step].gradients) << step;
    }
  }
}

// Reduced in bf16, gradients are rounded once each microbatch, but summed in fp32: bounds as above.
TEST(Fp32Shards, StayCloseToTheSingleRank) {
  for (const TinyPlan& p : plan::testing::fp32_shard_plans()) {
    SCOPED_TRACE(p.name);
    const plan::Scenario scenario = plan::testing::make_scenario(TinyShape{}, p);
    const RunRecord reference = execute(plan::single_rank_reference(scenario));
    const RunRecord run = execute(scenario);
    const Worst worst = compare_step(reference, run, 0);
    EXPECT_LE(worst.loss, 1e-2);
    EXPECT_LE(worst.gradient, 0.1) << worst.parameter;
    EXPECT_LT(run.steps[2].loss, run.steps[0].loss);
  }
}

// The attention of a stack without a fused kernel is the same function, with the same masks: losses within rounding.
TEST(UnfusedAttention, GivesTheLossesOfTheFusedKernel) {
  TinyPlan p{.name = "fused", .tp = 2, .positions = models::PositionKind::kAlibi, .dropout = 0.1};
  const RunRecord fused = execute(plan::testing::make_scenario(TinyShape{}, p));
  p.attention = plan::AttentionKind::kUnfused;
  const RunRecord unfused = execute(plan::testing::make_scenario(TinyShape{}, p));
  for (std::size_t step = 0; step < kSteps; ++step) {
    expect_within_bounds(fused, unfused, step);
  }
}

// Dropout acts, and anew in every step: the loss of a step differs from that of the same model without it.
TEST(Dropout, ChangesTheLoss) {
  TinyPlan p{.name = "plain"};
  const RunRecord plain = execute(plan::testing::make_scenario(TinyShape{}, p));
  p.dropout = 0.5;
  const RunRecord dropped = execute(plan::testing::make_scenario(TinyShape{}, p));
  EXPECT_GT(std::abs(dropped.steps[0].loss - plain.steps[0].loss), 1e-4);
}

// Adam moves parameters: the loss of a fixed batch falls.
TEST(Training, LossFallsOverSteps) {
  const RunRecord run = execute(plan::testing::make_scenario(TinyShape{}, TinyPlan{.name = "single"}));
  EXPECT_LT(run.steps[2].loss, run.steps[0].loss);
}

// Small initial weights give nearly uniform predictions: the first loss is close to log(64) = 4.159.
TEST(Training, FirstLossIsNearUniform) {
  const RunRecord run = execute(plan::testing::make_scenario(TinyShape{}, TinyPlan{.name = "single"}));
  EXPECT_NEAR(run.steps[0].loss, std::log(64.0), 0.05);
}

}  // namespace
}  // namespace stepcast::exec
