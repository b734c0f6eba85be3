// The shipped scenarios of published runs: what they resolve to, and the memory of the 405B plan by hand.
#include <gtest/gtest.h>

#include "plan/lowering.h"
#include "plan/schedule.h"
#include "program/lifetimes.h"
#include "program/resolve.h"
#include "tests/plan/scenario_text.h"

namespace stepcast::plan {
namespace {

using program::MemoryClass;

ReadScenario read_valid_run(const std::string& name, const std::vector<std::string>& settings = {}) {
  config::ScenarioSource source;
  source.file = std::string(STEPCAST_SOURCE_DIR) + "/scenarios/runs/" + name;
  for (const std::string& setting : settings) source.settings.push_back(config::parse_setting(setting));
  ReadScenario read = read_scenario(source);
  EXPECT_TRUE(read.violations.empty()) << to_text(read.violations);
  return read;
}

constexpr const char* kLarge = "llama-3.1-405b-h100x16384.yaml";

// 126 layers, embedding and loss are 128 parts in 128 virtual stages: stage 0 is the embedding alone, stage 127 the
// loss alone. Stage s is on rank s mod 16: 7 layers on ranks 0 and 15, 8 on the others. Microbatches: 2048 / 128.
TEST(PublishedScenarios, Llama405bHasItsPlan) {
  const Scenario s = read_valid_run(kLarge).scenario;
  EXPECT_EQ(s.plan.dp, 128);
  EXPECT_EQ(s.microbatches(), 16);
  EXPECT_EQ(s.cluster.nodes, 2048);
  EXPECT_EQ(s.cluster.fabric.kind, topology::FabricKind::kFatTree);
  EXPECT_EQ(s.cluster.fabric.pod_nodes * 8, 3072);
  EXPECT_DOUBLE_EQ(s.cluster.fabric.spine_oversubscription, 7);
  ASSERT_EQ(s.plan.layout.size(), 128u);
  EXPECT_TRUE(s.plan.layout.front().embedding);
  EXPECT_TRUE(s.plan.layout.back().loss);
  std::vector<std::int64_t> layers(16, 0);
  for (std::size_t stage = 0; stage < 128; ++stage) layers[stage % 16] += s.plan.layout[stage].layers;
  EXPECT_EQ(layers.front(), 7);
  EXPECT_EQ(layers.back(), 7);
  for (std::size_t rank = 1; rank < 15; ++rank) EXPECT_EQ(layers[rank], 8) << rank;
  // tp fastest, then pp: the 16 stages of a replica are neighbours, rank 8 is its second stage.
  EXPECT_EQ(mesh_of(s).coordinate(8, "pp"), 1);
  EXPECT_EQ(mesh_of(s).coordinate(128, "dp"), 1);
}

// The same 2,048 sequences over half the replicas: 32 microbatches.
TEST(PublishedScenarios, Llama405bOn8192HasTwiceTheMicrobatches) {
  const Scenario s = read_valid_run("llama-3.1-405b-h100x8192.yaml").scenario;
  EXPECT_EQ(s.name, "llama-3.1-405b-h100x8192");
  EXPECT_EQ(s.plan.dp, 64);
  EXPECT_EQ(s.microbatches(), 32);
  EXPECT_EQ(s.cluster.nodes, 1024);
}

// 2 (15 - r) + 7 * 16 passes of 128: rank 7 would warm up 128, all there are; rank 8 has 14 + 112 = 126.
TEST(PublishedScenarios, Llama405bWarmUpIsCapped) {
  const ScheduleShape shape{ScheduleKind::kInterleaved1F1B, 16, 8, 16, 16};
  EXPECT_EQ(warmup_passes(shape, 0), 128);
  EXPECT_EQ(warmup_passes(shape, 7), 128);
  EXPECT_EQ(warmup_passes(shape, 8), 126);
}

// Second pipeline rank, 8 layers, tp 8 (1,024 tokens of 8,192 per rank between projections).
// Parameters of a layer: qkv 16384 x (128 + 2*8)*128 = 16384 x 18432, out 16384 x 16384, gate and up 16384 x 106496,
// down 53248 x 16384: 3,187,671,040, an eighth of it 398,458,880, and two norms of 16,384: 398,491,648; eight:
// 3,187,933,184. States: 2 + 4 + 12/128 = 6.09375 bytes each: 18.09 GiB, and padding of the buckets to multiples of
// 128. Beside them one placeholder of 2 bytes for each of the four shapes of a layer, 2 x 398,458,880. Kept per layer
// without recompute: input, middle and two norms 4 x 1024 x 16384 x 2, their two f32 statistics 2 x 4096, qkv 8192 x
// 2304 x 2, attention 8192 x 2048 x 2, log-sum-exp 8192 x 16 x 4, gate and up 8192 x 13312 x 2, their product 8192 x
// 6656 x 2: 533,209,088 bytes; 128 of them 63.56 GiB. Recomputing norms and the product leaves out two norms
// (67,108,864), the statistics (8,192) and the product (109,051,904): 357,040,128 bytes; 128 of them 42.56 GiB.
TEST(PublishedScenarios, Llama405bMemoryByHand) {
  constexpr double kGiB = 1073741824.0;
  const auto lifetimes = [](const Scenario& s) {
    const program::Program p = lower(s);
    const program::RankProgram& stage = p.rank_programs[program::RankProgramId(1)];
    return program::derive_lifetimes(p, stage, program::resolve(p, stage));
  };
  const auto of = [](const program::ClassBytes& bytes, MemoryClass c) {
    return static_cast<double>(bytes[static_cast<std::size_t>(c)]);
  };
  const program::Lifetimes kept = lifetimes(read_valid_run(kLarge).scenario);
  const double states = of(kept.persistent, MemoryClass::kWeights) + of(kept.persistent, MemoryClass::kGradients) +
                        of(kept.persistent, MemoryClass::kOptimizer);
  const double placeholders = 2 * 398'458'880.0;
  EXPECT_NEAR(states, 3'187'933'184.0 * 6.09375 + placeholders, 1e5);
  EXPECT_NEAR((states - placeholders) / kGiB, 18.1, 0.05);
  const double recomputed = of(kept.class_peak, MemoryClass::kActivations);
  const double whole =
      of(lifetimes(read_valid_run(kLarge, {"plan.recompute=none"}).scenario).class_peak, MemoryClass::kActivations);
  // Beside the 128 layers one backward pass is under way: its gathered tensors (two of 8192 x 16384 x 2), gradients of
  // gate and up, of the product and of the input (208 + 104 + 32 MiB): below 1 GiB.
  EXPECT_GE(whole, 128 * 533'209'088.0);
  EXPECT_LE(whole, 128 * 533'209'088.0 + kGiB);
  EXPECT_GE(recomputed, 128 * 357'040'128.0);
  EXPECT_LE(recomputed, 128 * 357'040'128.0 + kGiB);
  EXPECT_GT(states + whole, 79.65 * kGiB);  // what the driver reports of 80 GB
  EXPECT_LT(states + recomputed, 62.5 * kGiB);
}

TEST(PublishedScenarios, Nanotron3bCrossesTheNodeAtTp16) {
  const Scenario one = read_valid_run("nanotron-3b-h100x8.yaml").scenario;
  EXPECT_EQ(one.cluster.nodes, 1);
  EXPECT_EQ(one.microbatches(), 1);
  EXPECT_TRUE(one.model.tied_embeddings);
  const Scenario two = read_valid_run("nanotron-3b-h100x16.yaml").scenario;
  EXPECT_EQ(two.cluster.nodes, 2);
  EXPECT_EQ(two.plan.tp, 16);
  EXPECT_EQ(two.plan.dp, 1);
  EXPECT_TRUE(two.plan.sequence_parallel);
  EXPECT_EQ(two.microbatches(), 1);
  EXPECT_EQ(two.plan.micro_batch_size, 40);
  EXPECT_EQ(two.cluster.node.nic.kind, topology::NicKind::kEfa);
}

}  // namespace
}  // namespace stepcast::plan
