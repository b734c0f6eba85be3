// The channels that NCCL's graph search finds for a group, as far as a cluster's figures tell: a stand-in for the
// search over a machine's real PCIe and NVLink tree (NVIDIA/nccl src/graph/search.cc), which reproduces the graphs that
// published logs show: 8 A100 ring 12 x 20 GB/s, 8 H100 ring 12 x 30 and NVLS 8 x 40, 8 B200 ring 12 x 60 and NVLS 8 x
// 90; nodes of 8 A100 with 200 Gb/s each ring 8 x 24, of 8 H100 with 400 Gb/s each ring 8 x 45.
//
// Rules, where the search's result for a layout is not published:
// - Within a node, a ring has 12 or 8 channels, whichever carries more at the fastest listed speed that fits the port.
//   A switch gives every pair the whole port, so it does not depend on how many GPUs take part. Over a full mesh of
//   links (xGMI) it has one channel per link in use.
// - Between nodes, at most one channel per NIC of a node's members (and 32), as many as carry most at the fastest
//   listed speed that fits the NIC and, all channels together, the port; speeds below 0.49 of what works already are
//   not tried. So a node with more NICs than its ports can fill has no more channels: 8 H100 have 8 x 45 with 8 NICs
//   and with 32, and 72 GB200 16 x 45.1, for which the list has that speed. NIC rates are the vendor's, slowed or not:
//   NCCL reads the link's speed.
// - NVLS has one channel per member of a node, at most 32, at the fastest listed speed that all fit the port with; its
//   speed towards other members is the list's fastest, towards other nodes the ring's.
// - Without NVLink, one channel over PCIe.
// - A tree has the ring's channels.
#pragma once

#include "sim/cost/nccl_tuning.h"
#include "topology/network.h"

namespace stepcast::sim {

// A group as NCCL sees it. `nodes`: hosts, or whole scale-up domains where one spans several hosts (NCCL fuses these).
struct GroupPath {
  topology::GroupShape shape;
  std::int32_t nodes = 1;
  bool operator==(const GroupPath&) const = default;
};

NcclArchitecture nccl_architecture(const topology::DeviceSpec& device);
// Links of a device that a group of `members` in one domain has to each other's members, as a share of the port: 1 over
// a switch; (members - 1) / (domain - 1) over a full mesh.
double share_of_links(const topology::NodeSpec& node, std::int32_t members);

// CHECK: at least two members.
NcclSystem nccl_system(const topology::Cluster& cluster, const GroupPath& path);

}  // namespace stepcast::sim
