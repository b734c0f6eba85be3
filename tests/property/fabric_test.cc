// Exactness on fabrics: random small plans on random clusters (rails or fat trees, oversubscribed leaves and spines,
// shared NICs, slow, half-rate or dead parts, scattered placements), priced by the analytic model.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "base/random.h"
#include "plan/lowering.h"
#include "sim/cost/analytic.h"
#include "sim/prediction.h"
#include "tests/plan/random_plan.h"
#include "tests/random_cases.h"
#include "tests/sim/shipped_calibration.h"

namespace stepcast {
namespace {

constexpr std::uint64_t kFabricSeed = 20261130;
const std::uint64_t kPlans = stepcast::testing::random_cases(250);

class Draws {
 public:
  explicit Draws(std::uint64_t i) : random_(kFabricSeed, "cluster" + std::to_string(i)) {}
  std::int32_t below(std::uint64_t n) { return static_cast<std::int32_t>(random_.integer_at(draw_++, n)); }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

 private:
  RandomStream random_;
  std::uint64_t draw_ = 0;
};

void damage(topology::Cluster& cluster, Draws& draw) {
  const auto devices = static_cast<std::uint64_t>(cluster.devices());
  topology::DeviceOverride change{.device = draw.below(devices)};
  switch (draw.below(6)) {
    case 0:
      change.compute_time = 1.3;
      break;
    case 1:
      change.nic_bandwidth = 0.5;
      break;
    case 2:
      // Another NIC of the node stays up.
      if (cluster.node.devices == 1 || cluster.node.nic.per_device < 1) return;
      change.nic_down = true;
      break;
    case 3:
      change.latency = Duration(7'000'000);
      break;
    case 4:
      change.memory_bandwidth = 0.8;
      break;
    default:
      return;
  }
  cluster.overrides.push_back(change);
}

// The plan of `random_scenario`, its links slow enough for communication to matter, somewhere on a fabric.
plan::Scenario scenario_on_fabric(std::uint64_t i) {
  Draws draw(i);
  plan::Scenario s = plan::testing::random_scenario(kFabricSeed, i);
  topology::Cluster& c = s.cluster;
  c.node.devices = 1 << draw.below(3);
  c.node.scale_up.domain = c.node.devices;
  c.node.device.architecture = "sm90";
  c.node.device.multiprocessors = 132;
  c.node.device.peak_bf16 = c.node.device.peak_fp32 = FlopsPerSecond(4e10);
  c.node.device.memory_bandwidth = BytesPerSecond(4e10);
  c.node.scale_up.bandwidth = BytesPerSecond(4e9);
  c.node.nic.rate = BytesPerSecond(5e8);
  c.node.nic.per_device = c.node.devices > 1 && draw.one_in(4) ? 0.5 : 1;
  c.node.nic.efficiency = 0.9;
  c.node.nic.latency = Duration(1'000'000);
  c.fabric.kind = draw.one_in(2) ? topology::FabricKind::kRail : topology::FabricKind::kFatTree;
  c.fabric.unit_nodes = 1 + draw.below(2);
  if (draw.one_in(2)) c.fabric.pod_nodes = 2 * c.fabric.unit_nodes;
  c.fabric.leaf_oversubscription = 1 + draw.below(3);
  c.fabric.spine_oversubscription = 1 + draw.below(4);
  c.nodes = (static_cast<std::int32_t>(s.gpus) + c.node.devices - 1) / c.node.devices + draw.below(2);
  damage(c, draw);
  if (draw.one_in(4)) {
    s.placement.resize(static_cast<std::size_t>(c.devices()));
    std::iota(s.placement.begin(), s.placement.end(), 0);
    for (std::size_t k = s.placement.size(); k > 1; --k) {
      std::swap(s.placement[k - 1], s.placement[static_cast<std::size_t>(draw.below(k))]);
    }
    s.placement.resize(static_cast<std::size_t>(s.gpus));
  }
  return s;
}

bool same_times(const sim::Prediction& folded, const sim::Prediction& whole) {
  if (folded.step != whole.step) return false;
  for (std::size_t rank = 0; rank < whole.classes.size(); ++rank) {
    if (folded.classes[folded.class_of_rank[rank]].events != whole.classes[rank].events) return false;
  }
  return true;
}

TEST(Fabric, FoldedEqualsUnfoldedWithContentionOnAndOff) {
  const sim::Calibration constants = testing::shipped_calibration("h100-default");
  std::uint64_t folded_plans = 0;
  std::uint64_t folded_links = 0;
  std::uint64_t contended = 0;
  std::uint64_t linked = 0;
  for (std::uint64_t i = 0; i < kPlans; ++i) {
    const plan::Scenario s = scenario_on_fabric(i);
    const program::CheckedProgram p(plan::lower(s));
    const sim::AnalyticCostModel costs(s.cluster, constants);
    const sim::Simulation folded(p, costs, true);
    const sim::Simulation whole(p, costs, false);
    const sim::Prediction on = whole.run({.fold = false});
    const sim::Prediction off = whole.run({.fold = false, .contention = false});
    ASSERT_TRUE(same_times(folded.run({}), on)) << "plan " << i;
    ASSERT_TRUE(same_times(folded.run({.contention = false}), off)) << "plan " << i;
    ASSERT_TRUE(same_times(sim::relax(p, costs, {.fold = false}), off)) << "plan " << i;
    const sim::Prediction classes = folded.run({.record_events = false});
    folded_plans += classes.classes.size() < on.classes.size() ? 1U : 0U;
    folded_links += classes.link_classes < on.link_classes ? 1U : 0U;
    linked += on.link_classes > 0 ? 1U : 0U;
    contended += on.step > off.step ? 1U : 0U;
  }
  // All of it is exercised.
  EXPECT_GT(folded_plans, kPlans / 4);
  EXPECT_GT(linked, kPlans / 4);
  EXPECT_GT(folded_links, kPlans / 10);
  EXPECT_GT(contended, kPlans / 4);
}

// A faster NIC, a wider spine or a faster device should never make a step longer. With contention it can: what starts
// earlier may take a link from what matters more (a list-scheduling anomaly; Graham, 1969). Such cases are counted.
TEST(Fabric, FasterPartsHardlyEverMakeALongerStep) {
  const sim::Calibration constants = testing::shipped_calibration("h100-default");
  std::uint64_t cases = 0;
  std::uint64_t longer = 0;
  std::string which;
  for (std::uint64_t i = 0; i < kPlans; ++i) {
    const plan::Scenario s = scenario_on_fabric(i);
    const program::CheckedProgram p(plan::lower(s));
    const auto step = [&](const topology::Cluster& cluster) {
      return simulate(p, sim::AnalyticCostModel(cluster, constants), {.record_events = false}).step;
    };
    topology::Cluster nic = s.cluster;
    nic.node.nic.rate = BytesPerSecond(2 * nic.node.nic.rate.value);
    topology::Cluster spine = s.cluster;
    spine.fabric.leaf_oversubscription = spine.fabric.spine_oversubscription = 1;
    topology::Cluster device = s.cluster;
    device.node.device.peak_bf16 = device.node.device.peak_fp32 = FlopsPerSecond(6e10);
    device.node.device.memory_bandwidth = BytesPerSecond(6e10);
    const Duration before = step(s.cluster);
    for (const auto& [name, cluster] :
         {std::pair("nic", nic), std::pair("spine", spine), std::pair("device", device)}) {
      ++cases;
      if (step(cluster) <= before) continue;
      ++longer;
      which += " " + std::to_string(i) + ":" + name;
    }
  }
  std::printf("longer with a faster part: %llu of %llu:%s\n", static_cast<unsigned long long>(longer),
              static_cast<unsigned long long>(cases), which.c_str());
  EXPECT_LE(longer * 50, cases) << which;
}

}  // namespace
}  // namespace stepcast
