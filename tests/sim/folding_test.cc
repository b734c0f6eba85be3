// Which ranks share a class.
#include "sim/folding.h"

#include <gtest/gtest.h>

#include "sim/prediction.h"
#include "tests/sim/tiny_program.h"

namespace stepcast::sim {
namespace {

using program::Stream;
using Classes = std::vector<std::uint32_t>;

// Stage s of two: compute, reduce over dp; stage 0 sends to stage 1. Ranks 0..3 are stage 0, ranks 4..7 stage 1; dp
// groups are {0,1} {2,3} {4,5} {6,7}, pipelines {i, i + 4}.
program::CheckedProgram two_stages() {
  TinyProgram t(2, {0, 0, 0, 0, 1, 1, 1, 1});
  for (const std::size_t s : {0U, 1U}) {
    t.work(s, "compute", {}, "x");
    t.all_reduce(s, "reduce", "dp", "x", Stream::kDp);
  }
  t.send(0, "send", {true, "pp", 1, "x"}, Stream::kSendNext);
  t.receive(1, "receive", {false, "pp", -1, "y"}, Stream::kRecvPrev);
  for (const std::uint32_t i : {0U, 2U, 4U, 6U}) t.group("dp", {i, i + 1});
  for (const std::uint32_t i : {0U, 1U, 2U, 3U}) t.group("pp", {i, i + 4});
  return t.checked();
}

TEST(Folding, RanksOfAStageShareAClass) {
  const Folding f = fold(two_stages(), TableCosts({}));
  EXPECT_EQ(f.class_of_rank, (Classes{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(f.representative, (std::vector<program::RankId>{program::RankId(0), program::RankId(4)}));
  EXPECT_EQ(f.ranks, (std::vector<std::int64_t>{4, 4}));
}

TEST(Folding, ASlowDeviceSplitsWhoeverItReaches) {
  // Device 1 is slow: rank 1 alone; 0 shares its dp group; 5 and 4 are their receivers; pipelines 2, 3, 6, 7 are free
  // of it.
  TableCosts costs({});
  costs.slowness[1] = 2;
  EXPECT_EQ(fold(two_stages(), costs).class_of_rank, (Classes{0, 1, 2, 2, 3, 4, 5, 5}));
}

TEST(Folding, EachRankIsItsOwnClassWithoutFolding) {
  const Folding f = no_fold(two_stages(), TableCosts({}));
  EXPECT_EQ(f.class_of_rank, (Classes{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(f.ranks, (std::vector<std::int64_t>(8, 1)));
}

TEST(Folding, NeighboursWrapAroundGroupsOfAnySize) {
  // Rings of three, {0,1,2} and {3,4,5}: each passes x to the next. With device 1 slow, its ring falls apart, the other
  // does not. The previous of member 0 is member 2.
  TinyProgram t(1, {0, 0, 0, 0, 0, 0});
  t.exchange(0, "ring", {{true, "cp", 1, "x"}, {false, "cp", -1, "y"}}, Stream::kCp);
  t.group("cp", {0, 1, 2});
  t.group("cp", {3, 4, 5});
  TableCosts costs({});
  costs.slowness[1] = 2;
  EXPECT_EQ(fold(t.checked(), costs).class_of_rank, (Classes{0, 1, 2, 3, 3, 3}));
}

// Groups on a far path split from groups on a near one.
class FarGroup : public TableCosts {
 public:
  FarGroup() : TableCosts(std::map<std::string, std::int64_t>{}) {}
  PathClass path_class(std::span<const std::int32_t> devices) const override { return devices[0] == 6 ? 1 : 0; }
};

TEST(Folding, AnotherPathSplitsClasses) {
  // Only group {6,7} is far; 2 and 3 send to its members.
  EXPECT_EQ(fold(two_stages(), FarGroup()).class_of_rank, (Classes{0, 0, 1, 1, 2, 2, 3, 3}));
}

TEST(Folding, ATimingIndexSplitsClassesAndADataIndexDoesNot) {
  for (const bool timing : {false, true}) {
    program::ProgramBuilder builder("index");
    const program::RoleId tp = builder.role("tp");
    program::SegmentBuilder s("s");
    const program::Ref x = s.slot("x", program::DType::kF32, {4});
    program::Op& op = s.op(program::OpKind::kZeroFill, Stream::kCompute, "fill", {program::out(x)});
    op.index_role = tp;
    op.timing_index = timing;
    program::RankProgramBuilder r("rank");
    const program::ViewId v = r.tensor("x", program::DType::kF32, {4}, program::MemoryClass::kActivations, true);
    r.call(builder.segment(s.take()), {v}, {});
    const program::RankProgramId id = builder.rank_program(r.take());
    for (int i = 0; i < 3; ++i) builder.rank(id, i);
    builder.group(tp, {program::RankId(0), program::RankId(1), program::RankId(2)});
    const program::CheckedProgram p(builder.take());
    EXPECT_EQ(fold(p, TableCosts({})).class_of_rank, (timing ? Classes{0, 1, 2} : Classes{0, 0, 0}));
  }
}

TEST(Folding, FoldsSixteenThousandRanksIntoTheirStages) {
  // 16 stages of 1,024 ranks, dp groups of 8, pipelines through all stages.
  constexpr std::uint32_t kStages = 16;
  constexpr std::uint32_t kPerStage = 1024;
  std::vector<std::size_t> program_of_rank;
  for (std::uint32_t i = 0; i < kStages * kPerStage; ++i) program_of_rank.push_back(i / kPerStage);
  TinyProgram t(kStages, program_of_rank);
  for (std::uint32_t s = 0; s < kStages; ++s) {
    t.work(s, "compute", {}, "x");
    t.all_reduce(s, "reduce", "dp", "x", Stream::kDp);
    t.all_reduce(s, "norm", "world", "x", Stream::kTp);
    if (s + 1 < kStages) t.send(s, "send", {true, "pp", 1, "x"}, Stream::kSendNext);
    if (s > 0) t.receive(s, "receive", {false, "pp", -1, "y"}, Stream::kRecvPrev);
  }
  std::vector<std::uint32_t> world;
  for (std::uint32_t i = 0; i < kStages * kPerStage; ++i) world.push_back(i);
  for (std::uint32_t i = 0; i < kStages * kPerStage; i += 8)
    t.group("dp", {i, i + 1, i + 2, i + 3, i + 4, i + 5, i + 6, i + 7});
  for (std::uint32_t i = 0; i < kPerStage; ++i) {
    std::vector<std::uint32_t> line;
    for (std::uint32_t s = 0; s < kStages; ++s) line.push_back(s * kPerStage + i);
    t.group("pp", line);
  }
  t.group("world", world);
  const program::CheckedProgram p = t.checked();
  const Folding f = fold(p, TableCosts({}));
  EXPECT_EQ(f.ranks, (std::vector<std::int64_t>(kStages, kPerStage)));
  // One slow device splits its pipeline, its dp group, theirs, and so on through 16 rounds; the rest of the job folds.
  TableCosts slow({});
  slow.slowness[5] = 2;
  const Folding split = fold(p, slow);
  EXPECT_EQ(split.ranks.size(), 3U * kStages);  // the slow pipeline, the seven beside it, the others
}

}  // namespace
}  // namespace stepcast::sim
