// The constants by which NCCL chooses: latencies, bandwidth ceilings, corrections, and the speeds its graph search
// tries. They rank algorithms against each other and are no measurement; sim/cost/collective_time has its own
// constants.
//
// Source: NVIDIA/nccl 2.30.7 (5067397), src/graph/tuning.cc, search.cc, topo.h. RCCL: ROCm/rccl (0cbce2a),
// src/graph/tuning.cc, model 5; where it says nothing the rows of Ampere stand in.
#pragma once

#include <array>
#include <span>

#include "sim/cost/cost.h"

namespace stepcast::sim {

enum class NcclArchitecture : std::uint8_t { kAmpere, kHopper, kBlackwell, kCdna };
// Of the host. NCCL knows only these; a cluster does not say, and Intel's row is taken.
enum class NcclCpu : std::uint8_t { kIntel, kAmd, kOther };

inline constexpr std::size_t kAlgorithmCount = 9;  // of Algorithm
inline constexpr std::size_t kProtocolCount = 4;   // of Protocol

// By how many nodes a group touches: one, two, more.
using BySpan = std::array<double, 3>;
// LL, LL128, Simple. Microseconds.
using ByProtocol = std::array<double, 3>;

struct NcclLatencies {
  ByProtocol base;
  ByProtocol nvlink;  // per hop
  ByProtocol pci;
  ByProtocol network;
};

// All in GB/s, per channel unless said.
struct NcclCeilings {
  BySpan ll;  // of all channels together, bus bandwidth
  BySpan ring_ll128;
  BySpan tree_ll128;
  BySpan tree_simple;
  BySpan nvls_tree;
  double nvls_efficiency = 0;
};

// kRing, kTree, kNvls, kNvlsTree, kPat.
NcclLatencies nccl_latencies(NcclArchitecture architecture, Algorithm algorithm);
NcclCeilings nccl_ceilings(NcclArchitecture architecture);
// The ceiling of LL with more than one node, which goes by the host's processor.
BySpan nccl_ll_ceiling_between_nodes(NcclCpu cpu);
// Of what a tree's bandwidth is worth at a message size: entry log2(bytes / 64), 1 from the end of the table.
double nccl_tree_correction(Protocol protocol, double bytes);
// Latency the host adds to a step that stays within a node when there are several. Microseconds.
double nccl_network_overhead(NcclCpu cpu);

// Speeds of a channel that the graph search tries, GB/s, fastest first.
std::span<const double> nccl_speeds_within_node(NcclArchitecture architecture);
std::span<const double> nccl_speeds_between_nodes(NcclArchitecture architecture);
// Of a scale-up port's vendor rate that the search counts with.
double nccl_usable_port(NcclArchitecture architecture);

}  // namespace stepcast::sim
