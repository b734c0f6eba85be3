// Peaks of allocated memory that others measured, against what the lowered Program keeps.
//
// MooreThreads/SimuMax@4dcaae5, docs/b200/b200_release_v1.2_summary.md: torch's allocated peak (the largest of any
// rank) of Megatron-LM 23e00ed with Transformer Engine 2.11 on 8 B200. Micro batch 1, bf16 with fp32 gradients,
// distributed optimizer, sequence parallelism, fused cross entropy, no recompute, nothing overlapped. Llama 3 70B is
// cut to 12 layers; 405B to 4, with 16 key-value heads as that repository's model file has it. The same peak stands
// there for 4, 8 and 32 microbatches. How sequences were split is not said; all-to-all is what its own model of context
// parallelism is of, and a ring would keep 0.4 to 2.1 % less than was measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "plan/lowering.h"
#include "plan/scenario_reader.h"
#include "program/check.h"
#include "program/lifetimes.h"

namespace stepcast::plan {
namespace {

struct Row {
  const char* model;
  int tp;
  int cp;
  int pp;
  int dp;
  int sequence;
  double measured_gib;
};

constexpr Row kRows[] = {
    {"llama-3.1-70b", 1, 1, 2, 4, 4096, 66.55},    {"llama-3.1-70b", 2, 1, 1, 4, 4096, 60.68},
    {"llama-3.1-70b", 4, 1, 1, 2, 4096, 39.07},    {"llama-3.1-405b", 1, 1, 2, 4, 4096, 87.08},
    {"llama-3.1-405b", 4, 1, 1, 2, 4096, 52.89},   {"llama-3.1-405b", 8, 1, 1, 1, 4096, 38.57},
    {"llama-3.1-70b", 2, 4, 1, 1, 32768, 68.43},   {"llama-3.1-405b", 1, 8, 1, 1, 32768, 139.22},
    {"llama-3.1-70b", 1, 8, 1, 1, 131072, 147.99},
};

double predicted_gib(const Row& row, int microbatches) {
  config::ScenarioSource source;
  const auto set = [&source](const std::string& field, const std::string& value) {
    source.settings.push_back(config::parse_setting(field + "=" + value));
  };
  const bool cut_70b = row.model == std::string("llama-3.1-70b");
  set("model.config", row.model);
  set("model.num_hidden_layers", cut_70b ? "12" : "4");
  if (!cut_70b) set("model.num_key_value_heads", "16");
  set("cluster", "hgx-b200");
  set("gpus", "8");
  set("framework", "megatron-core");
  set("training.sequence_length", std::to_string(row.sequence));
  set("training.global_batch_size", std::to_string(row.dp * microbatches));
  set("plan.tp", std::to_string(row.tp));
  set("plan.cp", std::to_string(row.cp));
  if (row.cp > 1) set("plan.cp_comm_type", "a2a");
  set("plan.pp", std::to_string(row.pp));
  set("plan.zero", "1");
  set("plan.overlap.grad_reduce", "false");
  ReadScenario read = read_scenario(source);
  throw_if_violated(read);
  const program::CheckedProgram p(lower(read.scenario));
  std::int64_t peak = 0;
  for (std::size_t i = 0; i < p.program().rank_programs.size(); ++i) {
    const program::RankProgramId id(i);
    peak = std::max(peak, program::derive_lifetimes(p.program(), p.program().rank_programs[id], p.resolution(id)).peak);
  }
  return static_cast<double>(peak) / 0x1p30;
}

TEST(MeasuredMemory, IsWhatMegatronAllocatesOnEightB200) {
  std::vector<double> errors;
  for (const Row& row : kRows) {
    // The long sequences were measured with 4 microbatches only.
    for (const int microbatches : row.cp > 1 ? std::vector{4} : std::vector{4, 8, 32}) {
      const double predicted = predicted_gib(row, microbatches);
      const double error = predicted / row.measured_gib - 1;
      errors.push_back(std::abs(error));
      std::printf("%-15s tp%d cp%d pp%d dp%d x %2d, sequence %6d: %6.2f GiB predicted, %6.2f measured, %+.2f %%\n",
                  row.model, row.tp, row.cp, row.pp, row.dp, microbatches, row.sequence, predicted, row.measured_gib,
                  100 * error);
      EXPECT_LT(std::abs(error), 0.005) << row.model;
    }
  }
  std::sort(errors.begin(), errors.end());
  EXPECT_LT(errors[errors.size() / 2], 0.002);
}

}  // namespace
}  // namespace stepcast::plan
