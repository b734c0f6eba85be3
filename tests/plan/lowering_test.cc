// What lowering refuses, and what it promises about shared rank programs.
#include "plan/lowering.h"

#include <gtest/gtest.h>

#include <ctime>
#include <map>
#include <optional>
#include <vector>

#include "base/error.h"
#include "tests/plan/tiny_scenario.h"

namespace stepcast::plan {
namespace {

using testing::make_scenario;
using testing::TinyPlan;
using testing::TinyShape;

ErrorKind refusal_of(const Scenario& s) {
  try {
    lower(s);
  } catch (const Error& e) {
    return e.kind();
  }
  ADD_FAILURE() << "not refused";
  return ErrorKind::kSubject;
}

// 200,000 microbatches of four layers are 200,000 * 6 * 40 = 48 million ops.
TEST(Lowering, RefusesAStepTooLongToHold) {
  TinyShape shape;
  shape.global_batch = 200'000;
  EXPECT_EQ(refusal_of(make_scenario(shape, TinyPlan{.name = "long"})), ErrorKind::kUnsupported);
}

// Time grows with the layers, not with their square: 20,000 layers, with two buckets each, take a second.
// Looking each module's parameters and buckets up among all of them is 40,000 x (180,000 + 40,000) comparisons.
TEST(Lowering, TakesManyLayers) {
  TinyShape shape;
  shape.layers = 20'000;
  shape.global_batch = 2;
  const Scenario s = make_scenario(shape, TinyPlan{.name = "deep", .dp = 2, .zero = 1, .gather_ahead = true});
  const std::clock_t start = std::clock();
  EXPECT_EQ(lower(s).rank_programs.size(), 1u);
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 10.0);
}

TEST(Lowering, RefusesTiedEmbeddingsUnderZero3) {
  EXPECT_EQ(refusal_of(make_scenario(TinyShape{}, TinyPlan{.name = "tied", .dp = 2, .zero = 3, .tied = true})),
            ErrorKind::kUnsupported);
}

// Ops of a kind that the only rank program issues.
std::size_t count_ops(const program::Program& p, program::OpKind kind) {
  std::size_t n = 0;
  for (const program::Call& call : p.rank_programs[program::RankProgramId(0)].calls) {
    for (const program::Op& op : p.segments[call.segment].ops) n += op.kind == kind ? 1 : 0;
  }
  return n;
}

// Eight microbatches of four layers with four projections each, and the head: 8 * (4 * 4 + 1) weight gradients.
TEST(Lowering, SeparateAccumulationIsAKernelPerWeightGradient) {
  const TinyPlan separate{.name = "separate", .accumulation = GradientAccumulation::kSeparate};
  EXPECT_EQ(count_ops(lower(make_scenario(TinyShape{}, separate)), program::OpKind::kAccumulate), 136u);
  EXPECT_EQ(count_ops(lower(make_scenario(TinyShape{}, TinyPlan{.name = "fused"})), program::OpKind::kAccumulate), 0u);
}

// Of a layer the qkv and the MLP's column-parallel projection, and the head: 8 * (2 * 4 + 1) waits.
TEST(Lowering, BlockingInputGradientsWaitOncePerColumnParallelProjection) {
  const TinyPlan blocking{.name = "blocking", .tp = 2, .tp_overlap = false};
  EXPECT_EQ(count_ops(lower(make_scenario(TinyShape{}, blocking)), program::OpKind::kJoin), 72u);
  EXPECT_EQ(count_ops(lower(make_scenario(TinyShape{}, TinyPlan{.name = "beside", .tp = 2})), program::OpKind::kJoin),
            0u);
}

// Bytes that the all-to-alls of a layer's attention send, over cp 2: 16 rows of one sequence, 8 of them the rank's,
// with 8 query heads and 4 each of k and v of 4 columns in fp32. Queries, keys and values go there and the output comes
// back: (2 h_q + k) columns for each row, k = 2 n_kv d, as Ulysses counts them (arXiv:2309.14509, section 3.1); as many
// backward.
TEST(Lowering, ExchangesHeadsFourTimesEachWay) {
  const TinyPlan plan{.name = "a2a", .cp = 2, .cp_comm = ContextComm::kAllToAll};
  TinyShape shape;
  shape.layers = shape.global_batch = 1;
  const program::Program p = lower(make_scenario(shape, plan));
  std::map<program::Pass, std::vector<std::int64_t>> sent;
  for (const program::Call& call : p.rank_programs[program::RankProgramId(0)].calls) {
    const program::Segment& s = p.segments[call.segment];
    for (const program::Op& op : s.ops) {
      if (op.kind == program::OpKind::kAllToAll) sent[call.tag.pass].push_back(s.type_of(op.operands[0]).bytes());
    }
  }
  const std::vector<std::int64_t> q_k_v_out{8 * 32 * 4, 8 * 16 * 4, 8 * 16 * 4, 8 * 32 * 4};
  const std::vector<std::int64_t> dout_dq_dk_dv{8 * 32 * 4, 8 * 32 * 4, 8 * 16 * 4, 8 * 16 * 4};
  EXPECT_EQ(sent[program::Pass::kForward], q_k_v_out);
  EXPECT_EQ(sent[program::Pass::kInputGrad], dout_dq_dk_dv);
  EXPECT_EQ(sent.size(), 2u);
}

// Ranks of one stage do the same work: two stages, two programs, whatever tp and dp.
TEST(Lowering, RanksOfAStageShareTheirProgram) {
  const program::Program p = lower(make_scenario(TinyShape{}, TinyPlan{.name = "p", .dp = 2, .tp = 2, .pp = 2}));
  EXPECT_EQ(p.ranks.size(), 8u);
  EXPECT_EQ(p.rank_programs.size(), 2u);
}

// HSDP on a mesh of tp 2, cp 2, dp 4 in two groups: ranks 0 to 15 in the order tp, cp, dp. A shard group is the cp
// members and two neighbours on dp, ranks 0 2 4 6 for tp member 0; rank 0's shard is held again by dp member 2, rank 8.
TEST(Lowering, ShardGroupsAreTheInnerPartOfTheReplicas) {
  const program::Program p =
      lower(make_scenario(TinyShape{}, TinyPlan{.name = "p", .dp = 4, .tp = 2, .zero = 3, .cp = 2, .replicate = 2}));
  const auto members = [&](const char* role) {
    const std::optional<program::RoleId> id = program::find_role(p, role);
    std::vector<std::uint32_t> numbers;
    if (!id) return numbers;
    for (const program::RankId r : p.groups[program::membership(p, program::RankId(0), *id).group].members) {
      numbers.push_back(r.value);
    }
    return numbers;
  };
  EXPECT_EQ(members("dp_shard"), (std::vector<std::uint32_t>{0, 2, 4, 6}));
  EXPECT_EQ(members("dp_replicate"), (std::vector<std::uint32_t>{0, 8}));
  EXPECT_EQ(members("instance"), (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

// Layers carry their global number, so no two stages share a program.
TEST(Lowering, StagesDifferByTheirLayers) {
  const program::Program p = lower(make_scenario(TinyShape{}, TinyPlan{.name = "p", .pp = 4}));
  EXPECT_EQ(p.rank_programs.size(), 4u);
}

}  // namespace
}  // namespace stepcast::plan
