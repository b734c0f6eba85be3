// Custom fabrics: paths, what they share, damage, errors; and hierarchical fabrics against their own explicit graphs.
#include "topology/fabric_graph.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "tests/topology/cluster_text.h"
#include "tests/topology/small_cluster.h"

namespace stepcast::topology {
namespace {

using testing::fabric_cluster;

// Nodes of two devices; leaf0 joins nodes 0 and 1, leaf1 joins 2 and 3, two spines join the leaves. A path over the
// spines is 1 us between NICs, 3 switches of 100 ns, and cables of 10 ns each but the spines' of 20 ns:
// 1000 + 300 + 10 + 20 + 20 + 10 = 1360 ns.
constexpr const char* kNodes = R"(
name: two-leaves
gpu: {name: unit, peak_bf16: 1 TFLOP/s, peak_fp32: 1 TFLOP/s, memory: 1 GiB, hbm_bandwidth: 1 TB/s, multiprocessors: 1}
gpus_per_node: 2
scale_up: {bandwidth: 100 GB/s}
host: {pcie: 10 GB/s}
nic: {rate: 10 GB/s, efficiency: 0.5, latency: 1 us}
fabric:
  kind: custom
  hop_latency: 100 ns
  cables:
    - {a: node0.nic0, b: leaf0, rate: 10 GB/s, latency: 10 ns}
    - {a: node0.nic1, b: leaf0, rate: 10 GB/s, latency: 10 ns}
    - {a: node1.nic0, b: leaf0, rate: 10 GB/s, latency: 10 ns}
    - {a: node1.nic1, b: leaf0, rate: 10 GB/s, latency: 10 ns}
    - {a: node2.nic0, b: leaf1, rate: 10 GB/s, latency: 10 ns}
    - {a: node2.nic1, b: leaf1, rate: 10 GB/s, latency: 10 ns}
    - {a: node3.nic0, b: leaf1, rate: 10 GB/s, latency: 10 ns}
    - {a: node3.nic1, b: leaf1, rate: 10 GB/s, latency: 10 ns}
    - {a: leaf1, b: spine0, rate: 20 GB/s, latency: 20 ns}
    - {a: leaf1, b: spine1, rate: 20 GB/s, latency: 20 ns}
)";
constexpr const char* kLeaf0ToSpine0 = "    - {a: leaf0, b: spine0, rate: 20 GB/s, latency: 20 ns}\n";
constexpr const char* kLeaf0ToSpine1 = "    - {a: leaf0, b: spine1, rate: 20 GB/s, latency: 20 ns}\n";

Network network_from(const std::string& text, std::int32_t nodes = 4) {
  Cluster cluster = testing::cluster_from(text);
  cluster.nodes = nodes;
  return Network(std::move(cluster));
}

Network intact() { return network_from(std::string(kNodes) + kLeaf0ToSpine0 + kLeaf0ToSpine1); }

std::map<std::string, std::int64_t> weights(const Network& network, const std::vector<std::int32_t>& devices,
                                            TrafficPattern pattern) {
  std::vector<LinkUse> found;
  network.append_uses(devices, pattern, found);
  std::map<std::string, std::int64_t> named;
  for (const LinkUse& use : found) named[network.shared_links().at(use.link).name] = use.weight;
  return named;
}
using Named = std::map<std::string, std::int64_t>;

TEST(CustomFabric, TakesShortestPaths) {
  const Network network = intact();
  const GroupShape near = network.shape_between(0, 3);
  EXPECT_EQ(near.tier, Tier::kLeaf);
  EXPECT_EQ(near.latency, Duration(1'120'000));  // 1000 + 100 + 10 + 10 ns
  EXPECT_EQ(near.nic, BytesPerSecond(5e9));
  const GroupShape far = network.shape_between(0, 7);
  EXPECT_EQ(far.tier, Tier::kLeaf);
  EXPECT_EQ(far.latency, Duration(1'360'000));
  EXPECT_EQ(network.shape_between(0, 1).tier, Tier::kScaleUp);
}

// Cables between switches are shared, both ways; a NIC's own are not. Efficiency 0.5 of 20 GB/s.
TEST(CustomFabric, SharesCablesBetweenSwitches) {
  const Network network = intact();
  ASSERT_EQ(network.shared_links().size(), 8u);
  EXPECT_EQ(network.shared_links()[0].name, "leaf1 to spine0");
  EXPECT_EQ(network.shared_links()[0].capacity, BytesPerSecond(10e9));
  EXPECT_EQ(network.shared_links()[7].name, "spine1 to leaf0");
}

// Receivers take turns over equal spines: node + NIC, even to spine0, odd to spine1. Node 2, NIC 0 is 2; node 3, NIC 0
// is 3.
TEST(CustomFabric, SpreadsReceiversOverEqualPaths) {
  const Network network = intact();
  EXPECT_EQ(weights(network, {0, 4}, TrafficPattern::kMessage),
            (Named{{"leaf0 to spine0", 1024}, {"spine0 to leaf1", 1024}}));
  EXPECT_EQ(weights(network, {0, 6}, TrafficPattern::kMessage),
            (Named{{"leaf0 to spine1", 1024}, {"spine1 to leaf1", 1024}}));
  EXPECT_TRUE(weights(network, {0, 2}, TrafficPattern::kMessage).empty());
}

// Devices 0, 1 | 4, 5 (nodes 0 and 2): 0 to 4 over spine0 (2), 1 to 5 over spine1 (3); back 4 to 0 over spine0 (0), 5
// to 1 over spine1 (1). All-to-all: g = 2, a NIC carries what goes to 2 others; each of the eight pairs crosses once,
// receivers 4, 0 over spine0 and 5, 1 over spine1: two senders for each, 2 / 2.
TEST(CustomFabric, CountsWhatGroupsSendOverEachCable) {
  const Network network = intact();
  Named each;
  for (const char* spine : {"spine0", "spine1"}) {
    for (const char* leaf : {"leaf0", "leaf1"}) {
      each[std::string(leaf) + " to " + spine] = 1024;
      each[std::string(spine) + " to " + leaf] = 1024;
    }
  }
  EXPECT_EQ(weights(network, {0, 1, 4, 5}, TrafficPattern::kRing), each);
  EXPECT_EQ(weights(network, {0, 1, 4, 5}, TrafficPattern::kAllToAll), each);
  // Two pairs of an n-th each, n = 4, in 10 GB/s.
  const std::vector<std::int32_t> group = {0, 1, 4, 5};
  EXPECT_EQ(network.shape_of(group).spread, BytesPerSecond(20e9));
  EXPECT_EQ(network.shape_of(group).latency, Duration(1'360'000));
}

TEST(DamagedFabric, ReroutesOverWhatIsLeft) {
  const Network network = network_from(std::string(kNodes) + kLeaf0ToSpine1);
  EXPECT_EQ(network.shape_between(0, 4).latency, Duration(1'360'000));
  for (const std::int32_t receiver : {4, 5, 6, 7}) {
    EXPECT_EQ(weights(network, {0, receiver}, TrafficPattern::kMessage),
              (Named{{"leaf0 to spine1", 1024}, {"spine1 to leaf1", 1024}}));
  }
}

// A cable at 4 GB/s carries 2: less than a NIC's 5.
TEST(DamagedFabric, IsAsFastAsItsSlowestCable) {
  const Network network =
      network_from(std::string(kNodes) + "    - {a: leaf0, b: spine1, rate: 4 GB/s, latency: 20 ns}\n");
  EXPECT_EQ(network.shape_between(0, 4).nic, BytesPerSecond(2e9));
  EXPECT_EQ(network.shape_between(0, 2).nic, BytesPerSecond(5e9));
  const std::vector<std::int32_t> group = {0, 2, 4};
  EXPECT_EQ(network.shape_of(group).nic, BytesPerSecond(2e9));
}

std::string without(std::string text, const std::string& end) {
  const std::size_t begin = text.find("    - {a: " + end + ",");
  return text.erase(begin, text.find('\n', begin) + 1 - begin);
}

// Device 4, on node 2's NIC 0, leaves and arrives by NIC 1 when its own has no cable or is down; the two then share
// it, and the cable that leads to it.
TEST(DamagedFabric, GoesByAnotherNicOfTheNode) {
  const std::string text = std::string(kNodes) + kLeaf0ToSpine0 + kLeaf0ToSpine1;
  const Network uncabled = network_from(without(text, "node2.nic0"));
  Cluster cluster = testing::cluster_from(text);
  cluster.nodes = 4;
  cluster.overrides = {{.device = 4, .nic_down = true}};
  const Network down(cluster);
  for (const Network* network : {&uncabled, &down}) {
    EXPECT_EQ(network->shape_between(0, 4).latency, Duration(1'360'000));
    EXPECT_EQ(network->shape_between(4, 0).latency, Duration(1'360'000));
    Named expected = weights(intact(), {0, 5}, TrafficPattern::kMessage);
    expected["node 2 NIC 1 in"] = 1024;
    expected["leaf1 to node2.nic1"] = 1024;
    EXPECT_EQ(weights(*network, {0, 4}, TrafficPattern::kMessage), expected);
  }
}

// A NIC without a cable is a NIC that is down, to every pair and every group: a ring over both devices of nodes 0 and 2
// passes node 2's NIC 1 twice each way.
TEST(DamagedFabric, CountsANicWithoutACableAsOneThatIsDown) {
  const std::string text = std::string(kNodes) + kLeaf0ToSpine0 + kLeaf0ToSpine1;
  const Network uncabled = network_from(without(text, "node2.nic0"));
  Cluster cluster = testing::cluster_from(text);
  cluster.nodes = 4;
  cluster.overrides = {{.device = 4, .nic_down = true}};
  const Network down(cluster);
  for (std::int32_t a = 0; a < 8; ++a) {
    for (std::int32_t b = 0; b < 8; ++b) {
      EXPECT_EQ(uncabled.shape_between(a, b), down.shape_between(a, b)) << a << " " << b;
      if (a == b) continue;
      EXPECT_EQ(weights(uncabled, {a, b}, TrafficPattern::kMessage), weights(down, {a, b}, TrafficPattern::kMessage));
    }
  }
  for (const std::vector<std::int32_t>& group : {std::vector<std::int32_t>{0, 1, 4, 5}, {0, 2, 4, 6}, {1, 5}}) {
    EXPECT_EQ(uncabled.shape_of(group), down.shape_of(group));
  }
  const Named ring = weights(uncabled, {0, 1, 4, 5}, TrafficPattern::kRing);
  EXPECT_EQ(ring.at("node 2 NIC 1 out"), 2048);
  EXPECT_EQ(ring.at("leaf1 to node2.nic1"), 2048);
  EXPECT_EQ(ring, weights(down, {0, 1, 4, 5}, TrafficPattern::kRing));
  EXPECT_EQ(weights(uncabled, {0, 1, 4, 5}, TrafficPattern::kAllToAll),
            weights(down, {0, 1, 4, 5}, TrafficPattern::kAllToAll));
}

std::string problem_with(const std::string& text, std::int32_t nodes = 4) {
  try {
    network_from(text, nodes);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
    return e.what();
  }
  ADD_FAILURE() << "accepted";
  return "";
}

void expect_problem(const std::string& cables, const std::string& expected) {
  const std::string text = problem_with(std::string(kNodes) + kLeaf0ToSpine0 + cables);
  EXPECT_NE(text.find(expected), std::string::npos) << text;
}

TEST(DamagedFabric, ReportsNodesThatNothingReaches) {
  const std::string text = problem_with(kNodes);
  EXPECT_NE(text.find("no cables lead from node 0 to node 2"), std::string::npos) << text;
  const std::string more = problem_with(std::string(kNodes) + kLeaf0ToSpine0, 5);
  EXPECT_NE(more.find("no cable leads to node 4"), std::string::npos) << more;
}

// Node 2: NIC 0 has no cable, NIC 1 is down.
TEST(DamagedFabric, RefusesANodeWhereNoNicCanStandIn) {
  const std::string text = std::string(kNodes) + kLeaf0ToSpine0 + kLeaf0ToSpine1;
  Cluster cluster = testing::cluster_from(without(text, "node2.nic0"));
  cluster.nodes = 4;
  cluster.overrides = {{.device = 5, .nic_down = true}};
  try {
    const Network network(cluster);
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
    EXPECT_NE(std::string(e.what()).find("no NIC of node 2 is up and has a cable"), std::string::npos) << e.what();
  }
}

TEST(CustomFabric, RefusesCablesThatMakeNoSense) {
  expect_problem("    - {a: node4, b: leaf0, rate: 1 GB/s}\n", "ends at node4, which does not exist");
  expect_problem("    - {a: node0.nic2, b: leaf0, rate: 1 GB/s}\n", "ends at node0.nic2, which does not exist");
  expect_problem("    - {a: node0.port1, b: leaf0, rate: 1 GB/s}\n", "ends at \"node0.port1\"");
  expect_problem("    - {a: node0.nic, b: leaf0, rate: 1 GB/s}\n", "ends at \"node0.nic\"");
  expect_problem("    - {a: spine0, b: leaf0, rate: 1 GB/s}\n", "two cables between spine0 and leaf0");
  expect_problem("    - {a: leaf0, b: leaf0, rate: 1 GB/s}\n", "from leaf0 to itself");
  // All at once.
  const std::string text = problem_with(std::string(kNodes) +
                                        "    - {a: node8, b: leaf0, rate: 1 GB/s}\n"
                                        "    - {a: node9, b: leaf0, rate: 1 GB/s}\n");
  EXPECT_NE(text.find("node8"), std::string::npos);
  EXPECT_NE(text.find("node9"), std::string::npos);
}

// Three nodes in a line of cables without switches: 0 - 1 - 2. Node 1 does not forward.
TEST(CustomFabric, DoesNotPassThroughNodes) {
  std::string text(kNodes);
  text.resize(text.find("    - {a: node0.nic0"));
  const std::string line =
      text + "    - {a: node0, b: node1, rate: 8 GB/s}\n    - {a: node1, b: node2, rate: 8 GB/s}\n";
  EXPECT_NE(problem_with(line, 3).find("no cables lead from node 0 to node 2"), std::string::npos);
  const Network network = network_from(line + "    - {a: node0, b: node2, rate: 6 GB/s}\n", 3);
  EXPECT_EQ(network.shape_between(0, 5).nic, BytesPerSecond(3e9));
  EXPECT_EQ(network.shape_between(0, 5).latency, Duration(1'000'000));  // no switch
  // A node's cable serves both of its devices.
  EXPECT_EQ(weights(network, {1, 5}, TrafficPattern::kMessage), (Named{{"node0 to node2", 1024}}));
  EXPECT_EQ(weights(network, {0, 1, 4, 5}, TrafficPattern::kRing),
            (Named{{"node0 to node2", 2048}, {"node2 to node0", 2048}}));
}

// --- Hierarchical fabrics against shortest paths in their explicit graphs ---

Cluster explicit_one(const Cluster& cluster) {
  Cluster custom = cluster;
  custom.fabric.kind = FabricKind::kCustom;
  custom.fabric.cables = expand(cluster);
  return custom;
}

std::vector<Cluster> hierarchical_clusters() {
  std::vector<Cluster> clusters;
  for (const FabricKind kind : {FabricKind::kRail, FabricKind::kFatTree}) {
    clusters.push_back(fabric_cluster(kind, 2, 0, 2, 4));   // one unit
    clusters.push_back(fabric_cluster(kind, 7, 0, 1, 2));   // units under one spine layer, the last half full
    clusters.push_back(fabric_cluster(kind, 12, 4, 2, 4));  // three pods
    clusters.push_back(fabric_cluster(kind, 11, 4, 2, 4));  // the last of them partly filled
    clusters.push_back(fabric_cluster(kind, 12, 4, 2, 4));
    clusters.back().node.scale_up.domain = 8;  // domains of two nodes
    clusters.push_back(fabric_cluster(kind, 8, 2, 2, 3));
    clusters.back().node.nic.per_device = 0.5;  // shared NICs
  }
  // The explicit graph knows no routing loss.
  for (Cluster& cluster : clusters) cluster.fabric.routing_efficiency = 1;
  return clusters;
}

// A leaf is one switch, a spine three, the core five; latency follows from them: 1000 + 100 a switch.
TEST(HierarchicalPaths, AreShortestPathsOfTheExplicitGraph) {
  for (const Cluster& cluster : hierarchical_clusters()) {
    const Network counted(cluster);
    const Network searched(explicit_one(cluster));
    const auto devices = static_cast<std::int32_t>(cluster.devices());
    for (std::int32_t a = 0; a < devices; ++a) {
      for (std::int32_t b = 0; b < devices; ++b) {
        const GroupShape expected = searched.shape_between(a, b);
        const GroupShape got = counted.shape_between(a, b);
        ASSERT_EQ(got.latency, expected.latency) << a << " " << b;
        ASSERT_EQ(got.nic, expected.nic) << a << " " << b;
        ASSERT_EQ(std::min(got.tier, Tier::kLeaf), expected.tier) << a << " " << b;
        if (got.tier < Tier::kLeaf) continue;
        const std::int64_t switches = (expected.latency.ps - 1000) / 100;
        ASSERT_EQ(switches, got.tier == Tier::kLeaf ? 1 : got.tier == Tier::kSpine ? 3 : 5) << a << " " << b;
      }
    }
  }
}

// "unit 1 rail 2 up" is the cable "unit1.leaf2 to pod0.spine".
std::string cable_of(const std::string& link, std::int32_t units_per_pod) {
  int unit = 0;
  int rail = 0;
  int pod = 0;
  const bool up = link.substr(link.size() - 2) == "up";
  std::string from;
  std::string to = "core";
  if (std::sscanf(link.c_str(), "pod %d", &pod) == 1) {
    from = "pod" + std::to_string(pod) + ".spine";
  } else {
    std::sscanf(link.c_str(), "unit %d rail %d", &unit, &rail);
    from = "unit" + std::to_string(unit) + ".leaf" + std::to_string(rail);
    to = "pod" + std::to_string(unit / units_per_pod) + ".spine";
  }
  return up ? from + " to " + to : to + " to " + from;
}

// Whole nodes use uplinks as their explicit paths use cables: the same capacity and weight, link by link.
TEST(HierarchicalUses, AreThoseOfTheExplicitGraph) {
  const std::vector<std::vector<std::int32_t>> groups_of_nodes = {{0, 2}, {0, 1, 2, 3}, {0, 4, 8}, {5, 0, 9, 2, 1}};
  for (const FabricKind kind : {FabricKind::kRail, FabricKind::kFatTree}) {
    Cluster cluster = fabric_cluster(kind, 12, 4, 2, 4);
    cluster.fabric.routing_efficiency = 1;
    const Network counted(cluster);
    const Network searched(explicit_one(cluster));
    for (const std::vector<std::int32_t>& nodes : groups_of_nodes) {
      std::vector<std::int32_t> devices;
      for (const std::int32_t node : nodes) {
        for (std::int32_t i = 0; i < 4; ++i) devices.push_back(node * 4 + i);
      }
      for (const TrafficPattern pattern : {TrafficPattern::kRing, TrafficPattern::kAllToAll}) {
        Named expected = weights(searched, devices, pattern);
        Named got;
        for (const auto& [link, weight] : weights(counted, devices, pattern)) got[cable_of(link, 2)] = weight;
        EXPECT_EQ(got, expected);
      }
    }
    for (const SharedLink& link : counted.shared_links()) {
      const std::string cable = cable_of(link.name, 2);
      for (const SharedLink& other : searched.shared_links()) {
        if (other.name == cable) {
          EXPECT_DOUBLE_EQ(link.capacity.value, other.capacity.value) << cable;
        }
      }
    }
  }
}

}  // namespace
}  // namespace stepcast::topology
