// A cluster of small round numbers for tests.
#pragma once

#include "topology/cluster.h"

namespace stepcast::topology::testing {

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

}  // namespace stepcast::topology::testing
