// Published steps of Llama 3.1 8B and 70B on H100 (the dgxc rows of scenarios/measured/published_runs.csv: NVIDIA's DGX
// Cloud benchmarking recipes for NeMo, 25.04.01) against the shipped H100 calibration, none of whose constants is
// fitted to a training step. Of the recipes: tensor-parallel groups with sequence parallelism, context parallelism 2,
// 70B with 5 virtual stages, micro batch 1, distributed optimizer, bf16, NVLS off, CUDA graphs. 70B overlaps
// tensor-parallel communication with matmuls, with the settings that NeMo ships for it: the scenario file has them.
// Both that and what it would take without is printed, for people.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "plan/scenario_reader.h"
#include "report/published_runs.h"
#include "tests/accuracy/step_seconds.h"

namespace stepcast {
namespace {

// As scenarios/runs/llama-3.1-70b-h100x64.yaml, but for the GPUs and the batch.
config::ScenarioSource overlapped_source(const report::PublishedRun& run) {
  config::ScenarioSource source;
  source.file = std::string(STEPCAST_SOURCE_DIR) + "/scenarios/runs/llama-3.1-70b-h100x64.yaml";
  source.settings.push_back(config::parse_setting("gpus=" + std::to_string(run.gpus)));
  source.settings.push_back(
      config::parse_setting("training.global_batch_size=" + std::to_string(run.global_batch_size)));
  return source;
}

config::ScenarioSource plain_source(const report::PublishedRun& run) {
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
  return source;
}

plan::Scenario resolved(const config::ScenarioSource& source) {
  plan::ReadScenario read = plan::read_scenario(source);
  plan::throw_if_violated(read);
  return read.scenario;
}

double predicted_seconds(const config::ScenarioSource& source) {
  return testing::step_seconds(resolved(source), "h100-default");
}

// The file is of these rows: its degrees are theirs.
void expect_degrees(const plan::Scenario& s, const report::PublishedRun& run) {
  EXPECT_EQ(s.plan.tp, run.tp) << run.id;
  EXPECT_EQ(s.plan.cp, run.cp) << run.id;
  EXPECT_EQ(s.plan.pp, run.pp) << run.id;
  EXPECT_EQ(s.plan.dp, run.dp) << run.id;
  EXPECT_EQ(s.training.sequence_length, run.sequence_length) << run.id;
}

struct MeanErrors {
  double as_run = 0;   // with tp_comm where there is tp
  double without = 0;  // without it
};

TEST(LlamaOnH100, StepsOfDgxCloudBenchmarks) {
  int rows = 0;
  MeanErrors sums;
  for (const report::PublishedRun& run : report::published_runs()) {
    if (!run.id.starts_with("dgxc-")) continue;
    const double without = predicted_seconds(plain_source(run));
    double predicted = without;
    if (run.tp > 1) {
      expect_degrees(resolved(overlapped_source(run)), run);
      predicted = predicted_seconds(overlapped_source(run));
    }
    const auto error = [&run](double seconds) { return seconds / run.step_time_s - 1; };
    std::printf(
        "%-9s %-14s %5d GPUs  TP%d CP%d PP%d DP%-3d %7.2f s predicted %+5.1f %%  %7.2f s without tp_comm "
        "%+5.1f %%  %7.2f s measured\n",
        run.id.c_str(), run.model.c_str(), static_cast<int>(run.gpus), static_cast<int>(run.tp),
        static_cast<int>(run.cp), static_cast<int>(run.pp), static_cast<int>(run.dp), predicted, 100 * error(predicted),
        without, 100 * error(without), run.step_time_s);
    // Each row's sign and size, so that a drift shows: 70B with communication hidden 8.3 to 8.7 % low, without 1.8 to
    // 2.1 %, 8B 2.7 to 3.1 %.
    EXPECT_GT(error(predicted), run.tp > 1 ? -0.10 : -0.04) << run.id;
    EXPECT_LT(error(predicted), run.tp > 1 ? -0.07 : -0.02) << run.id;
    EXPECT_GT(error(without), -0.04) << run.id;
    EXPECT_LT(error(without), -0.01) << run.id;
    sums.as_run += std::abs(error(predicted));
    sums.without += std::abs(error(without));
    ++rows;
  }
  ASSERT_EQ(rows, 11);
  std::printf("mean absolute error %.1f %%, without tp_comm %.1f %%\n", 100 * sums.as_run / rows,
              100 * sums.without / rows);
  // With communication hidden as the runs hid it, what is left too fast are the kernels themselves
  // (sim/cost/README.md).
  EXPECT_LE(sums.as_run / rows, 0.07);
  EXPECT_LE(sums.without / rows, 0.05);
}

}  // namespace
}  // namespace stepcast
