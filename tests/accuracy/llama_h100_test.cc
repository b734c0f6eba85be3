// Published steps of Llama 3.1 8B and 70B on H100 (the dgxc rows of scenarios/measured/published_runs.csv: NVIDIA's DGX
// Cloud benchmarking recipes for NeMo, 25.04.01) against the shipped H100 calibration, none of whose constants is
// fitted to a training step. Of the recipes: tensor-parallel groups with sequence parallelism, context parallelism 2,
// 70B with 5 virtual stages, micro batch 1, distributed optimizer, bf16, NVLS off. They overlap tensor-parallel
// communication with matmuls (plan.overlap.tp_comm), which is left off here, and use CUDA graphs. The table is printed
// for people.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "plan/scenario_reader.h"
#include "report/published_runs.h"
#include "tests/accuracy/step_seconds.h"

namespace stepcast {
namespace {

double predicted_seconds(const report::PublishedRun& run) {
  config::ScenarioSource source;
  const auto set = [&source](const std::string& field, const std::string& value) {
    source.settings.push_back(config::parse_setting(field + "=" + value));
  };
  set("model", run.model);
  set("cluster", run.gpus > 8 ? "hgx-h100-ndr400-rail" : "hgx-h100");
  set("gpus", std::to_string(run.gpus));
  set("training.sequence_length", std::to_string(run.sequence_length));
  set("training.global_batch_size", std::to_string(run.global_batch_size));
  set("plan.tp", std::to_string(run.tp));
  set("plan.cp", std::to_string(run.cp));
  set("plan.pp", std::to_string(run.pp));
  set("plan.vp", run.pp > 1 ? "5" : "1");
  set("stack.env.NCCL_NVLS_ENABLE", "0");
  plan::ReadScenario read = plan::read_scenario(source);
  plan::throw_if_violated(read);
  return testing::step_seconds(read.scenario, "h100-default");
}

TEST(LlamaOnH100, StepsOfDgxCloudBenchmarks) {
  int rows = 0;
  double sum = 0;
  for (const report::PublishedRun& run : report::published_runs()) {
    if (!run.id.starts_with("dgxc-")) continue;
    const double predicted = predicted_seconds(run);
    const double error = predicted / run.step_time_s - 1;
    std::printf("%-9s %-14s %5d GPUs  TP%d CP%d PP%d DP%-3d %7.2f s predicted %7.2f s measured %+5.1f %%\n",
                run.id.c_str(), run.model.c_str(), static_cast<int>(run.gpus), static_cast<int>(run.tp),
                static_cast<int>(run.cp), static_cast<int>(run.pp), static_cast<int>(run.dp), predicted,
                run.step_time_s, 100 * error);
    sum += std::abs(error);
    ++rows;
  }
  ASSERT_EQ(rows, 11);
  std::printf("mean absolute error %.1f %%\n", 100 * sum / rows);
  EXPECT_LE(sum / rows, 0.05);
}

}  // namespace
}  // namespace stepcast
