// Clusters of small round numbers for tests.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/cluster.h"

namespace stepcast::topology::testing {

using Devices = std::vector<std::int32_t>;

// `count` devices from `first` on, every `step`-th.
inline Devices range(std::int32_t first, std::int32_t count, std::int32_t step = 1) {
  Devices devices;
  for (std::int32_t i = 0; i < count; ++i) devices.push_back(first + i * step);
  return devices;
}

// `nodes` nodes of 8 devices, scale-up domains of `domain` devices at 100 GB/s.
inline Cluster small_cluster(std::int32_t nodes, std::int32_t domain) {
  Cluster cluster;
  cluster.name = "small";
  cluster.nodes = nodes;
  cluster.node.name = "small";
  cluster.node.devices = 8;
  cluster.node.scale_up = {.bandwidth = BytesPerSecond(100e9), .domain = domain};
  cluster.node.host_link = BytesPerSecond(10e9);
  cluster.node.device.name = "unit";
  cluster.node.device.memory = Bytes(1000);
  return cluster;
}

// Nodes of 4 devices in one domain, a 10 GB/s NIC each, of which 5 GB/s arrive below the leaves' uplinks and 2.5 GB/s
// above; 1,000 ps between NICs and 100 ps a switch: 1,100, 1,300, 1,500 ps over leaf, spine, core. Units of 2 nodes,
// pods of `pod_nodes` (0: none).
inline Cluster fabric_cluster(FabricKind kind, std::int32_t nodes, std::int32_t pod_nodes, double leaf = 1,
                              double spine = 1) {
  Cluster cluster = small_cluster(nodes, 4);
  cluster.node.devices = 4;
  cluster.node.nic = {.rate = BytesPerSecond(10e9), .efficiency = 0.5, .latency = Duration(1000)};
  cluster.fabric.kind = kind;
  cluster.fabric.unit_nodes = 2;
  cluster.fabric.pod_nodes = pod_nodes;
  cluster.fabric.leaf_oversubscription = leaf;
  cluster.fabric.spine_oversubscription = spine;
  cluster.fabric.routing_efficiency = 0.5;
  cluster.fabric.hop_latency = Duration(100);
  return cluster;
}

}  // namespace stepcast::topology::testing
