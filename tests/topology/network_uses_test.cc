// Shared links and what passes them. Clusters as in network_test.cc: unit d / 8, pod d / 16, rail d % 4.
//
// Link numbers in fabric_cluster(kRail, 12, 4, 2, 4): unit u, rail r up at 2 (4 u + r), down the next; pods from 48 on.
#include <gtest/gtest.h>

#include <string>

#include "tests/topology/small_cluster.h"
#include "topology/network.h"

namespace stepcast::topology {
namespace {

using testing::Devices;
using testing::fabric_cluster;
using testing::range;
using Expected = std::vector<std::pair<std::string, std::int64_t>>;  // by link name

Expected uses(const Network& network, const Devices& devices, TrafficPattern pattern) {
  std::vector<LinkUse> found = {{99, 1}};  // what is there already stays
  network.append_uses(devices, pattern, found);
  EXPECT_EQ(found.front(), (LinkUse{99, 1}));
  Expected named;
  for (std::size_t i = 1; i < found.size(); ++i) {
    if (i > 1) {
      EXPECT_LT(found[i - 1].link, found[i].link);
    }
    named.emplace_back(network.shared_links().at(found[i].link).name, found[i].weight);
  }
  return named;
}

Expected ring(const Network& network, const Devices& devices) { return uses(network, devices, TrafficPattern::kRing); }
Expected all_to_all(const Network& network, const Devices& devices) {
  return uses(network, devices, TrafficPattern::kAllToAll);
}
Expected message(const Network& network, std::int32_t sender, std::int32_t receiver) {
  return uses(network, {sender, receiver}, TrafficPattern::kMessage);
}

// 6 units x 4 rails x 2 and 3 pods x 2. Capacities: see network_test.cc.
TEST(SharedLinks, AreTheOversubscribedUplinksPerRailAndPod) {
  const Network network(fabric_cluster(FabricKind::kRail, 12, 4, 2, 4));
  const auto& links = network.shared_links();
  ASSERT_EQ(links.size(), 54u);
  EXPECT_EQ(links[0].name, "unit 0 rail 0 up");
  EXPECT_EQ(links[0].capacity, BytesPerSecond(2.5e9));
  EXPECT_EQ(links[0].tier, Tier::kSpine);
  EXPECT_EQ(links[47].name, "unit 5 rail 3 down");
  EXPECT_EQ(links[48].name, "pod 0 up");
  EXPECT_EQ(links[48].capacity, BytesPerSecond(5e9));
  EXPECT_EQ(links[48].tier, Tier::kCore);
  EXPECT_EQ(links[53].name, "pod 2 down");
}

TEST(SharedLinks, AreOnePairPerUnitOfAFatTree) {
  const Network network(fabric_cluster(FabricKind::kFatTree, 12, 4, 2, 4));
  ASSERT_EQ(network.shared_links().size(), 18u);
  EXPECT_EQ(network.shared_links()[3].name, "unit 1 down");
  EXPECT_EQ(network.shared_links()[3].capacity, BytesPerSecond(10e9));  // 2 x 4 NICs x 2.5 GB/s / 2
}

// 11 nodes: unit 5 has one node, pod 2 has three; their uplinks are those of whole ones.
TEST(SharedLinks, OfAPartlyFilledUnitAreWhole) {
  const Network network(fabric_cluster(FabricKind::kFatTree, 11, 4, 2, 4));
  ASSERT_EQ(network.shared_links().size(), 18u);
  EXPECT_EQ(network.shared_links()[11].capacity, BytesPerSecond(10e9));
  EXPECT_EQ(network.shared_links()[17].capacity, BytesPerSecond(5e9));
}

TEST(SharedLinks, AreNoneWhereNothingIsOversubscribedOrThereIsOneUnit) {
  EXPECT_TRUE(Network(fabric_cluster(FabricKind::kRail, 12, 4)).shared_links().empty());
  EXPECT_TRUE(Network(fabric_cluster(FabricKind::kRail, 2, 4, 2, 4)).shared_links().empty());
  // Leaf only: pods are no narrower than their units. Spine only, with pods: units are non-blocking.
  EXPECT_EQ(Network(fabric_cluster(FabricKind::kFatTree, 12, 4, 2, 1)).shared_links().size(), 12u);
  EXPECT_EQ(Network(fabric_cluster(FabricKind::kFatTree, 12, 4, 1, 2)).shared_links().size(), 6u);
  // Without pods both ratios are the unit's: 8 NICs x 2.5 GB/s / (2 x 4).
  const Network both(fabric_cluster(FabricKind::kFatTree, 12, 0, 2, 4));
  ASSERT_EQ(both.shared_links().size(), 12u);
  EXPECT_EQ(both.shared_links()[0].capacity, BytesPerSecond(2.5e9));
}

TEST(Ring, UsesNothingWithinAUnit) {
  const Network network(fabric_cluster(FabricKind::kRail, 12, 4, 2, 4));
  EXPECT_TRUE(ring(network, range(0, 8)).empty());
  EXPECT_TRUE(all_to_all(network, range(0, 8)).empty());
  EXPECT_TRUE(message(network, 0, 7).empty());
  EXPECT_TRUE(ring(network, {5}).empty());
}

// Nodes 0 1 | 2 3: the ring crosses from node 1 to 2 and from node 3 to 0, on the NICs of all four members of a node.
TEST(Ring, CrossesEachRailOncePerBoundary) {
  const Network rail(fabric_cluster(FabricKind::kRail, 12, 4, 2, 4));
  Expected expected;
  for (const char* unit : {"unit 0", "unit 1"}) {
    for (const char* r : {" rail 0", " rail 1", " rail 2", " rail 3"}) {
      expected.emplace_back(std::string(unit) + r + " up", 1024);
      expected.emplace_back(std::string(unit) + r + " down", 1024);
    }
  }
  EXPECT_EQ(ring(rail, range(0, 16)), expected);
  const Network fat_tree(fabric_cluster(FabricKind::kFatTree, 12, 4, 2, 4));
  EXPECT_EQ(ring(fat_tree, range(0, 16)),
            (Expected{{"unit 0 up", 4096}, {"unit 0 down", 4096}, {"unit 1 up", 4096}, {"unit 1 down", 4096}}));
}

// Member order 0, 8, 4, 12 alternates between units 0 and 1: four crossings instead of two.
TEST(Ring, FollowsMemberOrder) {
  const Network network(fabric_cluster(FabricKind::kRail, 12, 4, 2, 4));
  const auto on_rail_0 = [](std::int64_t weight) {
    return Expected{{"unit 0 rail 0 up", weight},
                    {"unit 0 rail 0 down", weight},
                    {"unit 1 rail 0 up", weight},
                    {"unit 1 rail 0 down", weight}};
  };
  EXPECT_EQ(ring(network, {0, 4, 8, 12}), on_rail_0(1024));
  EXPECT_EQ(ring(network, {0, 8, 4, 12}), on_rail_0(2048));
  // Members of a domain stay together, wherever they stand: domains {0, 1}, {8, 9} whatever the order within.
  EXPECT_EQ(ring(network, {0, 8, 1, 9}), ring(network, {0, 1, 8, 9}));
  EXPECT_EQ(ring(network, {0, 8, 1, 9}).size(), 8u);  // rails 0 and 1
}

// Domains {0, 1}, {8}: only one member of each takes part in crossings.
TEST(Ring, IsAsNarrowAsTheSmallestDomain) {
  const Network network(fabric_cluster(FabricKind::kFatTree, 12, 4, 2, 4));
  EXPECT_EQ(ring(network, {0, 1, 8}),
            (Expected{{"unit 0 up", 1024}, {"unit 0 down", 1024}, {"unit 1 up", 1024}, {"unit 1 down", 1024}}));
}

// Nodes 0 (pod 0) and 4 (pod 1, unit 2): out of and into both, on four NICs.
TEST(Ring, CrossesPods) {
  const Network network(fabric_cluster(FabricKind::kFatTree, 12, 4, 2, 4));
  EXPECT_EQ(ring(network, {0, 1, 2, 3, 16, 17, 18, 19}), (Expected{{"unit 0 up", 4096},
                                                                   {"unit 0 down", 4096},
                                                                   {"unit 2 up", 4096},
                                                                   {"unit 2 down", 4096},
                                                                   {"pod 0 up", 4096},
                                                                   {"pod 0 down", 4096},
                                                                   {"pod 1 up", 4096},
                                                                   {"pod 1 down", 4096}}));
}

// Domains of two nodes: eight members, two on each rail.
TEST(Ring, TakesEveryNicOfADomainOfSeveralNodes) {
  Cluster cluster = fabric_cluster(FabricKind::kRail, 4, 0, 1, 2);
  cluster.node.scale_up.domain = 8;
  const Network network(cluster);
  const Expected found = ring(network, range(0, 16));
  ASSERT_EQ(found.size(), 16u);
  for (const auto& [name, weight] : found) EXPECT_EQ(weight, 2048) << name;
}

// 16 members, 4 a domain: a NIC carries what goes to 12. Of a unit's 8, two on a rail, to the 8 of the other:
// 2 x 8 / 12 x 1024 = 1365.3; on a whole unit's link 8 x 8 / 12 x 1024 = 5461.3.
TEST(AllToAll, PassesWhatLeavesAUnit) {
  const Network rail(fabric_cluster(FabricKind::kRail, 12, 4, 2, 4));
  const Expected on_rails = all_to_all(rail, range(0, 16));
  ASSERT_EQ(on_rails.size(), 16u);
  for (const auto& [name, weight] : on_rails) EXPECT_EQ(weight, 1366) << name;
  const Network fat_tree(fabric_cluster(FabricKind::kFatTree, 12, 4, 2, 4));
  EXPECT_EQ(all_to_all(fat_tree, range(0, 16)),
            (Expected{{"unit 0 up", 5462}, {"unit 0 down", 5462}, {"unit 1 up", 5462}, {"unit 1 down", 5462}}));
}

// {0, 1, 8}: g = 1, a NIC carries what goes to 2. Unit 0: 2 x 1 / 2; unit 1: 1 x 2 / 2; on rails 1/2 and 1/2, and 1.
TEST(AllToAll, WeighsUnevenUnits) {
  const Network fat_tree(fabric_cluster(FabricKind::kFatTree, 12, 4, 2, 4));
  EXPECT_EQ(all_to_all(fat_tree, {8, 1, 0}),
            (Expected{{"unit 0 up", 1024}, {"unit 0 down", 1024}, {"unit 1 up", 1024}, {"unit 1 down", 1024}}));
  const Network rail(fabric_cluster(FabricKind::kRail, 12, 4, 2, 4));
  EXPECT_EQ(all_to_all(rail, {0, 1, 8}), (Expected{{"unit 0 rail 0 up", 512},
                                                   {"unit 0 rail 0 down", 512},
                                                   {"unit 0 rail 1 up", 512},
                                                   {"unit 0 rail 1 down", 512},
                                                   {"unit 1 rail 0 up", 1024},
                                                   {"unit 1 rail 0 down", 1024}}));
}

// Nodes 0, 2 (pod 0), 4 (pod 1), whole: n = 12, g = 4. A unit: 4 x 8 / 8; pod 0: 8 x 4 / 8, pod 1: 4 x 8 / 8.
TEST(AllToAll, PassesWhatLeavesAPod) {
  const Network network(fabric_cluster(FabricKind::kFatTree, 12, 4, 1, 2));
  Devices devices = range(0, 4);
  for (const std::int32_t first : {8, 16}) {
    for (const std::int32_t device : range(first, 4)) devices.push_back(device);
  }
  EXPECT_EQ(all_to_all(network, devices),
            (Expected{{"pod 0 up", 4096}, {"pod 0 down", 4096}, {"pod 1 up", 4096}, {"pod 1 down", 4096}}));
}

// A message is on the receiver's rail: it changes rails within the sender's node.
TEST(Message, GoesUpAndDownOnTheReceiversRail) {
  const Network network(fabric_cluster(FabricKind::kRail, 12, 4, 2, 4));
  EXPECT_EQ(message(network, 0, 9), (Expected{{"unit 0 rail 1 up", 1024}, {"unit 1 rail 1 down", 1024}}));
  EXPECT_EQ(message(network, 9, 0), (Expected{{"unit 0 rail 0 down", 1024}, {"unit 1 rail 0 up", 1024}}));
  EXPECT_EQ(
      message(network, 0, 16),
      (Expected{{"unit 0 rail 0 up", 1024}, {"unit 2 rail 0 down", 1024}, {"pod 0 up", 1024}, {"pod 1 down", 1024}}));
}

// Devices 0 and 1 share NIC 0 of node 0, 2 and 3 NIC 1.
TEST(SharedNics, CarryEveryMemberThatUsesThem) {
  Cluster cluster = fabric_cluster(FabricKind::kRail, 2, 0);
  cluster.node.nic.per_device = 0.5;
  const Network network(cluster);
  ASSERT_EQ(network.shared_links().size(), 8u);
  EXPECT_EQ(network.shared_links()[2].name, "node 0 NIC 1 out");
  EXPECT_EQ(network.shared_links()[2].capacity, BytesPerSecond(5e9));
  EXPECT_EQ(network.shared_links()[2].tier, Tier::kLeaf);
  EXPECT_EQ(ring(network, {0, 1, 2, 4, 5}), (Expected{{"node 0 NIC 0 out", 2048},
                                                      {"node 0 NIC 0 in", 2048},
                                                      {"node 0 NIC 1 out", 1024},
                                                      {"node 0 NIC 1 in", 1024},
                                                      {"node 1 NIC 0 out", 2048},
                                                      {"node 1 NIC 0 in", 2048}}));
  EXPECT_EQ(message(network, 1, 6), (Expected{{"node 0 NIC 0 out", 1024}, {"node 1 NIC 1 in", 1024}}));
  EXPECT_TRUE(ring(network, {0, 1, 2}).empty());  // within the domain
}

// Two rails of two NICs each: 2 nodes x 5 GB/s x 0.5 / 2.
TEST(SharedNics, MakeAsManyRailsAsNics) {
  Cluster cluster = fabric_cluster(FabricKind::kRail, 4, 0, 1, 2);
  cluster.node.nic.per_device = 0.5;
  const Network network(cluster);
  ASSERT_EQ(network.shared_links().size(), 2u * 2 * 2 + 4 * 2 * 2);
  EXPECT_EQ(network.shared_links()[2].name, "unit 0 rail 1 up");
  EXPECT_EQ(network.shared_links()[2].capacity, BytesPerSecond(2.5e9));
  EXPECT_EQ(message(network, 0, 11).front(), (std::pair<std::string, std::int64_t>("unit 0 rail 1 up", 1024)));
}

// Devices 3 and 0 of node 0 are without NIC: 3 wraps to 0, finds it down, and both use 1's, which three share. Node 1's
// device 5 uses NIC 2 of the node, at half rate.
TEST(DeadNics, BorrowTheNextOneOfTheNode) {
  Cluster cluster = fabric_cluster(FabricKind::kRail, 2, 0);
  cluster.overrides = {{.device = 3, .nic_down = true},
                       {.device = 0, .nic_down = true},
                       {.device = 5, .nic_down = true},
                       {.device = 6, .nic_bandwidth = 0.5}};
  const Network network(cluster);
  ASSERT_EQ(network.shared_links().size(), 4u);
  EXPECT_EQ(network.shared_links()[0].name, "node 0 NIC 1 out");
  EXPECT_EQ(network.shared_links()[0].capacity, BytesPerSecond(5e9));
  EXPECT_EQ(network.shared_links()[3].name, "node 1 NIC 2 in");
  EXPECT_EQ(network.shared_links()[3].capacity, BytesPerSecond(2.5e9));
  EXPECT_EQ(ring(network, range(0, 8)), (Expected{{"node 0 NIC 1 out", 3072},
                                                  {"node 0 NIC 1 in", 3072},
                                                  {"node 1 NIC 2 out", 2048},
                                                  {"node 1 NIC 2 in", 2048}}));
  EXPECT_EQ(message(network, 3, 4), (Expected{{"node 0 NIC 1 out", 1024}}));
  EXPECT_EQ(message(network, 2, 6), (Expected{{"node 1 NIC 2 in", 1024}}));
}

// A borrowed NIC is on its own rail: device 0's traffic arrives on rail 1.
TEST(DeadNics, MoveTrafficToTheirRail) {
  Cluster cluster = fabric_cluster(FabricKind::kRail, 4, 0, 1, 2);
  cluster.overrides = {{.device = 0, .nic_down = true}};
  const Network network(cluster);
  EXPECT_EQ(message(network, 8, 0),
            (Expected{{"unit 0 rail 1 down", 1024}, {"unit 1 rail 1 up", 1024}, {"node 0 NIC 1 in", 1024}}));
}

}  // namespace
}  // namespace stepcast::topology
