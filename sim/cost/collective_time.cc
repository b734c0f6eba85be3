// Seconds and bytes per second as doubles; one rounding, at the end.
#include "sim/cost/collective_time.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace stepcast::sim {
namespace {

using topology::GroupShape;
using topology::Tier;

constexpr double kMemoryPerBusByte = 2.5;
constexpr double kMemoryPerMessageByte = 2;
constexpr double kMostNvlsTreeNics = 8;
constexpr std::int64_t kLeastPart = 64 << 10;      // bytes of a channel of a message within a node (NCCL's chunk / 8)
constexpr std::int64_t kLeastNetPart = 128 << 10;  // and between nodes
constexpr std::int32_t kMostMessageChannels = 32;  // NCCL's p2p channels of a GPU with NVLink
constexpr std::int32_t kMostPeerChannels = 2;      // to a peer over one NIC

double as_double(Bytes b) { return static_cast<double>(b.count); }

// What a member moves, and at which rate it could at most.
struct Traffic {
  double port = 0;  // bytes each way
  double port_rate = 0;
  double nic = 0;
  double nic_rate = 0;
  double other_seconds = 0;  // the least time anything else allows
  double memory = 0;

  double seconds() const {
    const double by_port = port > 0 ? port / port_rate : 0;
    const double by_nic = nic > 0 ? nic / nic_rate : 0;
    return std::max({by_port, by_nic, other_seconds});
  }
};

double domain_members(const GroupPath& path) { return std::max(1, path.shape.fewest_per_domain); }

// Of a member's port at a share of its vendor rate. `peers` in a domain meet over all of its links, or over few of a
// mesh.
double port_rate(const CollectiveContext& c, const GroupPath& path, double share, std::int32_t peers) {
  const double vendor = path.shape.port.value;
  if (path.shape.tier == Tier::kHost) return c.calibration.collective.host_link * vendor;
  const double links = share_of_links(c.cluster.node, peers);
  return links < 1 ? std::min(share, c.calibration.p2p.bandwidth * links) * vendor : share * vendor;
}

// Of a member's NICs when all members send. Devices that share a NIC share it for certain where whole nodes take part.
double nic_rate(const CollectiveContext& c, const GroupPath& path) {
  const topology::NodeSpec& node = c.cluster.node;
  const bool whole_nodes = path.shape.fewest_per_domain >= std::min(node.devices, node.scale_up.domain);
  return path.shape.nic.value * (whole_nodes ? std::min(1.0, node.nic.per_device) : 1);
}

bool in_one_domain(const GroupPath& path) { return path.shape.domains == 1 || path.shape.tier == Tier::kHost; }

Traffic ring_traffic(const CollectiveContext& c, double bus_bytes, const GroupPath& path, double share) {
  Traffic t;
  t.port_rate = port_rate(c, path, share, path.shape.most_per_domain);
  t.nic_rate = nic_rate(c, path);
  const double g = domain_members(path);
  t.port = in_one_domain(path) ? bus_bytes : bus_bytes * (g - 1) / g;
  t.nic = in_one_domain(path) ? 0 : bus_bytes / g;
  t.memory = kMemoryPerBusByte * bus_bytes;
  return t;
}

// Of mirrored binary trees over the domains, through each of `nics` NICs: S with two domains, 1.5 S with three, 2 S
// beyond.
double tree_nic_bytes(double bytes, const GroupPath& path, double nics) {
  return bytes * std::min(2.0, path.shape.domains / 2.0) / nics;
}

Traffic tree_traffic(const CollectiveContext& c, double bytes, const GroupPath& path) {
  Traffic t = ring_traffic(c, bytes, path, c.calibration.collective.tree);
  const bool alone = !in_one_domain(path) && domain_members(path) < 2;
  t.port = alone ? 0 : 2 * bytes;
  t.nic = in_one_domain(path) ? 0 : tree_nic_bytes(bytes, path, domain_members(path));
  t.memory = kMemoryPerBusByte * 2 * bytes;
  return t;
}

Traffic nvls_traffic(const CollectiveContext& c, CollectiveOp op, double bytes, const GroupPath& path) {
  Traffic t;
  const double g = domain_members(path);
  const double vendor = path.shape.port.value;
  t.port = op == CollectiveOp::kAllReduce ? bytes * (1 + 1 / g) : bytes;
  t.port_rate = c.calibration.collective.nvls * vendor;
  t.other_seconds = bytes / (c.calibration.collective.nvls_payload * vendor);
  t.memory = kMemoryPerBusByte * bytes * bus_factor(op, path.shape.members);
  if (!in_one_domain(path)) {
    t.nic = tree_nic_bytes(bytes, path, g);  // the mean; what binds are the NICs that take part
    t.nic_rate = nic_rate(c, path);
    const double busiest = tree_nic_bytes(bytes, path, std::min(g, kMostNvlsTreeNics));
    t.other_seconds = std::max(t.other_seconds, busiest / t.nic_rate);
  }
  return t;
}

Traffic all_to_all_traffic(const CollectiveContext& c, double bytes, const GroupPath& path) {
  Traffic t;
  const GroupShape& shape = path.shape;
  const double n = shape.members;
  const double g = in_one_domain(path) ? n : domain_members(path);
  const double away = bytes * (n - g) / n;
  t.port = bytes * (g - 1) / n + away * (g - 1) / g;
  t.port_rate = port_rate(c, path, c.calibration.collective.all_to_all, shape.most_per_domain);
  t.nic = away;
  t.nic_rate = nic_rate(c, path);
  if (shape.spread.value > 0) t.other_seconds = bytes * (n - 1) / n / shape.spread.value;
  t.memory = kMemoryPerMessageByte * bytes;
  return t;
}

Traffic message_traffic(const CollectiveContext& c, double bytes, const GroupPath& pair) {
  Traffic t;
  if (in_one_domain(pair)) {
    t.port = bytes;
    t.port_rate = port_rate(c, pair, c.calibration.p2p.bandwidth, 2);
  } else {
    t.nic = bytes;
    t.nic_rate = pair.shape.nic.value;
    if (pair.shape.spread.value > 0) t.other_seconds = bytes / pair.shape.spread.value;
  }
  t.memory = kMemoryPerMessageByte * bytes;
  return t;
}

// A kernel of `channels` CTAs; a GPU has fewer processors in no case that runs.
Share processors(const topology::Cluster& cluster, std::int32_t channels) {
  const std::int32_t all = cluster.node.device.multiprocessors;
  return all > 0 ? std::min(kWhole, share_of(channels, all)) : 0;
}

TransferCost finish(const CollectiveContext& c, const Traffic& t, double seconds, const GroupPath& path) {
  TransferCost cost;
  cost.time = duration_rounded_up(seconds);
  if (cost.time.ps == 0) return cost;
  cost.port_bytes = Bytes(static_cast<std::int64_t>(std::ceil(t.port)));
  cost.nic_bytes = Bytes(static_cast<std::int64_t>(std::ceil(t.nic)));
  // The host link between domains of a node is no port; what is sent over it is taken to meet no other traffic.
  if (path.shape.tier == Tier::kHost) {
    cost.port_bytes = Bytes();
  } else {
    cost.port = std::min(kWhole, share_of(t.port / seconds, nominal_port(c.cluster, c.calibration).value));
  }
  cost.nic = share_of(t.nic / seconds, c.nominal_nic.value);
  const double memory = c.cluster.node.device.memory_bandwidth.value;
  cost.memory = std::min(kWhole, share_of(t.memory / seconds, memory));
  return cost;
}

double protocol_share(Protocol p) {
  if (p == Protocol::kLl) return 0.5;      // 4 bytes of data with 4 of flag
  if (p == Protocol::kLl128) return 0.92;  // 120 of 128 bytes, and the flag's check
  return 1;
}

NcclOp nccl_op(CollectiveOp op) {
  CHECK(op <= CollectiveOp::kBroadcast, static_cast<int>(op));
  return static_cast<NcclOp>(op);
}

// How often a collective pays the path's latency: once per step between domains; within one (where only a perturbed
// device has any) once per round.
double path_latencies(CollectiveOp op, Algorithm a, double domains) {
  const double rounds = op == CollectiveOp::kAllReduce ? 2 : 1;
  if (domains <= 1) return rounds;
  const bool tree = a == Algorithm::kTree || a == Algorithm::kNvlsTree || a == Algorithm::kPat;
  return rounds * (tree ? std::ceil(std::log2(domains)) : domains - 1);
}

// S (1 + sqrt(S0 / S)) / S, written so that S = 0 is no special case of it.
double with_start_up(double seconds, double bytes, double half_size) {
  return bytes > 0 ? seconds * (1 + std::sqrt(half_size / bytes)) : seconds;
}

// What fewer CTAs than a kernel would take do to its rate.
double slowdown_of_cap(const NcclPins& pins, std::int32_t uncapped, std::int32_t channels) {
  return pins.max_ctas > 0 && channels < uncapped ? static_cast<double>(uncapped) / channels : 1;
}

PricedTransfer price_without_nccl(const CollectiveContext& c, CollectiveOp op, double bytes, const GroupPath& path) {
  const double n = path.shape.members;
  const double bus_bytes = bytes * bus_factor(op, path.shape.members);
  const Traffic t = op == CollectiveOp::kAllToAll ? all_to_all_traffic(c, bytes, path)
                                                  : ring_traffic(c, bus_bytes, path, c.calibration.collective.ring);
  const double steps = op == CollectiveOp::kAllReduce ? 2 * (n - 1) : n - 1;
  const double latency = c.calibration.collective.start.seconds() + steps * c.calibration.kernel_gap.seconds() +
                         path_latencies(op, Algorithm::kRing, path.shape.domains) * path.shape.latency.seconds();
  const double seconds = latency + with_start_up(t.seconds(), bytes, c.calibration.collective.half_size);
  return {finish(c, t, seconds, path), 0};
}

std::int32_t message_channels(const CollectiveContext& c, std::int64_t bytes, const GroupPath& pair) {
  const bool network = !in_one_domain(pair);
  const std::int64_t parts = bytes / (network ? kLeastNetPart : kLeastPart);
  const std::int32_t most = network ? kMostPeerChannels : kMostMessageChannels;
  const std::int32_t cap = c.pins.max_ctas > 0 ? std::min(most, c.pins.max_ctas) : most;
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(parts, 1, cap));
}

// n sends and n receives of each member; every peer costs a part of a message's latency, as NCCL runs eight per batch.
PricedTransfer price_all_to_all(const CollectiveContext& c, double bytes, const GroupPath& path) {
  constexpr double kPeersPerBatch = 8;
  const MessageConstants& p2p = c.calibration.p2p;
  const bool network = !in_one_domain(path);
  const Traffic t = all_to_all_traffic(c, bytes, path);
  const double batches = std::ceil(path.shape.members / kPeersPerBatch);
  const double one = (network ? p2p.network_latency : p2p.latency).seconds() + path.shape.latency.seconds();
  const double seconds = c.calibration.collective.start.seconds() + batches * one +
                         with_start_up(t.seconds(), bytes, c.calibration.collective.half_size);
  PricedTransfer priced{finish(c, t, seconds, path), 0};
  const auto part = static_cast<std::int64_t>(bytes / path.shape.members);
  const std::int64_t channels = std::int64_t{message_channels(c, part, path)} * path.shape.members;
  priced.channels = static_cast<std::int32_t>(std::min<std::int64_t>(channels, kMostMessageChannels));
  if (c.pins.max_ctas > 0) priced.channels = std::min(priced.channels, c.pins.max_ctas);
  priced.cost.algorithm = Algorithm::kP2p;
  priced.cost.protocol = Protocol::kSimple;
  priced.cost.multiprocessors = processors(c.cluster, priced.channels);
  return priced;
}

PricedTransfer price_by_nccl(const CollectiveContext& c, CollectiveOp op, double bytes, const GroupPath& path) {
  const NcclSystem system = nccl_system(c.cluster, path);
  const NcclChoice choice = choose_nccl(system, nccl_op(op), bytes, c.pins);
  const double bus_bytes = bytes * bus_factor(op, path.shape.members);
  Traffic t;
  if (choice.algorithm == Algorithm::kTree) {
    t = tree_traffic(c, bytes, path);
  } else if (choice.algorithm == Algorithm::kNvls || choice.algorithm == Algorithm::kNvlsTree) {
    t = nvls_traffic(c, op, bytes, path);
  } else {
    t = ring_traffic(c, bus_bytes, path, c.calibration.collective.ring);
  }
  double data = t.seconds() / protocol_share(choice.protocol);
  // Flags travel with the data.
  t.port /= protocol_share(choice.protocol);
  t.nic /= protocol_share(choice.protocol);
  if (choice.algorithm == Algorithm::kPat) data /= 0.75;  // NCCL's own figure for it
  const NcclTable table = nccl_table(system, nccl_op(op), c.pins);
  const NcclEstimate& estimate =
      table[static_cast<std::size_t>(choice.algorithm)][static_cast<std::size_t>(choice.protocol)];
  const bool low_latency = choice.protocol == Protocol::kLl;
  // LL's ceiling is of reading flags, whatever the links.
  if (low_latency) data = std::max(data, bytes / (estimate.algbw * 1e9));
  NcclPins uncapped = c.pins;
  uncapped.max_ctas = 0;
  data *= slowdown_of_cap(c.pins, choose_nccl(system, nccl_op(op), bytes, uncapped).channels, choice.channels);
  const double latency = c.calibration.collective.start.seconds() + estimate.latency_us * 1e-6 +
                         path_latencies(op, choice.algorithm, path.shape.domains) * path.shape.latency.seconds();
  const double seconds = latency + with_start_up(data, bytes, low_latency ? 0 : c.calibration.collective.half_size);
  PricedTransfer priced{finish(c, t, seconds, path), choice.channels};
  priced.cost.algorithm = choice.algorithm;
  priced.cost.protocol = choice.protocol;
  priced.cost.multiprocessors = processors(c.cluster, choice.channels);
  return priced;
}

void set_bus_bandwidth(PricedTransfer& priced, CollectiveOp op, double bytes, std::int64_t members) {
  const double seconds = priced.cost.time.seconds();
  priced.cost.bus_bandwidth = seconds > 0 ? bytes * bus_factor(op, members) / seconds : 0;
}

}  // namespace

std::string_view to_string(CollectiveOp op) {
  constexpr std::string_view kNames[] = {"all_reduce", "all_gather", "reduce_scatter",
                                         "broadcast",  "alltoall",   "sendrecv"};
  return kNames[static_cast<std::size_t>(op)];
}

double bus_factor(CollectiveOp op, std::int64_t members) {
  const double n = static_cast<double>(members);
  switch (op) {
    case CollectiveOp::kAllReduce:
      return 2 * (n - 1) / n;
    case CollectiveOp::kAllGather:
    case CollectiveOp::kReduceScatter:
    case CollectiveOp::kAllToAll:
      return (n - 1) / n;
    case CollectiveOp::kBroadcast:
    case CollectiveOp::kSendRecv:
      return 1;
  }
  CHECK(false, "unknown collective");
}

PricedTransfer price_collective(const CollectiveContext& context, CollectiveOp op, Bytes size, const GroupPath& path) {
  CHECK(path.shape.members >= 2 && size.count >= 0, path.shape.members, size.count);
  const double bytes = as_double(size);
  PricedTransfer priced;
  if (op == CollectiveOp::kSendRecv) return price_message(context, size, path);
  if (context.cluster.node.device.kind == topology::DeviceKind::kCpu) {
    priced = price_without_nccl(context, op, bytes, path);
  } else if (op == CollectiveOp::kAllToAll) {
    priced = price_all_to_all(context, bytes, path);
  } else {
    priced = price_by_nccl(context, op, bytes, path);
  }
  set_bus_bandwidth(priced, op, bytes, path.shape.members);
  return priced;
}

PricedTransfer price_message(const CollectiveContext& context, Bytes size, const GroupPath& pair) {
  const MessageConstants& p2p = context.calibration.p2p;
  const bool network = !in_one_domain(pair);
  const Traffic t = message_traffic(context, as_double(size), pair);
  const double latency = (network ? p2p.network_latency : p2p.latency).seconds() + pair.shape.latency.seconds();
  const std::int32_t channels = message_channels(context, size.count, pair);
  const NcclPins uncapped;
  const CollectiveContext free{context.cluster, context.calibration, uncapped, context.nominal_nic};
  const double slowdown = slowdown_of_cap(context.pins, message_channels(free, size.count, pair), channels);
  PricedTransfer priced{finish(context, t, latency + t.seconds() * slowdown, pair), 0};
  if (context.cluster.node.device.kind == topology::DeviceKind::kGpu) {
    priced.channels = channels;
    priced.cost.algorithm = Algorithm::kP2p;
    priced.cost.protocol = Protocol::kSimple;
    priced.cost.multiprocessors = processors(context.cluster, channels);
  }
  set_bus_bandwidth(priced, CollectiveOp::kSendRecv, as_double(size), 2);
  return priced;
}

BytesPerSecond nominal_port(const topology::Cluster& cluster, const Calibration& calibration) {
  return BytesPerSecond(cluster.node.scale_up.bandwidth.value * calibration.collective.ring);
}

}  // namespace stepcast::sim
