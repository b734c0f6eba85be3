// Max-min fair rates, worked out by hand.
#include "sim/engine/link_flows.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "tests/random_cases.h"

namespace stepcast::sim {
namespace {

std::vector<std::uint32_t> solve(LinkFlows& flows) {
  std::vector<std::uint32_t> changed;
  flows.solve(changed);
  return changed;
}

TEST(LinkFlows, FlowsThatFitRunAtFullSpeed) {
  LinkFlows flows({kWhole});
  const FlowUse half{0, kWhole / 2};
  const std::uint32_t a = flows.add(std::vector{half});
  const std::uint32_t b = flows.add(std::vector{half});
  EXPECT_TRUE(solve(flows).empty());
  EXPECT_EQ(flows.rate(a), kWhole);
  EXPECT_EQ(flows.rate(b), kWhole);
}

TEST(LinkFlows, AnOverfullLinkIsSharedAndFreedAgain) {
  // Two flows that need all of a link get half each; when one ends the other is alone.
  LinkFlows flows({kWhole});
  const FlowUse all{0, kWhole};
  const std::uint32_t a = flows.add(std::vector{all});
  EXPECT_TRUE(solve(flows).empty());
  const std::uint32_t b = flows.add(std::vector{all});
  EXPECT_EQ(solve(flows), (std::vector<std::uint32_t>{a, b}));
  EXPECT_EQ(flows.rate(a), kWhole / 2);
  EXPECT_EQ(flows.rate(b), kWhole / 2);
  flows.remove(a);
  EXPECT_EQ(solve(flows), (std::vector<std::uint32_t>{b}));
  EXPECT_EQ(flows.rate(b), kWhole);
}

TEST(LinkFlows, ALargerDemandTakesMoreOfTheLink) {
  // Demands 1 and 1/2 on one link run at one speed: 2/3 (floor of 2^20 * 2 / 3).
  LinkFlows flows({kWhole});
  const std::uint32_t a = flows.add(std::vector<FlowUse>{{0, kWhole}});
  const std::uint32_t b = flows.add(std::vector<FlowUse>{{0, kWhole / 2}});
  solve(flows);
  EXPECT_EQ(flows.rate(a), 2 * kWhole / 3);
  EXPECT_EQ(flows.rate(b), 2 * kWhole / 3);
}

TEST(LinkFlows, WhatABottleneckLeavesGoesToTheOthers) {
  // The parking lot: a passes links 0 and 1, b and c share link 0 with it, d shares link 1; all demands are whole. Link
  // 0 gives a third to a, b, c; on link 1 d gets what a leaves, two thirds, rounding included: the floor of
  // (2^20 * 2^20 - 2^20 * 349525) / 2^20 = 2^20 - 349525.
  LinkFlows flows({kWhole, kWhole});
  const std::uint32_t a = flows.add(std::vector<FlowUse>{{0, kWhole}, {1, kWhole}});
  const std::uint32_t b = flows.add(std::vector<FlowUse>{{0, kWhole}});
  const std::uint32_t c = flows.add(std::vector<FlowUse>{{0, kWhole}});
  const std::uint32_t d = flows.add(std::vector<FlowUse>{{1, kWhole}});
  solve(flows);
  EXPECT_EQ(flows.rate(a), 349525);
  EXPECT_EQ(flows.rate(b), 349525);
  EXPECT_EQ(flows.rate(c), 349525);
  EXPECT_EQ(flows.rate(d), kWhole - 349525);
}

TEST(LinkFlows, AFlowThatStandsForManyCountsAsOften) {
  // Eight flows of a quarter on one link of capacity 1 (rate 1/2), or one flow of demand 2.
  LinkFlows many({kWhole});
  for (int i = 0; i < 8; ++i) many.add(std::vector<FlowUse>{{0, kWhole / 4}});
  solve(many);
  LinkFlows one({kWhole});
  const std::uint32_t folded = one.add(std::vector<FlowUse>{{0, 2 * kWhole}});
  solve(one);
  EXPECT_EQ(one.rate(folded), kWhole / 2);
  for (std::uint32_t i = 0; i < 8; ++i) EXPECT_EQ(many.rate(i), one.rate(folded));
}

// The definition: no flow can run faster without slowing one that is not faster. Each flow below full speed has a link
// that is full (but for rounding) on which it is among the fastest. And solving step by step gives what solving at once
// gives.
TEST(LinkFlows, RandomFlowsAreMaxMinFairAndDoNotDependOnHistory) {
  for (std::uint64_t seed = 0; seed < stepcast::testing::random_cases(500); ++seed) {
    const RandomStream random(seed, "flows");
    std::uint64_t draw = 0;
    const auto below = [&](std::uint64_t bound) { return random.integer_at(draw++, bound); };
    const std::size_t links = 1 + below(5);
    std::vector<Share> capacities;
    for (std::size_t l = 0; l < links; ++l) capacities.push_back(static_cast<Share>(1 + below(4)) * kWhole / 2);
    LinkFlows stepwise(capacities);
    std::vector<std::vector<FlowUse>> uses;
    std::vector<std::uint32_t> ids;
    for (int step = 0; step < 20; ++step) {
      if (!ids.empty() && below(3) == 0) {
        const std::size_t victim = below(ids.size());
        stepwise.remove(ids[victim]);
        ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(victim));
        uses.erase(uses.begin() + static_cast<std::ptrdiff_t>(victim));
      } else {
        std::vector<FlowUse> use;
        for (std::uint32_t l = 0; l < links; ++l) {
          if (below(2) == 0) use.push_back({l, static_cast<Share>(1 + below(8)) * kWhole / 8});
        }
        ids.push_back(stepwise.add(use));
        uses.push_back(use);
      }
      if (below(2) == 0) solve(stepwise);
    }
    solve(stepwise);
    LinkFlows at_once(capacities);
    std::vector<std::uint32_t> fresh;
    for (const std::vector<FlowUse>& use : uses) fresh.push_back(at_once.add(use));
    solve(at_once);
    std::vector<double> load(links);
    std::vector<Share> fastest(links);
    for (std::size_t f = 0; f < ids.size(); ++f) {
      ASSERT_EQ(stepwise.rate(ids[f]), at_once.rate(fresh[f])) << "seed " << seed;
      for (const FlowUse& use : uses[f]) {
        load[use.link] += static_cast<double>(use.demand) * static_cast<double>(stepwise.rate(ids[f])) / kWhole;
        fastest[use.link] = std::max(fastest[use.link], stepwise.rate(ids[f]));
      }
    }
    for (std::size_t l = 0; l < links; ++l) ASSERT_LE(load[l], static_cast<double>(capacities[l])) << "seed " << seed;
    for (std::size_t f = 0; f < ids.size(); ++f) {
      const Share rate = stepwise.rate(ids[f]);
      bool limited = rate == kWhole;
      for (const FlowUse& use : uses[f]) {
        // A rate of one more unit for each of at most 20 flows of demand up to 1 does not fit: a gap below 20 units.
        const bool full = load[use.link] > static_cast<double>(capacities[use.link]) - 20;
        limited = limited || (full && rate + 1 >= fastest[use.link]);
      }
      ASSERT_TRUE(limited) << "seed " << seed << " flow " << f;
    }
  }
}

}  // namespace
}  // namespace stepcast::sim
