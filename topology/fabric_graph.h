// Custom fabrics: cables between NICs, nodes and switches as a directed graph, and shortest paths in it.
//
// A path has the fewest cables, then the least latency. Of equal next cables, in the order of the names they lead to,
// the one at (number of the receiver's attachment point) modulo their count is taken: destination-based routing, as
// InfiniBand's D-Mod-K, so that equal spines share the receivers evenly. Traffic passes switches only, never another
// node or NIC. A path is as fast as its slowest cable; several cables of one NIC are alternatives, not a bundle.
//
// A device attaches at the cables of its NIC ("node3.nic2"), or else at those of its node ("node3"); one whose NIC has
// neither shares the next NIC of its node, as if its own were down (FabricLayout). Its traffic may
// leave by any NIC of its own scale-up domain in its node (NCCL's PXN): by the nearest to the receiver's NIC, its own
// where equal. Only when no way leads to the receiver's own NIC does another of the receiver's domain take its place.
// The graph says which cables flows share, so routing_efficiency plays no part. Searches are made when they are first
// asked for and kept: not for use by several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "topology/fabric_layout.h"
#include "topology/network.h"

namespace stepcast::topology {

class FabricGraph {
 public:
  struct Route {
    std::int32_t source = 0;  // attachment points
    std::int32_t target = 0;
    std::int32_t hops = 0;  // switches
    Duration latency;       // of cables and switches
    double rate = 0;        // of the slowest cable, efficiency included
  };
  // What limits a group: its worst pair, and the cables that its pairs share.
  struct Bound {
    double rate = 0;
    Duration latency;
    double spread = 0;  // as GroupShape::spread
  };

  // Appends to `links` those of cables that several devices use: between switches, and at a node. Throws Error (kInput)
  // with every problem: ends that do not exist, a pair of ends given twice, a cable from a point to itself, nodes
  // without cables, pairs of nodes that no path joins.
  FabricGraph(const Cluster& cluster, const FabricLayout& layout, std::vector<SharedLink>& links);
  ~FabricGraph();

  // Between devices that the host link does not join. Throws Error (kUnsupported) when no path joins them (two domains
  // of a node without host link).
  Route route(std::int32_t sender, std::int32_t receiver) const;
  // Over all ordered pairs of members that cables join: their number squared times the length of a path.
  Bound bound_of(std::span<const std::int32_t> members) const;
  // Appends the positions of the shared links on the way.
  void append_links(const Route& route, std::vector<std::uint32_t>& links) const;

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
};

// The hierarchical fabric of a cluster as cables: leaves, a spine per pod, and the core, each layer's cables as fast as
// the uplinks of what they come from, cables without latency. The cluster with kind kCustom and these cables has the
// same tiers, hops and latencies. CHECK: a rail or fat-tree fabric.
std::vector<CableSpec> expand(const Cluster& cluster);

}  // namespace stepcast::topology
