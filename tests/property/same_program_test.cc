// The same Program, seen by both engines: equal op ids rank by rank, equal peak bytes per memory class, and the
// engine's oracles on real plans.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "exec/executor.h"
#include "plan/lowering.h"
#include "program/check.h"
#include "sim/prediction.h"
#include "tests/plan/plan_table.h"
#include "tests/property/simple_costs.h"
#include "tests/random_cases.h"

namespace stepcast {
namespace {

using plan::testing::TinyPlan;
using plan::testing::TinyShape;

std::vector<trace::OpId> sorted_ids(const std::vector<trace::Event>& events) {
  std::vector<trace::OpId> ids;
  for (const trace::Event& e : events) ids.push_back(e.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

class SameProgram : public ::testing::TestWithParam<TinyPlan> {};

TEST_P(SameProgram, OpIdsAndPeaksAgreeRankByRank) {
  const program::CheckedProgram p(plan::lower(plan::testing::make_scenario(TinyShape{}, GetParam())));
  exec::Executor executor(p, {});
  executor.run_step();
  const trace::Trace& measured = executor.last_trace();
  const sim::Prediction predicted = sim::simulate(p, testing::SimpleCosts(), {});
  EXPECT_EQ(measured.fingerprint, p.fingerprint());
  ASSERT_EQ(measured.tracks.size(), p.program().ranks.size());
  for (const trace::Track& track : measured.tracks) {
    const sim::ClassResult& c = predicted.classes[predicted.class_of_rank[track.rank]];
    EXPECT_EQ(sorted_ids(track.events), sorted_ids(c.events)) << "rank " << track.rank;
    EXPECT_EQ(track.peak, c.lifetimes.peak) << "rank " << track.rank;
    for (std::size_t k = 0; k < program::kMemoryClassCount; ++k) {
      EXPECT_EQ(track.class_peak[k], c.lifetimes.class_peak[k])
          << "rank " << track.rank << " class " << to_string(static_cast<program::MemoryClass>(k));
    }
  }
}

TEST_P(SameProgram, FoldingAndRelaxationAgreeToThePicosecond) {
  const program::CheckedProgram p(plan::lower(plan::testing::make_scenario(TinyShape{}, GetParam())));
  const testing::SimpleCosts costs;
  const sim::Prediction folded = sim::simulate(p, costs, {});
  const sim::Prediction unfolded = sim::simulate(p, costs, {.fold = false});
  const sim::Prediction relaxed = sim::relax(p, costs, {.fold = false});
  EXPECT_EQ(folded.step, unfolded.step);
  EXPECT_EQ(unfolded.step, relaxed.step);
  for (std::size_t r = 0; r < p.program().ranks.size(); ++r) {
    const sim::ClassResult& a = folded.classes[folded.class_of_rank[r]];
    const sim::ClassResult& b = unfolded.classes[unfolded.class_of_rank[r]];
    const sim::ClassResult& c = relaxed.classes[relaxed.class_of_rank[r]];
    EXPECT_TRUE(a.events == b.events) << "rank " << r;
    EXPECT_TRUE(b.events == c.events) << "rank " << r;
    EXPECT_EQ(a.time.sum(), folded.step);
  }
}

// Symmetric ranks fold to one class per pipeline stage.
TEST_P(SameProgram, RanksFoldToOneClassPerStage) {
  const plan::Scenario s = plan::testing::make_scenario(TinyShape{}, GetParam());
  const program::CheckedProgram p(plan::lower(s));
  const sim::Prediction folded = sim::simulate(p, testing::SimpleCosts(), {});
  EXPECT_EQ(folded.classes.size(), static_cast<std::size_t>(s.plan.pp));
}

INSTANTIATE_TEST_SUITE_P(Table, SameProgram,
                         ::testing::ValuesIn(stepcast::testing::sampled(plan::testing::plan_table())),
                         [](const auto& param) { return param.param.name; });

INSTANTIATE_TEST_SUITE_P(Fp32Shards, SameProgram, ::testing::ValuesIn(plan::testing::fp32_shard_plans()),
                         [](const auto& param) { return param.param.name; });

// A fabric of one link that remembers what passes it.
class WatchedLink final : public testing::SimpleCosts {
 public:
  std::span<const sim::SharedLink> shared_links() const override { return links_; }
  void append_crossings(std::span<const std::int32_t>, sim::Pattern pattern,
                        std::vector<sim::Crossing>&) const override {
    seen.insert(pattern);
  }
  mutable std::set<sim::Pattern> seen;

 private:
  std::vector<sim::SharedLink> links_{{sim::kWhole, "leaf", "link"}};
};

// All-to-alls meet the network as such, gathers as rings.
TEST(AllToAll, PassesTheNetworkAllToAll) {
  const auto seen = [](plan::ContextComm comm) {
    const TinyPlan plan{.name = "cp2", .cp = 2, .cp_comm = comm};
    const program::CheckedProgram p(plan::lower(plan::testing::make_scenario(TinyShape{}, plan)));
    const WatchedLink costs;
    sim::simulate(p, costs, {});
    return costs.seen;
  };
  EXPECT_EQ(seen(plan::ContextComm::kAllToAll), (std::set{sim::Pattern::kRing, sim::Pattern::kAllToAll}));
  EXPECT_EQ(seen(plan::ContextComm::kAllGather), std::set{sim::Pattern::kRing});
}

// One slow device splits its class, and folded times still equal the unfolded ones.
TEST(SlowDevice, SplitsClassesAndKeepsTimes) {
  const TinyPlan plan{.name = "dp2_tp2_pp2", .dp = 2, .tp = 2, .pp = 2};
  const program::CheckedProgram p(plan::lower(plan::testing::make_scenario(TinyShape{}, plan)));
  const testing::SimpleCosts costs(/*slow_device=*/3);
  const sim::Prediction folded = sim::simulate(p, costs, {});
  const sim::Prediction unfolded = sim::simulate(p, costs, {.fold = false});
  EXPECT_GT(folded.classes.size(), 2u);
  EXPECT_LT(folded.classes.size(), 9u);
  EXPECT_EQ(folded.step, unfolded.step);
  for (std::size_t r = 0; r < p.program().ranks.size(); ++r) {
    EXPECT_TRUE(folded.classes[folded.class_of_rank[r]].events == unfolded.classes[unfolded.class_of_rank[r]].events)
        << r;
  }
  EXPECT_GT(folded.step, sim::simulate(p, testing::SimpleCosts(), {}).step);
}

// Gathering updated weights beside the next forward pass moves the same bytes and exposes fewer of them.
TEST(OverlapParamGather, HidesAllButTheFirstBucket) {
  TinyPlan plan{.name = "dp2_zero1", .dp = 2, .zero = 1};
  const auto gathers = [&](bool ahead) {
    plan.gather_ahead = ahead;
    const program::CheckedProgram p(plan::lower(plan::testing::make_scenario(TinyShape{}, plan)));
    const sim::Prediction prediction = sim::simulate(p, testing::SimpleCosts(), {});
    Duration busy;
    for (const trace::Event& e : prediction.classes.front().events) {
      if (e.stream == static_cast<std::uint8_t>(program::Stream::kGather)) busy += e.end - e.transfer;
    }
    return std::pair(busy, prediction.classes.front().time.exposed[static_cast<std::size_t>(sim::Exposed::kGather)]);
  };
  const auto [busy, exposed] = gathers(false);
  const auto [busy_ahead, exposed_ahead] = gathers(true);
  EXPECT_EQ(busy, busy_ahead);
  EXPECT_GE(exposed, busy);  // nothing runs beside them
  EXPECT_LT(exposed_ahead, busy);
  EXPECT_GT(exposed_ahead.ps, 0);
}

// Without overlap the reductions wait for the whole backward pass: the same work, more of it exposed.
TEST(OverlapGradReduce, OffExposesTheReductions) {
  TinyPlan plan{.name = "dp2", .dp = 2};
  const auto exposed_dp = [&](bool overlap) {
    plan.overlap = overlap;
    const program::CheckedProgram p(plan::lower(plan::testing::make_scenario(TinyShape{}, plan)));
    const sim::Prediction prediction = sim::simulate(p, testing::SimpleCosts(), {});
    return prediction.classes.front().time.exposed[static_cast<std::size_t>(sim::Exposed::kDp)];
  };
  EXPECT_GT(exposed_dp(false), exposed_dp(true) * 2);
}

}  // namespace
}  // namespace stepcast
