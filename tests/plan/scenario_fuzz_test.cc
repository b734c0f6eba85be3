// The reader answers any text with a scenario or with stepcast::Error.
#include <gtest/gtest.h>

#include "base/check.h"
#include "tests/fuzz/mutate.h"
#include "tests/plan/scenario_text.h"
#include "tests/random_cases.h"

namespace stepcast::plan {
namespace {

constexpr std::uint64_t kSeed = 20261129;

constexpr const char* kWide = R"(schema: stepcast/scenario/1
framework: megatron-core
model: {config: llama-3.1-8b, num_hidden_layers: 30}
gpus: 16
cluster: {base: hgx-h100-roce400-rail, nic: {rate: 200 Gb/s}, fabric: {unit_nodes: 2, oversubscription: [1, 2]}}
placement: {nodes: scattered, seed: 3, exclude: [1]}
training:
  sequence_length: 8192
  global_batch_tokens: 1 Mitok
  precision: {compute: bf16, params: bf16, grads: fp32, grad_reduce: fp32}
  optimizer: {name: adamw, master: fp32, moments: fp32, betas: [0.9, 0.95], clip: true}
  data_stall: 0 us
plan: {tp: 2, pp: 2, vp: 2, layout: "Et*7|(t*8|)*2t*7L", schedule: interleaved_1f1b, zero: 1, bucket: 25 MiB,
       recompute: {granularity: selective, modules: [core_attn]}, overlap: {grad_reduce: true}}
stack: {env: {NCCL_ALGO: Ring}, cuda_graphs: none}
perturb: [{node: 2, nic: 3, bandwidth: 0.5}, {group: "dp:1", compute: 1.03}, {stage: 1, latency: 1 us}]
jitter: {compute_sigma: 0.02, samples: 100}
)";

TEST(ScenarioFuzz, AnswersAnyTextWithAScenarioOrAnError) {
  const fuzz::Mutator mutator(
      kSeed, {kTiny, kWide},
      {"plan",   "tp",      "layout",  "[1, 3]",   "Et|(t)*2|L", "16777216", "selective[layernorm]",
       "gpus",   "4 Mitok", "extends", "run.yaml", "vpp",        "sp",       "zero",
       "model",  "base",    "rank",    "node",     "nic",        "1e9",      "gpus_per_node",
       "custom", "0.5"});
  const ScratchFolder folder;
  config::ScenarioSource source;
  std::uint64_t valid = 0;
  std::uint64_t refused = 0;
  const std::uint64_t cases = stepcast::testing::random_cases(1500);
  for (std::uint64_t i = 0; i < cases; ++i) {
    source.file = folder.write("run.yaml", mutator.text_at(i));
    try {
      read_scenario(source);
      ++valid;
    } catch (const Error& fault) {
      EXPECT_FALSE(fault.problems().empty());
      ++refused;
    } catch (const std::exception& fault) {
      FAIL() << "case " << i << ": " << fault.what() << "\n" << mutator.text_at(i);
    }
  }
  // Neither all nothing: the mutations reach past the parser, and some still mean something.
  EXPECT_GT(valid, cases / 300);
  EXPECT_GT(refused, cases / 3 * 2);
}

TEST(ScenarioFuzz, AnswersAnySettingWithAScenarioOrAnError) {
  const fuzz::Mutator mutator(kSeed + 1, {"plan.tp=4", "perturb=[{node: 187, compute: 1.03}]", "plan.layout=Ett|ttL",
                                          "model.num_hidden_layers=8", "plan={tp: 2, pp: 1}", "cluster=hgx-h100"});
  const ScratchFolder folder;
  config::ScenarioSource source;
  source.file = folder.write("run.yaml", kTiny);
  for (std::uint64_t i = 0; i < stepcast::testing::random_cases(1500); ++i) {
    try {
      source.settings = {config::parse_setting(mutator.text_at(i))};
      read_scenario(source);
    } catch (const Error& fault) {
      EXPECT_FALSE(fault.problems().empty());
    } catch (const std::exception& fault) {
      FAIL() << "case " << i << ": " << fault.what() << "\n" << mutator.text_at(i);
    }
  }
}

}  // namespace
}  // namespace stepcast::plan
