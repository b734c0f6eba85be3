// Parallel plans run with the fast CPU kernels reproduce the single rank that runs the reference kernels: by the bounds
// of plans_test.cc, f32 and bf16. So both the plan and the kernels are judged.
#include <gtest/gtest.h>

#include "exec/rank_placement.h"
#include "kernels/cpu_fast/fast.h"
#include "tests/exec/plan_runs.h"
#include "tests/plan/plan_table.h"
#include "tests/random_cases.h"

namespace stepcast::exec {
namespace {

using plan::testing::TinyPlan;
using plan::testing::TinyShape;

ExecOptions fast_options(int threads) {
  ExecOptions options;
  options.kernel_of = &kernels::fast_kernel;
  options.stream_state = &kernels::fast_state;
  options.cores.threads = threads;
  options.poison = true;
  return options;
}

// Every third plan of the table: each of its families in several degrees.
std::vector<TinyPlan> sampled_table() {
  std::vector<TinyPlan> plans;
  const std::vector<TinyPlan> table = plan::testing::plan_table();
  for (std::size_t i = 0; i < table.size(); i += 3) plans.push_back(table[i]);
  return stepcast::testing::sampled(plans);
}

class FastPlans : public ::testing::TestWithParam<TinyPlan> {};

TEST_P(FastPlans, ReproduceTheSingleRank) {
  const plan::Scenario scenario = plan::testing::make_scenario(TinyShape{}, GetParam());
  const RunRecord reference = execute(plan::single_rank_reference(scenario));
  const RunRecord run = execute(scenario, fast_options(1));
  for (std::size_t step = 0; step < kSteps; ++step) expect_within_bounds(reference, run, step);
}

INSTANTIATE_TEST_SUITE_P(Table, FastPlans, ::testing::ValuesIn(sampled_table()),
                         [](const auto& param) { return param.param.name; });

TEST(FastBf16Plans, StayCloseToTheSingleRank) {
  TinyShape shape;
  shape.compute = program::DType::kBf16;
  for (const TinyPlan& p :
       {TinyPlan{.name = "single"}, TinyPlan{.name = "tp2_sp_pp2", .tp = 2, .sequence_parallel = true, .pp = 2},
        TinyPlan{.name = "dp2_zero3", .dp = 2, .zero = 3}, TinyPlan{.name = "cp2", .cp = 2},
        TinyPlan{.name = "gpt_tp2_sp",
        .tp = 2,
        .sequence_parallel = true,
        .norm = models::NormKind::kLayerNorm,
        .activation = models::Activation::kGeluTanh,
        .positions = models::PositionKind::kLearned,
        .biases = true,
        .dropout = 0.1}}) {
    SCOPED_TRACE(p.name);
    const plan::Scenario scenario = plan::testing::make_scenario(shape, p);
    const Worst worst =
        compare_step(execute(plan::single_rank_reference(scenario)), execute(scenario, fast_options(1)), 0);
    EXPECT_LE(worst.loss, 1e-2);
    EXPECT_LE(worst.gradient, 0.1) << worst.parameter;
  }
}

// Two threads a kernel, on cores of their own: the same losses and gradients, to the bit, at every run.
TEST(FastKernels, RepeatWithAFixedNumberOfThreads) {
  if (RankPlacement({}, 1).threads() < 2) GTEST_SKIP() << "this process may use one core only";
  ExecOptions options = fast_options(2);
  options.cores.bind = true;
  const plan::Scenario scenario = plan::testing::make_scenario(TinyShape{}, {.name = "tp2_pp2", .tp = 2, .pp = 2});
  const RunRecord first = execute(scenario, options);
  const RunRecord second = execute(scenario, options);
  for (std::size_t step = 0; step < kSteps; ++step) {
    EXPECT_EQ(first.steps[step].loss, second.steps[step].loss) << step;
    EXPECT_EQ(first.steps[step].gradients, second.steps[step].gradients) << step;
  }
}

}  // namespace
}  // namespace stepcast::exec
