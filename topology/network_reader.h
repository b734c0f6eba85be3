// The network part of the cluster message: NICs and the fabric between nodes. A step of cluster_of.
#pragma once

#include "topology/cluster.h"
#include "topology/cluster_reader.h"

namespace stepcast::topology {

// Above the largest byte and FLOP rates that work over rate can take in 128 bits.
inline constexpr double kMaxRate = 9e18;  // per second

namespace proto {
class Cluster;
}  // namespace proto

// Fills cluster.node.nic and cluster.fabric; the devices of a node and the domain are there already. Adds kInput
// problems as cluster_of says.
void read_network(const proto::Cluster& message, const FieldLocator& locate, ProblemList& problems, Cluster& cluster);

}  // namespace stepcast::topology
