// plan.overlap.tp_comm in both engines: the same numbers to the bit, and less time that waits for tensor parallelism.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "plan/lowering.h"
#include "plan/scenario_reader.h"
#include "sim/cost/analytic.h"
#include "sim/prediction.h"
#include "tests/plan/tiny_scenario.h"
#include "tests/sim/shipped_calibration.h"

namespace stepcast {
namespace {

// The loss of two steps, and every gradient of the second.
std::vector<float> numbers_of(const plan::testing::TinyShape& shape, const plan::testing::TinyPlan& plan) {
  const program::CheckedProgram p(plan::lower(plan::testing::make_scenario(shape, plan)));
  exec::Executor executor(p, {});
  std::vector<float> numbers;
  for (int step = 0; step < 2; ++step) numbers.push_back(static_cast<float>(executor.run_step().loss.value()));
  for (std::size_t i = 0; i < p.program().parameters.size(); ++i) {
    const auto gradient = executor.gather_parameter(program::ParameterId(i), program::ShardKind::kGradient);
    numbers.insert(numbers.end(), gradient.begin(), gradient.end());
  }
  return numbers;
}

// A row of a product does not depend on the rows beside it, and chunks are summed in member order as a reduction does:
// in fp32 and, where each sum is rounded once, in bf16.
TEST(TensorOverlap, ChangesNoBit) {
  for (const program::DType compute : {program::DType::kF32, program::DType::kBf16}) {
    for (const std::int32_t tp : {2, 4}) {
      plan::testing::TinyShape shape;
      shape.compute = compute;
      plan::testing::TinyPlan plan{.name = "tp", .tp = tp, .sequence_parallel = true};
      const std::vector<float> whole = numbers_of(shape, plan);
      plan.tp_comm = true;
      EXPECT_EQ(numbers_of(shape, plan), whole) << "tp " << tp;
      plan.tp_ring_scatter = true;
      EXPECT_EQ(numbers_of(shape, plan), whole) << "tp " << tp;
    }
  }
}

struct TensorTimes {
  double step = 0;     // seconds
  double exposed = 0;  // of the step, waiting for tensor parallelism
};

// Llama 3.1 8B with TP8 on 8 H100; all ranks are alike.
TensorTimes times_of(bool tp_comm) {
  config::ScenarioSource source;
  for (const char* setting : {"model=llama-3.1-8b", "cluster=hgx-h100", "gpus=8", "training.sequence_length=8192",
                              "training.global_batch_size=4", "plan.tp=8"}) {
    source.settings.push_back(config::parse_setting(setting));
  }
  source.settings.push_back(config::parse_setting(std::string("plan.overlap.tp_comm=") + (tp_comm ? "true" : "false")));
  plan::ReadScenario read = plan::read_scenario(source);
  plan::throw_if_violated(read);
  const program::CheckedProgram p(plan::lower(read.scenario));
  const sim::AnalyticCostModel costs(read.scenario.cluster, testing::shipped_calibration("h100-default"), {});
  sim::SimOptions options;
  options.record_events = false;
  const sim::Prediction prediction = sim::simulate(p, costs, options);
  const sim::ClassResult& rank = prediction.classes.front();
  return {prediction.step.seconds(), rank.time.exposed[static_cast<std::size_t>(sim::Exposed::kTp)].seconds()};
}

// Of 6 transfers a layer that nothing hid, 7 of 8 parts of each hide behind the matmuls if those take longer; what the
// smaller matmuls lose, and what transfers slow them down by, is in the step.
TEST(TensorOverlap, HidesMostOfTheCommunicationOf8bOnOneNode) {
  const TensorTimes whole = times_of(false);
  const TensorTimes beside = times_of(true);
  std::printf("step %.4f s to %.4f s, exposed tp %.4f s to %.4f s\n", whole.step, beside.step, whole.exposed,
              beside.exposed);
  EXPECT_LT(beside.exposed, 0.7 * whole.exposed);
  EXPECT_LT(beside.step, whole.step);
}

}  // namespace
}  // namespace stepcast
