// Traffic, what-ifs and jitter worked out by hand; by_hand.h says what was made up.
#include <gtest/gtest.h>

#include <algorithm>

#include "report/cluster_text.h"
#include "tests/report/by_hand.h"

namespace stepcast::report {
namespace {

using literals::operator""_ms;
using literals::operator""_us;

TEST(Network, NamesWhatEachTierCarries) {
  const SimulationReport r = report_of_traffic(scenario());
  ASSERT_EQ(r.network.size(), 2U);
  EXPECT_EQ(r.network[0].tier, "scale_up");
  EXPECT_EQ(r.network[0].links, 4);
  EXPECT_DOUBLE_EQ(r.network[0].bytes, 2e9);
  EXPECT_DOUBLE_EQ(r.network[0].mean_utilisation, 0.25);
  EXPECT_DOUBLE_EQ(r.network[0].peak_utilisation, 0.9);
  const std::vector<std::pair<std::string, double>> carries = {{"dp", 1.5e9}, {"pp", 0.5e9}, {"world", 4}};
  EXPECT_EQ(r.network[0].carries, carries);
  EXPECT_EQ(r.link_classes, 1);
}

TEST(Network, CountsCollectivesPerRankThatTakesPart) {
  const SimulationReport r = report_of_traffic(scenario());
  ASSERT_EQ(r.collectives.size(), 2U);
  const CollectiveReport& reduce = r.collectives[0];
  EXPECT_EQ(reduce.group, "dp");
  EXPECT_EQ(reduce.op, "all_reduce");
  EXPECT_EQ(reduce.bytes, 32);
  EXPECT_DOUBLE_EQ(reduce.count, 3);  // 6 transfers x 2 members / 4 ranks
  EXPECT_EQ(reduce.algorithm, "ring");
  EXPECT_EQ(reduce.protocol, "simple");
  EXPECT_DOUBLE_EQ(reduce.busbw_gb_per_s, 370);
  EXPECT_DOUBLE_EQ(reduce.exposed_s, 0.15e-3);
  EXPECT_EQ(r.collectives[1].op, "send");
  EXPECT_DOUBLE_EQ(r.collectives[1].count, 5);  // 10 messages have 20 ends at 4 ranks
}

TEST(Network, AddsUpWhatMovesByKind) {
  program::CheckedProgram p = matmul_program();
  sim::Prediction predicted = prediction(p);
  add_traffic(predicted);
  // Only half of the ranks send: 0.2 ms each is 0.1 ms on average.
  predicted.communication[1].ranks = 2;
  const plan::Scenario s = scenario();
  const SimulationReport r = make_simulation_report(
      {.scenario = s, .program = p, .prediction = predicted, .calibration = {}, .warnings = {}, .published = {}});
  EXPECT_DOUBLE_EQ(r.moving_s[static_cast<std::size_t>(sim::Exposed::kDp)], 0.4e-3);
  EXPECT_DOUBLE_EQ(r.moving_s[static_cast<std::size_t>(sim::Exposed::kPp)], 0.1e-3);
  EXPECT_DOUBLE_EQ(r.moving_s[static_cast<std::size_t>(sim::Exposed::kTp)], 0);
}

TEST(Network, SaysHowManyMultiprocessorsCommunicationHolds) {
  plan::Scenario s = scenario();
  s.cluster.node.device.multiprocessors = 132;
  EXPECT_DOUBLE_EQ(report_of_traffic(s).held_multiprocessors, 16.5);  // an eighth
}

TEST(WhatIfs, AreOfTheKindsThatTakeTime) {
  const program::CheckedProgram p = matmul_program();
  sim::Prediction predicted = prediction(p);
  using Kinds = std::vector<sim::Free>;
  EXPECT_EQ(kinds_in_use(predicted), (Kinds{sim::Free::kDp, sim::Free::kHost, sim::Free::kOptimizer}));
  add_traffic(predicted);
  const Kinds all = {sim::Free::kPp, sim::Free::kDp, sim::Free::kHost, sim::Free::kOptimizer, sim::Free::kSlowdown};
  EXPECT_EQ(kinds_in_use(predicted), all);  // messages are hidden, yet there
  // Nothing computes longer than alone; dp's 3 collectives of 0.1 ms take 0.4 ms on shared links, which is no slowdown.
  predicted.classes[0].time.slowed = {};
  EXPECT_EQ(kinds_in_use(predicted), (Kinds{sim::Free::kPp, sim::Free::kDp, sim::Free::kHost, sim::Free::kOptimizer}));
}

TEST(WhatIfs, KeepSlowdownOutOfTheSum) {
  const SimulationReport r = report_of_traffic(scenario());
  EXPECT_DOUBLE_EQ(r.time.slowed_s, 0.03e-3);  // 0.06 ms on two of four ranks
  EXPECT_DOUBLE_EQ(r.stages[0].time.slowed_s, 0.06e-3);
  double sum = r.time.compute_s + r.time.optimizer_s + r.time.host_s + r.time.bubble_s;
  for (const double exposed : r.time.exposed_s) sum += exposed;
  EXPECT_DOUBLE_EQ(sum, r.step_time_s);
}

// The smallest value that at least so many of 100 do not exceed: of 10 values the 5th, 9th and 10th (9.9 rounds up); of
// 5 values the 3rd (2.5) and the 5th (4.5).
TEST(Jitter, TakesPercentilesByNearestRank) {
  std::vector<Duration> steps;
  for (int i = 1; i <= 10; ++i) steps.push_back(Duration(i));
  EXPECT_EQ(percentile(steps, 50).ps, 5);
  EXPECT_EQ(percentile(steps, 90).ps, 9);
  EXPECT_EQ(percentile(steps, 99).ps, 10);
  EXPECT_EQ(percentile(steps, 100).ps, 10);
  EXPECT_EQ(percentile(steps, 1).ps, 1);
  steps.resize(5);
  EXPECT_EQ(percentile(steps, 50).ps, 3);
  EXPECT_EQ(percentile(steps, 90).ps, 5);
  steps.resize(1);
  EXPECT_EQ(percentile(steps, 1).ps, 1);
  EXPECT_EQ(percentile(steps, 99).ps, 1);
}

TEST(Jitter, SummarisesStepsInAnyOrder) {
  plan::Scenario s = scenario();
  EXPECT_EQ(report_of_traffic(s).jitter, std::nullopt);
  s.jitter = plan::Jitter{.compute_sigma = 0.02, .comm_sigma = 0.1, .samples = 4, .seed = 7};
  const SimulationReport r = report_of_traffic(s, {.jittered_steps = {3_ms, 1_ms, 4_ms, 2_ms}});
  ASSERT_TRUE(r.jitter.has_value());
  EXPECT_DOUBLE_EQ(r.jitter->p50_s, 2e-3);
  EXPECT_DOUBLE_EQ(r.jitter->p90_s, 4e-3);  // the 3.6th, rounded up
  EXPECT_DOUBLE_EQ(r.jitter->p99_s, 4e-3);
  EXPECT_DOUBLE_EQ(r.jitter->mean_s, 2.5e-3);
  EXPECT_DOUBLE_EQ(r.jitter->min_s, 1e-3);
  EXPECT_DOUBLE_EQ(r.jitter->max_s, 4e-3);
  EXPECT_DOUBLE_EQ(r.step_time_s, 1e-3);  // the answer stays the one without
}

bool mentions(const std::vector<std::string>& texts, const std::string& words) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return text.find(words) != std::string::npos; });
}

TEST(Notes, SayWhetherContentionCounts) {
  const SimulationReport with = report_of_traffic(scenario());
  EXPECT_TRUE(mentions(with.assumptions, "computation does not slow communication"));
  EXPECT_TRUE(mentions(with.assumptions, "spread their bytes evenly"));
  EXPECT_FALSE(mentions(with.not_modelled, "contention"));
  const SimulationReport without = report_of_traffic(scenario(), {.contention = false});
  EXPECT_FALSE(mentions(without.assumptions, "computation does not slow communication"));
  EXPECT_TRUE(mentions(without.not_modelled, "contention"));
}

TEST(Notes, GiveTheRoutingFactorItsValue) {
  plan::Scenario s = scenario();
  EXPECT_FALSE(mentions(report_of_traffic(s).assumptions, "routing"));
  s.cluster.fabric.routing = topology::Routing::kEnhancedEcmp;
  s.cluster.fabric.queue_pairs = 16;
  s.cluster.fabric.routing_efficiency = 0.9008;
  EXPECT_TRUE(mentions(report_of_traffic(s).assumptions, "e-ecmp with 16 queue pairs leaves 0.901 of the NICs' rate"));
}

plan::Scenario on_fat_tree() {
  plan::Scenario s = scenario();
  topology::Cluster& c = s.cluster;
  c.node.name = "hgx-h100";
  c.node.devices = 8;
  c.node.device.name = "H100-SXM-80GB";
  c.node.scale_up = {.bandwidth = BytesPerSecond(450e9), .domain = 8};
  c.node.nic.rate = BytesPerSecond(50e9);
  c.node.nic.kind = topology::NicKind::kRoce;
  c.nodes = 2048;
  c.fabric.kind = topology::FabricKind::kFatTree;
  c.fabric.unit_nodes = 2;
  c.fabric.pod_nodes = 384;
  c.fabric.spine_oversubscription = 7;
  c.fabric.routing = topology::Routing::kEnhancedEcmp;
  s.gpus = 16384;
  return s;
}

TEST(ClusterText, NamesNodesNicsAndFabric) {
  plan::Scenario s = on_fat_tree();
  EXPECT_EQ(cluster_text(s),
            "2,048 x hgx-h100, 8 x H100-SXM-80GB at 450 GB/s scale-up, 8 x 400 Gb/s RoCE, fat tree, units of 2 nodes, "
            "pods of 384, core 7:1, e-ecmp");
  // Without pods the second ratio is that of the spines.
  s.cluster.fabric.pod_nodes = 0;
  s.cluster.fabric.leaf_oversubscription = 2;
  s.cluster.fabric.spine_oversubscription = 1.5;
  s.cluster.overrides = {{.device = 8}, {.device = 9}, {.device = 8}};
  s.gpus = 16000;
  EXPECT_EQ(cluster_text(s),
            "2,048 x hgx-h100, 8 x H100-SXM-80GB at 450 GB/s scale-up, 8 x 400 Gb/s RoCE, fat tree, units of 2 nodes, "
            "leaves 2:1, spine 1.5:1, e-ecmp; 16,000 of 16,384 devices used; 2 devices perturbed");
}

TEST(ClusterText, LeavesOutTheNetworkOfOneNode) {
  plan::Scenario s = on_fat_tree();
  s.cluster.nodes = 1;
  s.gpus = 8;
  EXPECT_EQ(cluster_text(s), "1 x hgx-h100, 8 x H100-SXM-80GB at 450 GB/s scale-up");
}

// A unit's uplinks carry 1 / leaf ratio of its NICs; without pods the spine layer takes its own ratio on top; a pod's
// carry 1 / (both ratios).
TEST(ClusterText, GivesATierItsOversubscription) {
  topology::FabricSpec fabric;
  EXPECT_EQ(tier_text("spine", fabric), "spine");
  fabric.leaf_oversubscription = 2;
  fabric.spine_oversubscription = 3;
  EXPECT_EQ(tier_text("spine", fabric), "spine 6:1");
  fabric.pod_nodes = 16;
  EXPECT_EQ(tier_text("spine", fabric), "spine 2:1");
  EXPECT_EQ(tier_text("core", fabric), "core 6:1");
  EXPECT_EQ(tier_text("nic", fabric), "nic");
}

}  // namespace
}  // namespace stepcast::report
