// Shards of one parameter [8, 6] that two ranks of role dp hold, in a buffer of 48 f32.
#include <gtest/gtest.h>

#include <limits>

#include "tests/program/problems.h"
#include "tests/program/sketch.h"

namespace stepcast::program {
namespace {

using testing::joined;
using testing::only_problem_has;
using testing::problems_of;
using testing::Sketch;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

// The role is role 0.
ParameterShard rows_shard(AxisRule rows) {
  ParameterShard shard;
  shard.blocks = {{rows, {0, 6, {}, 0}}};
  return shard;
}

std::vector<std::string> check(ParameterShard shard, bool grouped = true) {
  ProgramBuilder b("p");
  const RoleId dp = b.role("dp");
  shard.parameter = b.parameter({"w", 8, 6, Init::kNormal, 0.02});
  Sketch s(b, "r");
  shard.buffer = s.builder().at(s.tensor("weights", 48)).buffer;
  s.builder().add_shard(std::move(shard));
  const RankProgramId id = b.rank_program(s.builder().take());
  const std::vector<RankId> ranks = {b.rank(id, 0), b.rank(id, 1)};
  if (grouped) b.group(dp, ranks);
  return problems_of(b.take());
}

TEST(CheckShards, KeepsBlocksInsideTheParameter) {
  EXPECT_EQ(joined(check(rows_shard({0, 8, {}, 0}))), "");
  EXPECT_TRUE(only_problem_has(check(rows_shard({1, 8, {}, 0})), {"shard 0 of w", "leaves the 8 rows"}));
  // Rows 4 * index to 4 * index + 4, for members 0 and 1; with 5 rows or a step of 5, member 1 ends at 9.
  EXPECT_EQ(joined(check(rows_shard({0, 4, RoleId(0), 4}))), "");
  EXPECT_FALSE(check(rows_shard({0, 5, RoleId(0), 4})).empty());
  EXPECT_FALSE(check(rows_shard({0, 4, RoleId(0), 5})).empty());
  // Member 1 would begin at row -1.
  EXPECT_FALSE(check(rows_shard({0, 4, RoleId(0), -1})).empty());
}

TEST(CheckShards, ComputesExtentsWithoutOverflow) {
  EXPECT_FALSE(check(rows_shard({kMax, 2, {}, 0})).empty());
  EXPECT_FALSE(check(rows_shard({kMax, 2, RoleId(0), kMax})).empty());
  ParameterShard shard = rows_shard({0, 8, {}, 0});
  shard.slice = FlatSlice{RoleId(0), kMax, kMax, false};
  EXPECT_FALSE(check(shard).empty());
}

TEST(CheckShards, KeepsTheStorageInsideTheBuffer) {
  // 24 elements of 4 bytes from byte 96 on end at 192, the buffer's size.
  ParameterShard shard = rows_shard({0, 4, {}, 0});
  shard.byte_offset = 96;
  EXPECT_EQ(joined(check(shard)), "");
  shard.byte_offset = 100;
  EXPECT_TRUE(only_problem_has(check(shard), {"24 f32 at byte 100 leave buffer weights of 192"}));
}

TEST(CheckShards, KeepsSlicesInsideTheirFlatBuffer) {
  // 48 elements in two chunks of 24; the member stores one of them, or both when uncut.
  ParameterShard shard = rows_shard({0, 8, {}, 0});
  shard.slice = FlatSlice{RoleId(0), 24, 0, false};
  EXPECT_EQ(joined(check(shard)), "");
  shard.byte_offset = 96;
  EXPECT_EQ(joined(check(shard)), "");
  shard.slice->uncut = true;
  EXPECT_TRUE(only_problem_has(check(shard), {"48 f32 at byte 96 leave buffer weights of 192"}));
  shard.byte_offset = 0;
  EXPECT_EQ(joined(check(shard)), "");
  shard.slice->offset = 1;
  EXPECT_TRUE(only_problem_has(check(shard), {"48 elements at 1 leave 2 chunks of 24"}));
  shard.slice = FlatSlice{RoleId(0), 0, 0, false};
  EXPECT_TRUE(only_problem_has(check(shard), {"chunk of its slice must be at least 1"}));
}

TEST(CheckShards, WantsTheRankToBeAMemberOfTheirRoles) {
  EXPECT_EQ(check(rows_shard({0, 4, RoleId(0), 4}), false).size(), 2U);  // two ranks
  ParameterShard shard = rows_shard({0, 8, {}, 0});
  shard.slice = FlatSlice{RoleId(0), 24, 0, false};
  EXPECT_EQ(check(shard, false).size(), 2U);
}

}  // namespace
}  // namespace stepcast::program
