// NICs and fabrics as cluster_of reads them: defaults, derived values, and every check with the field it names.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "topology/cluster.pb.h"
#include "topology/cluster_reader.h"
#include "topology/routing.h"

namespace stepcast::topology {
namespace {

Location locate_in_network(const std::string& field) { return {"c.yaml", 7, field}; }

// A node of 4 devices with `kind` NICs of 50 GB/s and a rail fabric.
proto::Cluster message(const std::string& kind = "ib") {
  proto::Cluster message;
  message.set_gpus_per_node(4);
  message.mutable_gpu()->set_name("unit");
  message.mutable_gpu()->set_peak_bf16(100e12);
  message.mutable_gpu()->set_peak_fp32(10e12);
  message.mutable_gpu()->set_memory(1000);
  message.mutable_gpu()->set_hbm_bandwidth(1e12);
  message.mutable_gpu()->set_multiprocessors(16);
  message.mutable_scale_up()->set_bandwidth(100e9);
  message.mutable_host()->set_pcie(20e9);
  message.mutable_nic()->set_rate(50e9);
  message.mutable_nic()->set_kind(kind);
  message.mutable_fabric()->set_kind("rail");
  return message;
}

TEST(ReadNetwork, FillsInDefaults) {
  proto::Cluster m = message();
  m.mutable_nic()->clear_kind();
  m.mutable_fabric()->clear_kind();
  const Cluster cluster = cluster_of(m, locate_in_network);
  EXPECT_EQ(cluster.node.nic.rate, BytesPerSecond(50e9));
  EXPECT_EQ(cluster.node.nic.per_device, 1);
  EXPECT_EQ(cluster.node.nic.kind, NicKind::kIb);
  EXPECT_EQ(cluster.node.nic.efficiency, 0.92);
  EXPECT_EQ(cluster.node.nic.latency, Duration(0));
  EXPECT_EQ(cluster.fabric.kind, FabricKind::kRail);
  EXPECT_EQ(cluster.fabric.unit_nodes, 32);
  EXPECT_EQ(cluster.fabric.pod_nodes, 0);
  EXPECT_EQ(cluster.fabric.leaf_oversubscription, 1);
  EXPECT_EQ(cluster.fabric.spine_oversubscription, 1);
  EXPECT_EQ(cluster.fabric.routing, Routing::kAdaptive);
  EXPECT_EQ(cluster.fabric.queue_pairs, 1);
  EXPECT_EQ(cluster.fabric.routing_efficiency, 1);
  EXPECT_EQ(cluster.fabric.hop_latency, Duration(0));
}

TEST(ReadNetwork, TakesWhatIsStated) {
  proto::Cluster m = message("roce");
  m.mutable_nic()->set_per_gpu(0.5);
  m.mutable_nic()->set_efficiency(0.9);
  m.mutable_nic()->set_latency(2e-6);
  proto::Fabric& f = *m.mutable_fabric();
  f.set_kind("fat_tree");
  f.set_unit_nodes(24);
  f.set_pod_nodes(96);
  f.add_oversubscription(2);
  f.add_oversubscription(7);
  f.set_routing("ecmp");
  f.set_qps_per_connection(8);
  f.set_routing_efficiency(0.75);
  f.set_hop_latency(6e-7);
  const Cluster cluster = cluster_of(m, locate_in_network);
  EXPECT_EQ(cluster.node.nic.per_device, 0.5);
  EXPECT_EQ(cluster.node.nic.per_device_rate(), BytesPerSecond(25e9));
  EXPECT_EQ(cluster.node.nic.kind, NicKind::kRoce);
  EXPECT_EQ(cluster.node.nic.efficiency, 0.9);
  EXPECT_EQ(cluster.node.nic.latency, Duration(2'000'000));
  EXPECT_EQ(cluster.fabric.kind, FabricKind::kFatTree);
  EXPECT_EQ(cluster.fabric.unit_nodes, 24);
  EXPECT_EQ(cluster.fabric.pod_nodes, 96);
  EXPECT_EQ(cluster.fabric.leaf_oversubscription, 2);
  EXPECT_EQ(cluster.fabric.spine_oversubscription, 7);
  EXPECT_EQ(cluster.fabric.routing, Routing::kEcmp);
  EXPECT_EQ(cluster.fabric.queue_pairs, 8);
  EXPECT_EQ(cluster.fabric.routing_efficiency, 0.75);
  EXPECT_EQ(cluster.fabric.hop_latency, Duration(600'000));
}

TEST(ReadNetwork, ReadsWhatTheNodeStates) {
  proto::Cluster m = message();
  m.mutable_gpu()->set_architecture("sm90");
  m.mutable_gpu()->set_peak_fp8(200e12);
  m.mutable_gpu()->set_power_limit(700);
  m.mutable_gpu()->set_clock(1.83e9);
  m.mutable_scale_up()->set_sharp(true);
  m.mutable_host()->set_nvme(5e9);
  m.mutable_host()->set_dram(1000);
  const Cluster cluster = cluster_of(m, locate_in_network);
  EXPECT_EQ(cluster.node.device.architecture, "sm90");
  EXPECT_EQ(cluster.node.device.peak_fp8, FlopsPerSecond(200e12));
  EXPECT_EQ(cluster.node.device.power_limit, 700);
  EXPECT_EQ(cluster.node.device.clock, 1.83e9);
  EXPECT_TRUE(cluster.node.scale_up.in_switch_reduction);
  EXPECT_EQ(cluster.node.host_link, BytesPerSecond(20e9));
  m.mutable_host()->set_c2c(450e9);
  EXPECT_EQ(cluster_of(m, locate_in_network).node.host_link, BytesPerSecond(450e9));
}

TEST(ReadNetwork, KnowsNoFabricWithoutTheBlock) {
  proto::Cluster m = message();
  m.clear_fabric();
  EXPECT_EQ(cluster_of(m, locate_in_network).fabric.kind, FabricKind::kNone);
  EXPECT_EQ(cluster_of(m, locate_in_network).node.nic.rate, BytesPerSecond(50e9));
  m.clear_nic();
  EXPECT_EQ(cluster_of(m, locate_in_network).node.nic.rate, BytesPerSecond(0));
}

// Racks of 18 nodes: units are whole racks, by default the fewest with at least 32 nodes: 36.
TEST(ReadNetwork, KeepsDomainsOfSeveralNodesInOneUnit) {
  proto::Cluster m = message();
  m.mutable_scale_up()->set_domain(72);
  m.mutable_fabric()->set_kind("nvl");
  const Cluster cluster = cluster_of(m, locate_in_network);
  EXPECT_EQ(cluster.fabric.kind, FabricKind::kRail);
  EXPECT_EQ(cluster.fabric.unit_nodes, 36);
  m.mutable_fabric()->set_unit_nodes(18);
  EXPECT_EQ(cluster_of(m, locate_in_network).fabric.unit_nodes, 18);
}

TEST(ReadNetwork, DefaultsRoutingByTheKindOfNic) {
  const FabricSpec roce = cluster_of(message("roce"), locate_in_network).fabric;
  EXPECT_EQ(roce.routing, Routing::kEnhancedEcmp);
  EXPECT_EQ(roce.queue_pairs, 4);
  EXPECT_NEAR(roce.routing_efficiency, 0.8046, 5e-5);
  const FabricSpec efa = cluster_of(message("efa"), locate_in_network).fabric;
  EXPECT_EQ(efa.routing, Routing::kAdaptive);
  EXPECT_EQ(efa.queue_pairs, 1);
}

// 1 - e^-q q^q / q!: q = 1: 1 - 0.36788; 2: 1 - 0.13534 x 2; 4: 1 - 0.018316 x 256 / 24 = 1 - 0.19537;
// 8: 1 - 0.00033546 x 16777216 / 40320 = 1 - 0.13959; 16: Stirling's 1 / sqrt(32 pi) x (1 - 1 / 192) = 0.09922.
TEST(RoutingEfficiency, IsTheShareOfLinksThatHashedFlowsFill) {
  const auto hashed = [](std::int32_t queue_pairs) {
    return routing_efficiency_of(Routing::kEnhancedEcmp, queue_pairs);
  };
  EXPECT_NEAR(hashed(1), 0.63212, 1e-5);
  EXPECT_NEAR(hashed(2), 0.72933, 1e-5);
  EXPECT_NEAR(hashed(4), 0.80463, 1e-5);
  EXPECT_NEAR(hashed(8), 0.86041, 1e-5);
  EXPECT_NEAR(hashed(16), 0.90078, 1e-5);
  EXPECT_EQ(routing_efficiency_of(Routing::kEcmp, 16), hashed(1));
  EXPECT_EQ(routing_efficiency_of(Routing::kAdaptive, 1), 1);
  EXPECT_EQ(routing_efficiency_of(Routing::kStatic, 1), 1);
}

TEST(ReadNetwork, NamesTheFieldOfEachBadValue) {
  const struct {
    const char* field;
    std::function<void(proto::Cluster&)> spoil;
  } cases[] = {
      {"gpu.peak_fp8", [](auto& c) { c.mutable_gpu()->set_peak_fp8(0); }},
      {"gpu.power_limit", [](auto& c) { c.mutable_gpu()->set_power_limit(-1); }},
      {"gpu.clock", [](auto& c) { c.mutable_gpu()->set_clock(0); }},
      {"host.c2c", [](auto& c) { c.mutable_host()->set_c2c(0); }},
      {"nic.rate", [](auto& c) { c.clear_nic(); }},
      {"nic.rate", [](auto& c) { c.mutable_nic()->clear_rate(); }},
      {"nic.rate", [](auto& c) { c.mutable_nic()->set_rate(0); }},
      {"nic.per_gpu", [](auto& c) { c.mutable_nic()->set_per_gpu(1.5); }},
      {"nic.per_gpu", [](auto& c) { c.mutable_nic()->set_per_gpu(0.4); }},
      {"nic.per_gpu", [](auto& c) { c.mutable_nic()->set_per_gpu(0); }},
      {"nic.per_gpu", [](auto& c) { c.mutable_nic()->set_per_gpu(std::nan("")); }},
      {"nic.per_gpu", [](auto& c) { c.mutable_nic()->set_per_gpu(1.0 / 3); }},  // a node of 4
      {"nic.kind", [](auto& c) { c.mutable_nic()->set_kind("opa"); }},
      {"nic.efficiency", [](auto& c) { c.mutable_nic()->set_efficiency(0); }},
      {"nic.efficiency", [](auto& c) { c.mutable_nic()->set_efficiency(1.1); }},
      {"nic.latency", [](auto& c) { c.mutable_nic()->set_latency(-1e-6); }},
      {"fabric.kind", [](auto& c) { c.mutable_fabric()->set_kind("torus"); }},
      {"fabric.kind", [](auto& c) { c.mutable_fabric()->set_kind("nvl"); }},  // of one node
      {"fabric.unit_nodes", [](auto& c) { c.mutable_fabric()->set_unit_nodes(0); }},
      {"fabric.unit_nodes",
       [](auto& c) {
         c.mutable_scale_up()->set_domain(72);
         c.mutable_fabric()->set_unit_nodes(32);
       }},
      {"fabric.pod_nodes", [](auto& c) { c.mutable_fabric()->set_pod_nodes(48); }},
      {"fabric.pod_nodes", [](auto& c) { c.mutable_fabric()->set_pod_nodes(-32); }},
      {"fabric.oversubscription", [](auto& c) { c.mutable_fabric()->add_oversubscription(0.5); }},
      {"fabric.oversubscription",
       [](auto& c) {
         for (int i = 0; i < 3; ++i) c.mutable_fabric()->add_oversubscription(1);
       }},
      {"fabric.routing", [](auto& c) { c.mutable_fabric()->set_routing("random"); }},
      {"fabric.qps_per_connection", [](auto& c) { c.mutable_fabric()->set_qps_per_connection(0); }},
      {"fabric.routing_efficiency", [](auto& c) { c.mutable_fabric()->set_routing_efficiency(0); }},
      {"fabric.hop_latency", [](auto& c) { c.mutable_fabric()->set_hop_latency(2); }},
      {"fabric.cables", [](auto& c) { c.mutable_fabric()->set_kind("custom"); }},
      {"fabric.cables",
       [](auto& c) {
         proto::Cable& cable = *c.mutable_fabric()->add_cables();
         cable.set_a("a");
         cable.set_b("b");
         cable.set_rate(1e9);
       }},
      {"fabric.cables[0].rate",
       [](auto& c) {
         c.mutable_fabric()->set_kind("custom");
         proto::Cable& cable = *c.mutable_fabric()->add_cables();
         cable.set_a("a");
         cable.set_b("b");
       }},
  };
  for (const auto& c : cases) {
    proto::Cluster m = message();
    c.spoil(m);
    try {
      cluster_of(m, locate_in_network);
      ADD_FAILURE() << "accepted a bad " << c.field;
    } catch (const Error& e) {
      ASSERT_EQ(e.problems().size(), 1u) << c.field << "\n" << e.what();
      EXPECT_EQ(e.problems()[0].where.field, c.field);
      EXPECT_EQ(e.kind(), ErrorKind::kInput) << c.field;
    }
  }
}

}  // namespace
}  // namespace stepcast::topology
