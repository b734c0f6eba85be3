// What torchtitan's Llama 3.1 8B holds on 8 and on 128 GPUs.
//
// FSDP2 shards 16 bytes a parameter: fp32 parameter, gradient and two moments. Of 8,030,261,248 parameters that is
// 14.96 GiB on each of 8 GPUs and 0.93 on each of 128: 14.02 GiB less. pytorch/torchtitan@b5bcd76,
// benchmarks/llama3_h100_202412_torchtitan.md, local batch 2 of 8,192 tokens, has peaks of reserved memory that differ
// by 82.4 - 67.0 = 15.4 GiB (eager) and 77.0 - 62.0 = 15.0 GiB (compiled); the rest is the allocator's.
#include <gtest/gtest.h>

#include <string>

#include "plan/lowering.h"
#include "program/check.h"
#include "program/lifetimes.h"
#include "tests/plan/scenario_text.h"

namespace stepcast::plan {
namespace {

constexpr double kGiB = 0x1p30;
constexpr double kParameters = 8'030'261'248;

program::Lifetimes lifetimes_on(int gpus) {
  const std::string text =
      "framework: torchtitan\nmodel: llama-3.1-8b\ncluster: hgx-h100-ndr400-rail\ngpus: " + std::to_string(gpus) +
      "\ntraining: {sequence_length: 8192, global_batch_size: " + std::to_string(2 * gpus) +
      "}\nplan: {micro_batch_size: 2}\n";
  ReadScenario read = read_text(text);
  throw_if_violated(read);
  const program::CheckedProgram p(lower(read.scenario));
  const program::RankProgramId id(0);
  return program::derive_lifetimes(p.program(), p.program().rank_programs[id], p.resolution(id));
}

double gib_of_states(const program::Lifetimes& lifetimes) {
  std::int64_t bytes = 0;
  for (const program::MemoryClass c :
       {program::MemoryClass::kWeights, program::MemoryClass::kGradients, program::MemoryClass::kOptimizer}) {
    bytes += lifetimes.persistent[static_cast<std::size_t>(c)];
  }
  return static_cast<double>(bytes) / kGiB;
}

TEST(TorchtitanMemory, StatesShrinkByFourteenGibibytesFrom8To128Gpus) {
  const program::Lifetimes eight = lifetimes_on(8);
  const program::Lifetimes many = lifetimes_on(128);
  EXPECT_NEAR(gib_of_states(eight), 16 * kParameters / 8 / kGiB, 0.001);
  EXPECT_NEAR(gib_of_states(many), 16 * kParameters / 128 / kGiB, 0.001);
  EXPECT_NEAR(gib_of_states(eight) - gib_of_states(many), 14.0, 0.2);
  // The same activations stand beside both, and what is gathered; what is cast or reduced on the way is sharded, too.
  EXPECT_NEAR(static_cast<double>(eight.peak - many.peak) / kGiB, 14.0, 0.2);
}

}  // namespace
}  // namespace stepcast::plan
