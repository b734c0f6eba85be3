// NCCL's bandwidths (GB/s of bus, then of the op's own bytes) and latencies, its corrections, and the choice.
#include "sim/cost/nccl_tuning.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/check.h"
#include "base/error.h"

namespace stepcast::sim {
namespace {

constexpr std::int32_t kMostChannels = 64;
constexpr std::array<Algorithm, 5> kAlgorithms = {Algorithm::kTree, Algorithm::kRing, Algorithm::kNvls,
                                                  Algorithm::kNvlsTree, Algorithm::kPat};
constexpr std::array<Protocol, 3> kProtocols = {Protocol::kLl, Protocol::kLl128, Protocol::kSimple};

std::size_t index(Algorithm a) { return static_cast<std::size_t>(a); }
std::size_t index(Protocol p) { return static_cast<std::size_t>(p) - 1; }  // into ByProtocol

bool is_gather_or_scatter(NcclOp op) { return op == NcclOp::kAllGather || op == NcclOp::kReduceScatter; }

double ranks_per_node(const NcclSystem& s) { return static_cast<double>(s.ranks) / s.nodes; }

std::size_t span_of(const NcclSystem& s) { return s.nodes == 1 ? 0 : s.nodes == 2 ? 1 : 2; }

double steps(NcclOp op, double members) {
  if (op == NcclOp::kAllReduce) return 2 * (members - 1);
  return is_gather_or_scatter(op) ? members - 1 : members;
}

const NcclGraph& graph_of(const NcclSystem& s, Algorithm a) {
  if (a == Algorithm::kTree) return s.tree;
  return a == Algorithm::kNvls || a == Algorithm::kNvlsTree ? s.nvls : s.ring;
}

bool is_available(const NcclSystem& s, NcclOp op, Algorithm a, const NcclPins& pins) {
  if (graph_of(s, a).channels == 0) return false;
  const bool nvls = pins.nvls && s.nvls.channels >= 2;
  switch (a) {
    case Algorithm::kRing:
      return op != NcclOp::kAllReduce || pins.allows(a);
    case Algorithm::kTree:
      return op == NcclOp::kAllReduce && pins.allows(a);
    case Algorithm::kNvls:  // between nodes it needs CollNet; gathers only up to 32 ranks
      return nvls && s.nodes == 1 && pins.allows(a) &&
             (op == NcclOp::kAllReduce || (is_gather_or_scatter(op) && s.ranks <= 32));
    case Algorithm::kNvlsTree:
      return nvls && s.nodes > 1 && op == NcclOp::kAllReduce && pins.allows(a);
    case Algorithm::kPat:
      return s.nodes > 1 && s.ranks == s.nodes && is_gather_or_scatter(op) && pins.allows(a) &&
             s.architecture != NcclArchitecture::kCdna;
    default:
      return false;
  }
}

// LL128 needs every path by NVLink or switches of one PCIe tree, which here is: by NVLink. RCCL has none for xGMI here.
bool is_available(const NcclSystem& s, Protocol p, const NcclPins& pins) {
  if (p != Protocol::kLl128) return pins.allows(p);
  if (s.architecture == NcclArchitecture::kCdna) return false;
  return pins.protocols_given ? pins.allows(p) : s.nvlink;
}

double ll_ceiling(const NcclSystem& s) {
  return s.nodes == 1 ? nccl_ceilings(s.architecture).ll[0] : nccl_ll_ceiling_between_nodes(s.cpu)[span_of(s)];
}

// Of a ring or PAT.
double ring_bus_bandwidth(const NcclSystem& s, Algorithm a, Protocol p) {
  const double channels = s.ring.channels;
  const double bus = channels * (s.nodes <= 2 ? s.ring.intra : s.ring.inter);
  if (a == Algorithm::kPat) return 0.75 * bus;
  if (p == Protocol::kLl) return std::min(ll_ceiling(s), bus / 2);
  if (p == Protocol::kSimple) return bus;
  return std::min(0.92 * bus, channels * nccl_ceilings(s.architecture).ring_ll128[span_of(s)]);
}

double tree_bus_bandwidth(const NcclSystem& s, Protocol p) {
  const NcclCeilings ceilings = nccl_ceilings(s.architecture);
  const std::size_t span = span_of(s);
  const double channels = s.tree.channels;
  const double graph = channels * (s.nodes <= 2 ? s.tree.intra : s.tree.inter);
  const double bus = std::min(0.92 * graph, channels * ceilings.tree_simple[span]);
  if (p == Protocol::kSimple) return bus;
  if (p == Protocol::kLl) return std::min(bus / 3.8, ll_ceiling(s));
  const double share = s.nodes == 1 ? 7.0 / 9 : 15.0 / 16;
  return std::min(bus * share, channels * ceilings.tree_ll128[span]);
}

// The switch's side and the network's, per channel.
double nvls_bus_bandwidth(const NcclSystem& s, NcclOp op, Algorithm a) {
  const NcclCeilings ceilings = nccl_ceilings(s.architecture);
  const double channels = s.nvls.channels;
  const double ppn = ranks_per_node(s);
  double intra = s.nvls.intra * ceilings.nvls_efficiency * (channels - 1) / channels;
  intra *= op == NcclOp::kAllReduce ? 2 : (ppn - 1) / ppn;
  double channel = std::min(intra, s.nvls.inter * (a == Algorithm::kNvlsTree && s.nodes == 2 ? 2 : 1));
  if (a == Algorithm::kNvlsTree) channel = std::min(channel, ceilings.nvls_tree[span_of(s)]);
  return channels * channel;
}

double algorithm_bandwidth(const NcclSystem& s, NcclOp op, Algorithm a, Protocol p) {
  if (a == Algorithm::kTree) return 0.5 * tree_bus_bandwidth(s, p);
  if (a == Algorithm::kPat) return ring_bus_bandwidth(s, a, p);
  const bool ring = a == Algorithm::kRing;
  return (ring ? ring_bus_bandwidth(s, a, p) : nvls_bus_bandwidth(s, op, a)) * s.ranks / steps(op, s.ranks);
}

double ring_latency(const NcclSystem& s, NcclOp op, Protocol p, const NcclLatencies& t, double intra, double inter) {
  const std::size_t i = index(p);
  if (op == NcclOp::kBroadcast) {  // channels are taken to be alike: one hop
    return t.base[i] + (s.nodes > 1 ? t.network[i] : intra);
  }
  const double overhead = s.nodes > 1 ? nccl_network_overhead(s.cpu) * (p == Protocol::kSimple ? 3 : 1) : 0;
  const double between = steps(op, s.nodes);
  return t.base[i] + (steps(op, s.ranks) - between) * std::max(intra, overhead) + between * inter;
}

double latency(const NcclSystem& s, NcclOp op, Algorithm a, Protocol p) {
  const NcclLatencies t = nccl_latencies(s.architecture, a);
  const std::size_t i = index(p);
  const double intra = s.nvlink ? t.nvlink[i] : t.pci[i];
  const NcclLatencies tree = nccl_latencies(s.architecture, Algorithm::kTree);
  double inter = s.ranks == s.nodes ? tree.network[i] : t.network[i];
  inter += s.nic_latency_us * (p == Protocol::kSimple ? 2 : 1);
  const double levels = std::floor(std::log2(s.nodes));
  switch (a) {
    case Algorithm::kRing:
      return ring_latency(s, op, p, t, intra, inter);
    case Algorithm::kTree:
      return t.base[i] + 2 * ((std::floor(ranks_per_node(s)) - 1) * intra + levels * inter);
    case Algorithm::kNvls:
      return intra;
    case Algorithm::kNvlsTree:
      return intra + 2 * levels * inter;
    case Algorithm::kPat:
      return t.base[i] + std::log2(s.nodes) * inter / 3.5 + 2.8 * s.ranks;
    default:
      CHECK(false, "no latency of this algorithm", static_cast<int>(a));
  }
}

std::int32_t limited(std::int32_t channels, const NcclPins& pins) {
  const std::int32_t most = pins.max_ctas > 0 ? std::min(pins.max_ctas, kMostChannels) : kMostChannels;
  return std::clamp(channels, 1, most);
}

// NVLS runs on all its channels whatever the size; rings and trees on two per channel of the graph, fewer for little
// data, then with fewer threads.
void size_kernel(const NcclSystem& s, double bytes, const NcclPins& pins, NcclChoice& choice) {
  if (choice.algorithm == Algorithm::kNvls || choice.algorithm == Algorithm::kNvlsTree) {
    const bool blackwell = s.architecture == NcclArchitecture::kBlackwell;
    choice.channels = limited(blackwell ? (s.nodes == 1 ? 24 : 32) : 16, pins);
    choice.threads = 640;
    return;
  }
  std::int32_t channels = limited(2 * graph_of(s, choice.algorithm).channels, pins);
  const bool simple = choice.protocol == Protocol::kSimple;
  std::int32_t threads = choice.protocol == Protocol::kLl128 ? 640 : 512;
  const bool ring = choice.algorithm == Algorithm::kRing;
  if (simple && ring && s.ring.channels * s.ring.intra <= 12) threads = 256;
  double threshold = simple ? 64 : 8;
  if (ring && choice.protocol == Protocol::kLl) threshold *= s.ranks;
  while (bytes < channels * threads * threshold && channels > 1) --channels;
  const std::int32_t fewest = choice.protocol == Protocol::kLl128 ? 160 : 64;
  while (bytes < channels * threads * threshold && threads / 2 >= fewest) threads /= 2;
  choice.channels = channels;
  choice.threads = simple ? (ring ? threads + 32 : 640) : threads;
}

}  // namespace

std::string_view to_string(NcclOp op) {
  constexpr std::string_view kNames[] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast"};
  return kNames[static_cast<std::size_t>(op)];
}

NcclTable nccl_table(const NcclSystem& system, NcclOp op, const NcclPins& pins) {
  CHECK(system.nodes >= 1 && system.ranks >= 2 && system.ranks >= system.nodes, system.nodes, system.ranks);
  NcclTable table{};
  for (const Algorithm a : kAlgorithms) {
    if (!is_available(system, op, a, pins)) continue;
    for (const Protocol p : kProtocols) {
      const bool only_simple = a != Algorithm::kRing && a != Algorithm::kTree;
      if (!is_available(system, p, pins) || (only_simple && p != Protocol::kSimple)) continue;
      table[index(a)][static_cast<std::size_t>(p)] = {latency(system, op, a, p), algorithm_bandwidth(system, op, a, p)};
    }
  }
  return table;
}

double nccl_time_us(const NcclSystem& system, NcclOp op, const NcclTable& table, Algorithm algorithm, Protocol protocol,
                    double bytes) {
  const NcclEstimate& e = table[index(algorithm)][static_cast<std::size_t>(protocol)];
  CHECK(e.algbw > 0, static_cast<int>(algorithm), static_cast<int>(protocol));
  double latency_us = e.latency_us;
  double algbw = e.algbw;
  if (algorithm == Algorithm::kTree) algbw *= nccl_tree_correction(protocol, bytes);
  if (algorithm == Algorithm::kNvlsTree && system.architecture == NcclArchitecture::kBlackwell &&
      system.cpu != NcclCpu::kOther) {
    algbw *= nccl_tree_correction(protocol, bytes);
  }
  const bool plateau = algorithm == Algorithm::kRing && protocol == Protocol::kSimple && op == NcclOp::kAllReduce &&
                       system.nodes > 1 && bytes >= 64.0 * system.ring.channels * system.ranks;
  if (plateau) latency_us *= 1.4;
  return latency_us + bytes / (1000 * algbw);
}

NcclChoice choose_nccl(const NcclSystem& system, NcclOp op, double bytes, const NcclPins& pins) {
  const NcclTable table = nccl_table(system, op, pins);
  NcclChoice best;
  for (const Algorithm a : kAlgorithms) {
    for (const Protocol p : kProtocols) {
      if (table[index(a)][static_cast<std::size_t>(p)].algbw <= 0) continue;
      const double time = nccl_time_us(system, op, table, a, p, bytes);
      if (best.algorithm == Algorithm::kNone || time < best.time_us) best = {a, p, 0, 0, time};
    }
  }
  if (best.algorithm == Algorithm::kNone) {
    throw Error(ErrorKind::kInput,
                "NCCL_ALGO, NCCL_PROTO and NCCL_NVLS_ENABLE leave nothing to run " + std::string(to_string(op)) +
                    " with on " + std::to_string(system.ranks) + " ranks in " + std::to_string(system.nodes) +
                    (system.nodes == 1 ? " node" : " nodes"),
                pins.where, {"add Ring to NCCL_ALGO and Simple to NCCL_PROTO; NVLS needs one node, NVLSTree several"});
  }
  size_kernel(system, bytes, pins, best);
  return best;
}

}  // namespace stepcast::sim
