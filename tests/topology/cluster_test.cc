// What follows from a cluster's counts.
#include "topology/cluster.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "tests/topology/small_cluster.h"

namespace stepcast::topology {
namespace {

TEST(Cluster, CountsDevicesOverNodes) { EXPECT_EQ(testing::small_cluster(3, 8).devices(), 24); }

TEST(NodeOf, NumbersDevicesNodeByNode) {
  const Cluster cluster = testing::small_cluster(2, 8);
  EXPECT_EQ(node_of(cluster, 0), 0);
  EXPECT_EQ(node_of(cluster, 7), 0);
  EXPECT_EQ(node_of(cluster, 8), 1);
  EXPECT_EQ(node_of(cluster, 15), 1);
  EXPECT_THROW(node_of(cluster, 16), InternalError);
  EXPECT_THROW(node_of(cluster, -1), InternalError);
}

TEST(UsableMemory, IsTheNominalOneUnlessTheDriverReportsLess) {
  DeviceSpec device = testing::small_cluster(1, 8).node.device;
  EXPECT_EQ(usable_memory(device), Bytes(1000));
  device.memory_visible = Bytes(900);
  EXPECT_EQ(usable_memory(device), Bytes(900));
}

// Device 3 is slowed by 1.5 and again by 2.
TEST(ComputeTimeFactor, MultipliesTheOverridesOfADevice) {
  Cluster cluster = testing::small_cluster(1, 8);
  cluster.overrides = {
      {.device = 3, .compute_time = 1.5}, {.device = 5, .compute_time = 4.0}, {.device = 3, .compute_time = 2.0}};
  EXPECT_EQ(override_of(cluster, 3).compute_time, 3.0);
  EXPECT_EQ(override_of(cluster, 5).compute_time, 4.0);
  EXPECT_EQ(override_of(cluster, 0).compute_time, 1.0);
}

// Factors multiply, latencies add, and one NIC that is down is down.
TEST(OverrideOf, IsAllOverridesOfADeviceAsOne) {
  Cluster cluster = testing::small_cluster(1, 8);
  cluster.overrides = {{.device = 3, .compute_time = 1.5, .nic_bandwidth = 0.5, .latency = Duration(5)},
                       {.device = 4, .nic_down = true},
                       {.device = 3, .memory_bandwidth = 0.9, .nic_bandwidth = 0.5, .latency = Duration(7)}};
  const DeviceOverride whole = override_of(cluster, 3);
  EXPECT_EQ(whole.device, 3);
  EXPECT_EQ(whole.compute_time, 1.5);
  EXPECT_EQ(whole.memory_bandwidth, 0.9);
  EXPECT_EQ(whole.nic_bandwidth, 0.25);
  EXPECT_FALSE(whole.nic_down);
  EXPECT_EQ(whole.latency, Duration(12));
  EXPECT_TRUE(override_of(cluster, 4).nic_down);
  EXPECT_EQ(override_of(cluster, 0).compute_time, 1.0);
}

}  // namespace
}  // namespace stepcast::topology
