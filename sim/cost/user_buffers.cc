// Seconds and bytes per second as doubles; one rounding, at the end.
#include "sim/cost/user_buffers.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace stepcast::sim {
namespace {

constexpr std::int32_t kCtasPerChannel = 2;  // of NCCL's rings
constexpr double kMemoryPerCopiedByte = 1;   // at either end

bool maps_peers(const CollectiveContext& c, const GroupPath& path) {
  const bool one_domain = path.shape.domains == 1 && path.shape.tier != topology::Tier::kHost;
  return one_domain && c.cluster.node.device.kind == topology::DeviceKind::kGpu;
}

// What a kernel of user buffers moves, in bytes, and the port's rate for it.
struct KernelTraffic {
  double port = 0;
  double port_rate = 0;
  double handled = 0;  // stored to others, or summed of theirs
};

KernelTraffic traffic_of(const CollectiveContext& c, CollectiveOp op, double bytes, const GroupPath& path) {
  const topology::NodeSpec& node = c.cluster.node;
  const double n = path.shape.members;
  const double vendor = path.shape.port.value;
  const double others = bytes * (n - 1) / n;
  if (node.scale_up.in_switch_reduction) {
    return {bytes, c.calibration.collective.nvls * vendor, op == CollectiveOp::kAllGather ? bytes / n : others};
  }
  return {others, c.calibration.collective.ring * vendor * share_of_links(node, path.shape.members), others};
}

// Bytes per second that one CTA moves, as NCCL's rings show.
double cta_rate(const CollectiveContext& c, const GroupPath& path) {
  const std::int32_t ctas = kCtasPerChannel * nccl_system(c.cluster, path).ring.channels;
  return c.calibration.collective.ring * path.shape.port.value / ctas;
}

double flag_seconds(const CollectiveContext& c, const GroupPath& path) {
  return c.calibration.p2p.latency.seconds() + path.shape.latency.seconds();
}

TransferCost cost_of(const CollectiveContext& c, double port_bytes, double memory_bytes, double seconds) {
  TransferCost cost;
  cost.time = duration_rounded_up(seconds);
  if (cost.time.ps == 0) return cost;
  cost.port_bytes = Bytes(static_cast<std::int64_t>(std::ceil(port_bytes)));
  cost.port = std::min(kWhole, share_of(port_bytes / seconds, nominal_port(c.cluster, c.calibration).value));
  const double memory = c.cluster.node.device.memory_bandwidth.value;
  cost.memory = std::min(kWhole, share_of(memory_bytes / seconds, memory));
  return cost;
}

}  // namespace

PricedTransfer price_peer_copy(const CollectiveContext& context, Bytes size, const GroupPath& pair) {
  if (!maps_peers(context, pair)) return price_message(context, size, pair);
  const auto bytes = static_cast<double>(size.count);
  const double share = context.calibration.p2p.bandwidth * share_of_links(context.cluster.node, 2);
  const double seconds = flag_seconds(context, pair) + bytes / (share * pair.shape.port.value);
  PricedTransfer priced{cost_of(context, bytes, kMemoryPerCopiedByte * bytes, seconds), 0};
  priced.cost.algorithm = Algorithm::kCopyEngines;
  priced.cost.bus_bandwidth = seconds > 0 ? bytes / seconds : 0;
  return priced;
}

PricedTransfer price_user_buffers(const CollectiveContext& context, CollectiveOp op, Bytes size, const GroupPath& path,
                                  std::int32_t multiprocessors) {
  CHECK(multiprocessors > 0 && path.shape.members >= 2, multiprocessors, path.shape.members);
  const bool known = op == CollectiveOp::kAllGather || op == CollectiveOp::kReduceScatter;
  if (!known || !maps_peers(context, path)) return price_collective(context, op, size, path);
  const auto bytes = static_cast<double>(size.count);
  const KernelTraffic t = traffic_of(context, op, bytes, path);
  const double by_port = t.port / t.port_rate;
  const double by_ctas = t.handled / (multiprocessors * cta_rate(context, path));
  const double seconds =
      flag_seconds(context, path) + context.calibration.kernel_gap.seconds() + std::max(by_port, by_ctas);
  // A member's buffer is read or written whole, and its own part once more.
  const double memory = bytes * (1 + 1.0 / path.shape.members);
  PricedTransfer priced{cost_of(context, t.port, memory, seconds), multiprocessors};
  priced.cost.algorithm = Algorithm::kUserBuffers;
  priced.cost.bus_bandwidth = bytes * bus_factor(op, path.shape.members) / seconds;
  const std::int32_t all = context.cluster.node.device.multiprocessors;
  priced.cost.multiprocessors = all > 0 ? std::min(kWhole, share_of(multiprocessors, all)) : 0;
  return priced;
}

}  // namespace stepcast::sim
