// Shapes of groups and pairs: tier, domains, rates, latency, spread, damage, and what is refused.
//
// In fabric_cluster(kind, 12, 4, 2, 4) there are 6 units of 8 devices and 3 pods of 16: device d is in node d / 4, unit
// d / 8, pod d / 16, on rail d % 4. A unit's uplink of one rail carries 2 NICs x 2.5 GB/s / 2 = 2.5 GB/s, a pod's
// 4 x 4 NICs x 2.5 GB/s / (2 x 4) = 5 GB/s.
#include "topology/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/error.h"
#include "base/random.h"
#include "tests/topology/small_cluster.h"

namespace stepcast::topology {
namespace {

using testing::Devices;
using testing::fabric_cluster;
using testing::range;
using testing::small_cluster;

GroupShape shape(const Cluster& cluster, const Devices& devices) { return Network(cluster).shape_of(devices); }

ErrorKind refused_as(const Cluster& cluster, const Devices& devices) {
  try {
    shape(cluster, devices);
  } catch (const Error& e) {
    return e.kind();
  }
  ADD_FAILURE() << "accepted";
  return ErrorKind::kSubject;
}

TEST(ShapeOf, CrossesScaleUpWithinANode) {
  const Cluster cluster = small_cluster(2, 8);
  GroupShape expected;
  expected.tier = Tier::kScaleUp;
  expected.members = expected.most_per_domain = expected.fewest_per_domain = 3;
  expected.port = BytesPerSecond(100e9);
  EXPECT_EQ(shape(cluster, {7, 0, 3}), expected);
  EXPECT_EQ(shape(cluster, {8, 15, 12}), expected);
}

TEST(ShapeOf, SendsNothingForOneDevice) { EXPECT_EQ(shape(small_cluster(1, 8), {5}), GroupShape()); }

// Domains of 4 in nodes of 8: {0..3}, {4..7}. The host link is the port between them; no NIC takes part.
TEST(ShapeOf, JoinsDomainsOfANodeByTheHostLink) {
  const GroupShape pair = shape(small_cluster(2, 4), {3, 4});
  EXPECT_EQ(pair.tier, Tier::kHost);
  EXPECT_EQ(pair.domains, 2);
  EXPECT_EQ(pair.port, BytesPerSecond(10e9));
  EXPECT_EQ(pair.nic, BytesPerSecond(0));
  EXPECT_EQ(pair.latency, Duration(0));
  const GroupShape uneven = shape(small_cluster(2, 4), {0, 1, 3, 6});
  EXPECT_EQ(uneven.most_per_domain, 3);
  EXPECT_EQ(uneven.fewest_per_domain, 1);
  EXPECT_EQ(shape(small_cluster(2, 4), {4, 7}).tier, Tier::kScaleUp);
}

TEST(ShapeOf, TakesTheTierOfTheFarthestPair) {
  for (const FabricKind kind : {FabricKind::kRail, FabricKind::kFatTree}) {
    const Cluster cluster = fabric_cluster(kind, 12, 4, 2, 4);
    const GroupShape leaf = shape(cluster, {0, 4});
    EXPECT_EQ(leaf.tier, Tier::kLeaf);
    EXPECT_EQ(leaf.nic, BytesPerSecond(5e9));
    EXPECT_EQ(leaf.port, BytesPerSecond(100e9));
    EXPECT_EQ(leaf.latency, Duration(1100));
    EXPECT_EQ(leaf.spread, BytesPerSecond(0));
    const GroupShape spine = shape(cluster, {8, 4, 5});
    EXPECT_EQ(spine.tier, Tier::kSpine);
    EXPECT_EQ(spine.domains, 2);
    EXPECT_EQ(spine.nic, BytesPerSecond(2.5e9));
    EXPECT_EQ(spine.latency, Duration(1300));
    const GroupShape core = shape(cluster, {0, 4, 16});
    EXPECT_EQ(core.tier, Tier::kCore);
    EXPECT_EQ(core.domains, 3);
    EXPECT_EQ(core.latency, Duration(1500));
  }
  EXPECT_EQ(shape(fabric_cluster(FabricKind::kRail, 12, 0), {0, 47}).tier, Tier::kSpine);
}

// A domain of 8 devices is two nodes of 4.
TEST(ShapeOf, KnowsDomainsOfSeveralNodes) {
  Cluster cluster = fabric_cluster(FabricKind::kRail, 8, 0);
  cluster.node.scale_up.domain = 8;
  EXPECT_EQ(shape(cluster, {0, 7}).tier, Tier::kScaleUp);
  EXPECT_EQ(shape(cluster, {0, 7}).domains, 1);
  const GroupShape two = shape(cluster, range(0, 16));
  EXPECT_EQ(two.tier, Tier::kSpine);
  EXPECT_EQ(two.domains, 2);
  EXPECT_EQ(two.fewest_per_domain, 8);
}

// A rail's uplink of 2 NICs x 2.5 GB/s / 8 is narrower than one NIC.
TEST(ShapeOf, IsNoFasterThanAnUplink) {
  const Cluster cluster = fabric_cluster(FabricKind::kRail, 12, 0, 1, 8);
  EXPECT_EQ(shape(cluster, {0, 8}).nic, BytesPerSecond(0.625e9));
  EXPECT_EQ(shape(cluster, {0, 4}).nic, BytesPerSecond(5e9));
}

// Every member sends an n-th of its rate to each. Through a unit's rail uplink: 2 members x (n - 8) / n of it.
//   n = 16 (units 0, 1): 2 x 8 / 16 = 1 member's rate in 2.5 GB/s.
//   n = 48: 2 x 40 / 48 in 2.5 GB/s is 1.5 GB/s; through a pod 16 x 32 / 48 in 5 GB/s is 0.46875 GB/s.
// The fat tree's unit uplink is 2 x 4 NICs x 2.5 / 2 = 10 GB/s: 8 x 8 / 16 = 4 members' rate, the same 2.5 GB/s.
// Uneven {0, 1, 4, 8}: unit 0 has 3 members, two of them on rail 0: 2 x 1 / 4 in 2.5 GB/s is 5 GB/s; unit 1 sends
// 1 x 3 / 4 in 2.5 GB/s: 3.333 GB/s.
TEST(ShapeOf, SpreadsOverOversubscribedUplinks) {
  const Cluster rail = fabric_cluster(FabricKind::kRail, 12, 4, 2, 4);
  EXPECT_EQ(shape(rail, range(0, 16)).spread, BytesPerSecond(2.5e9));
  EXPECT_EQ(shape(rail, range(0, 48)).spread, BytesPerSecond(468750000));
  EXPECT_DOUBLE_EQ(shape(rail, {0, 1, 4, 8}).spread.value, 2.5e9 * 4 / 3);
  EXPECT_EQ(shape(fabric_cluster(FabricKind::kFatTree, 12, 4, 2, 4), range(0, 16)).spread, BytesPerSecond(2.5e9));
  // [1, 2] without pods limits what leaves a unit by 2: the same 2.5 GB/s on a rail.
  EXPECT_EQ(shape(fabric_cluster(FabricKind::kRail, 12, 0, 1, 2), range(0, 16)).spread, BytesPerSecond(2.5e9));
  EXPECT_EQ(shape(fabric_cluster(FabricKind::kRail, 12, 4), range(0, 48)).spread, BytesPerSecond(0));
}

// Device 5's NIC at half rate: only groups it is in slow down. Latencies 7, 3 and 2 ps: the worst pair adds 7 + 3.
TEST(ShapeOf, CountsDamageOfMembers) {
  Cluster cluster = fabric_cluster(FabricKind::kRail, 12, 4);
  cluster.overrides = {{.device = 5, .nic_bandwidth = 0.5},
                       {.device = 0, .latency = Duration(7)},
                       {.device = 4, .latency = Duration(3)},
                       {.device = 8, .latency = Duration(2)},
                       {.device = 9, .compute_time = 2.0}};
  EXPECT_EQ(shape(cluster, {1, 5}).nic, BytesPerSecond(2.5e9));
  EXPECT_EQ(shape(cluster, {2, 6}).nic, BytesPerSecond(5e9));
  EXPECT_EQ(shape(cluster, range(0, 48)).nic, BytesPerSecond(1.25e9));  // x routing above the leaves
  EXPECT_EQ(shape(cluster, {0, 4, 8}).latency, Duration(1310));
  EXPECT_EQ(shape(cluster, {0, 1}).latency, Duration(7));
  EXPECT_EQ(shape(cluster, {2, 6}).latency, Duration(1100));
  EXPECT_EQ(shape(cluster, {0}).latency, Duration(0));
}

// Device 4's NIC is down and 5's is slow: 4 uses 5's.
TEST(ShapeOf, TakesTheRateOfABorrowedNic) {
  Cluster cluster = fabric_cluster(FabricKind::kRail, 2, 0);
  cluster.overrides = {{.device = 4, .nic_down = true}, {.device = 5, .nic_bandwidth = 0.5}};
  EXPECT_EQ(shape(cluster, {0, 4}).nic, BytesPerSecond(2.5e9));
  EXPECT_EQ(shape(cluster, {2, 6}).nic, BytesPerSecond(5e9));
}

// Two members on one NIC, of one collective, have half of it each: as if the NICs were at half rate. A third on it is
// another third; a group that holds one of them has it whole. Device 4's is down and 5's is slow: a quarter each.
TEST(ShapeOf, DividesABorrowedNicAmongMembers) {
  Cluster dead = fabric_cluster(FabricKind::kRail, 2, 0);
  Cluster half = dead;
  dead.overrides = {{.device = 4, .nic_down = true}};
  half.overrides = {{.device = 4, .nic_bandwidth = 0.5}};
  EXPECT_EQ(shape(dead, range(0, 8)), shape(half, range(0, 8)));
  EXPECT_EQ(shape(dead, {0, 1, 4, 5}), shape(half, {0, 1, 4, 5}));
  EXPECT_EQ(shape(dead, {0, 4}).nic, BytesPerSecond(5e9));
  EXPECT_EQ(shape(dead, {1, 5}).nic, BytesPerSecond(5e9));
  dead.overrides = {{.device = 4, .nic_down = true}, {.device = 5, .nic_down = true}};
  EXPECT_DOUBLE_EQ(shape(dead, range(0, 8)).nic.value, 5e9 / 3);
  dead.overrides = {{.device = 4, .nic_down = true}, {.device = 5, .nic_bandwidth = 0.5}};
  EXPECT_EQ(shape(dead, range(0, 8)).nic, BytesPerSecond(1.25e9));
}

// A NIC that two devices share counts whole; two NICs of one device count together.
TEST(ShapeOf, CountsTheNicsThatADeviceUses) {
  Cluster cluster = fabric_cluster(FabricKind::kRail, 2, 0);
  cluster.node.nic.per_device = 0.5;
  EXPECT_EQ(shape(cluster, {0, 4}).nic, BytesPerSecond(5e9));
  EXPECT_EQ(Network(cluster).nominal_nic(), BytesPerSecond(5e9));
  cluster.node.nic.per_device = 2;
  EXPECT_EQ(shape(cluster, {0, 4}).nic, BytesPerSecond(10e9));
  EXPECT_EQ(Network(cluster).nominal_nic(), BytesPerSecond(10e9));
  EXPECT_EQ(Network(small_cluster(1, 8)).nominal_nic(), BytesPerSecond(0));
}

TEST(ShapeOf, RefusesGroupsThatAreNone) {
  const Cluster cluster = small_cluster(1, 8);
  EXPECT_EQ(refused_as(cluster, {}), ErrorKind::kInput);
  EXPECT_EQ(refused_as(cluster, {0, 8}), ErrorKind::kInput);
  EXPECT_EQ(refused_as(cluster, {-1, 2}), ErrorKind::kInput);
  EXPECT_EQ(refused_as(cluster, {2, 1, 2}), ErrorKind::kInput);
}

TEST(ShapeOf, RefusesGroupsThatNothingJoins) {
  EXPECT_EQ(refused_as(small_cluster(2, 8), {7, 8}), ErrorKind::kUnsupported);  // no fabric
  Cluster no_nic = fabric_cluster(FabricKind::kRail, 2, 0);
  no_nic.node.nic.rate = BytesPerSecond(0);
  EXPECT_EQ(refused_as(no_nic, {3, 4}), ErrorKind::kUnsupported);
  Cluster no_host_link = small_cluster(1, 4);
  no_host_link.node.host_link = BytesPerSecond(0);
  EXPECT_EQ(refused_as(no_host_link, {3, 4}), ErrorKind::kUnsupported);
  try {
    shape(small_cluster(2, 8), {7, 8});
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("a path between nodes (devices 7 and 8)"), std::string::npos) << e.what();
  }
}

// Without a host link the NICs join the domains of a node.
TEST(ShapeOf, JoinsDomainsByNicsWhereTheHostLinkDoesNot) {
  Cluster cluster = fabric_cluster(FabricKind::kRail, 2, 0);
  cluster.node.scale_up.domain = 2;
  cluster.node.host_link = BytesPerSecond(0);
  EXPECT_EQ(shape(cluster, {1, 2}).tier, Tier::kLeaf);
  EXPECT_EQ(shape(cluster, {1, 2}).nic, BytesPerSecond(5e9));
}

TEST(Network, RefusesANodeWithoutAnyNicLeft) {
  Cluster cluster = fabric_cluster(FabricKind::kRail, 2, 0);
  for (std::int32_t device = 4; device < 8; ++device) cluster.overrides.push_back({.device = device, .nic_down = true});
  try {
    const Network network(cluster);
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
    EXPECT_NE(std::string(e.what()).find("all NICs of node 1 are down"), std::string::npos) << e.what();
  }
}

// One domain of two nodes: nothing passes a NIC.
TEST(Network, NeedsNoNicWithinADomain) {
  Cluster cluster = fabric_cluster(FabricKind::kRail, 2, 0);
  cluster.node.scale_up.domain = 8;
  for (std::int32_t device = 4; device < 8; ++device) cluster.overrides.push_back({.device = device, .nic_down = true});
  EXPECT_EQ(Network(cluster).shape_between(0, 7).tier, Tier::kScaleUp);
}

TEST(ShapeBetween, IsTheShapeOfThePair) {
  Cluster cluster = fabric_cluster(FabricKind::kRail, 11, 4, 2, 4);  // the last unit and pod are partly filled
  cluster.node.scale_up.domain = 2;
  cluster.overrides = {
      {.device = 5, .nic_bandwidth = 0.5}, {.device = 9, .nic_down = true}, {.device = 3, .latency = Duration(7)}};
  for (const FabricKind kind : {FabricKind::kRail, FabricKind::kFatTree}) {
    cluster.fabric.kind = kind;
    const Network network(cluster);
    for (std::int32_t a = 0; a < 44; ++a) {
      for (std::int32_t b = 0; b < 44; ++b) {
        const Devices pair = a == b ? Devices{a} : Devices{a, b};
        ASSERT_EQ(network.shape_between(a, b), network.shape_of(pair)) << a << " " << b;
      }
    }
    EXPECT_THROW(network.shape_between(44, 44), Error);
    EXPECT_THROW(network.shape_between(0, -1), Error);
  }
}

// Tier, domains and members per domain by their definitions, on random groups in any order.
TEST(ShapeOf, FollowsTheDefinitionsOnRandomGroups) {
  const Network network(fabric_cluster(FabricKind::kRail, 11, 4, 2, 4));
  const RandomStream random(3, "network-groups");
  for (std::uint64_t round = 0; round < 200; ++round) {
    Devices devices = range(0, 44);
    for (std::uint64_t i = 43; i > 0; --i) {
      std::swap(devices[i], devices[static_cast<std::size_t>(random.integer_at(round * 64 + i, i + 1))]);
    }
    devices.resize(2 + static_cast<std::size_t>(random.integer_at(round * 64, 20)));
    std::vector<std::int32_t> in_domain(11, 0);
    Tier tier = Tier::kNone;
    for (const std::int32_t a : devices) {
      ++in_domain[static_cast<std::size_t>(a / 4)];
      for (const std::int32_t b : devices) tier = std::max(tier, network.shape_between(a, b).tier);
    }
    in_domain.erase(std::remove(in_domain.begin(), in_domain.end(), 0), in_domain.end());
    const GroupShape got = network.shape_of(devices);
    ASSERT_EQ(got.tier, tier);
    ASSERT_EQ(got.domains, static_cast<std::int32_t>(in_domain.size()));
    ASSERT_EQ(got.most_per_domain, *std::max_element(in_domain.begin(), in_domain.end()));
    ASSERT_EQ(got.fewest_per_domain, *std::min_element(in_domain.begin(), in_domain.end()));
    Devices sorted = devices;
    std::sort(sorted.begin(), sorted.end());
    ASSERT_EQ(network.shape_of(sorted), got);
  }
}

}  // namespace
}  // namespace stepcast::topology
