// Initial values and gather_parameter: blocks, roles, slices of flat buffers, types.
#include <gtest/gtest.h>

#include <cmath>

#include "exec/executor.h"
#include "exec/shards.h"
#include "program/builder.h"
#include "tests/exec/tiny_program.h"

namespace stepcast::exec {
namespace {

using program::DType;
using program::ShardKind;

// (global, stored) pairs of member `index` of a group.
std::vector<std::pair<std::int64_t, std::int64_t>> elements(const program::Parameter& parameter,
                                                            const program::ParameterShard& shard, std::uint32_t index) {
  program::Rank rank;
  rank.memberships = {program::Membership{program::GroupId(0), index}};
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  visit_elements(parameter, shard, rank,
                 [&](std::int64_t global, std::int64_t stored) { pairs.emplace_back(global, stored); });
  return pairs;
}

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

program::AxisRule fixed(std::int64_t begin, std::int64_t count) { return {begin, count, {}, 0}; }
program::AxisRule by_role(std::int64_t begin, std::int64_t count, std::int64_t step) {
  return {begin, count, program::RoleId(0), step};
}

// A [4, 3] parameter in two blocks of one row each, the second index's rows 1 and 3: elements 3 4 5 and 9 10 11.
TEST(Shards, StackBlocksAlongRows) {
  const program::Parameter parameter{.name = "w", .rows = 4, .cols = 3, .std = 1};
  program::ParameterShard shard;
  shard.blocks = {{by_role(0, 1, 1), fixed(0, 3)}, {by_role(2, 1, 1), fixed(0, 3)}};
  EXPECT_EQ(elements(parameter, shard, 1), (Pairs{{3, 0}, {4, 1}, {5, 2}, {9, 3}, {10, 4}, {11, 5}}));
}

// Columns 2 and 3 of a [2, 4] parameter: elements 2 3 6 7.
TEST(Shards, CutColumns) {
  const program::Parameter parameter{.name = "w", .rows = 2, .cols = 4, .std = 1};
  program::ParameterShard shard;
  shard.blocks = {{fixed(0, 2), by_role(0, 2, 2)}};
  EXPECT_EQ(elements(parameter, shard, 1), (Pairs{{2, 0}, {3, 1}, {6, 2}, {7, 3}}));
}

// A [2, 3] parameter at flat elements 2..7, chunks of 4: member 0 holds flat 2 and 3 (its stored 2 and 3), member 1
// flat 4..7 (its stored 0..3), member 2, which holds flat 8..11, nothing. Uncut, stored elements are flat ones.
TEST(Shards, CutFlatBuffersIntoChunks) {
  const program::Parameter parameter{.name = "w", .rows = 2, .cols = 3, .std = 1};
  program::ParameterShard shard;
  shard.blocks = {{fixed(0, 2), fixed(0, 3)}};
  shard.slice = program::FlatSlice{.role = program::RoleId(0), .chunk = 4, .offset = 2};
  EXPECT_EQ(elements(parameter, shard, 0), (Pairs{{0, 2}, {1, 3}}));
  EXPECT_EQ(elements(parameter, shard, 1), (Pairs{{2, 0}, {3, 1}, {4, 2}, {5, 3}}));
  EXPECT_EQ(elements(parameter, shard, 2), Pairs{});
  shard.slice->uncut = true;
  EXPECT_EQ(elements(parameter, shard, 1), (Pairs{{2, 4}, {3, 5}, {4, 6}, {5, 7}}));
}

// Two members hold half of [2, 4] each: the weight in bf16 at an offset of 2 elements, master and moments in f32.
program::CheckedProgram two_holders(program::Init init) {
  program::ProgramBuilder builder("shards");
  builder.set_seed(tiny::kSeed);
  const auto role = builder.role("tp");
  const auto w = builder.parameter({.name = "w", .rows = 2, .cols = 4, .init = init, .std = 0.5});
  program::RankProgramBuilder rank("r");
  const auto weights = rank.buffer("weights", 6 * 2, program::MemoryClass::kWeights, true);
  const auto master = rank.buffer("master", 4 * 4, program::MemoryClass::kOptimizer, true);
  const auto moment = rank.buffer("moment", 4 * 4, program::MemoryClass::kOptimizer, true);
  const std::vector<program::ShardBlock> blocks{{{0, 1, role, 1}, {0, 4, {}, 0}}};
  rank.add_shard({w, ShardKind::kWeight, weights, 4, DType::kBf16, blocks, {}});
  rank.add_shard({w, ShardKind::kMaster, master, 0, DType::kF32, blocks, {}});
  rank.add_shard({w, ShardKind::kMoment1, moment, 0, DType::kF32, blocks, {}});
  const auto id = builder.rank_program(rank.take());
  const auto r0 = builder.rank(id, 0);
  const auto r1 = builder.rank(id, 1);
  builder.group(role, {r0, r1});
  return program::CheckedProgram(builder.take());
}

TEST(Shards, StartFromSeedNameAndGlobalIndex) {
  const auto checked = two_holders(program::Init::kNormal);
  const Executor executor(checked, {});
  const auto weight = tiny::gathered(checked, executor, "w", ShardKind::kWeight);
  const auto master = tiny::gathered(checked, executor, "w", ShardKind::kMaster);
  ASSERT_EQ(weight.size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) {
    const auto index = static_cast<std::int64_t>(i);
    EXPECT_EQ(master[i], tiny::initial("w", index));
    EXPECT_EQ(weight[i], tiny::initial("w", index, DType::kBf16));
  }
  EXPECT_EQ(tiny::gathered(checked, executor, "w", ShardKind::kMoment1), std::vector<float>(8, 0.0F));
  // Nobody holds a gradient.
  for (const float g : tiny::gathered(checked, executor, "w", ShardKind::kGradient)) EXPECT_TRUE(std::isnan(g));
}

TEST(Shards, StartAsOnes) {
  const auto checked = two_holders(program::Init::kOnes);
  const Executor executor(checked, {});
  EXPECT_EQ(tiny::gathered(checked, executor, "w", ShardKind::kWeight), std::vector<float>(8, 1.0F));
}

TEST(Executor, ReadsTheLossOfTheFirstRankThatHasOne) {
  tiny::World world(2);
  const auto loss = world.shard(1, "x", 1, 1, 0, 0, 1);
  world.at(1).set_loss(loss);
  const auto checked = world.take();
  Executor executor(checked, {});
  EXPECT_EQ(executor.run_step().loss, tiny::initial("x", 0));
}

}  // namespace
}  // namespace stepcast::exec
