// Speeds in GB/s (1e9), as NCCL counts.
#include "sim/cost/nccl_graphs.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace stepcast::sim {
namespace {

constexpr std::int32_t kMostNvlsHeads = 32;
constexpr double kSlowestTried = 0.49;           // of the speed that works, by the search
constexpr std::int32_t kMostGraphChannels = 32;  // doubled they are MAXCHANNELS

// The fastest listed speed of at most `limit`; the slowest listed if none is.
double fastest_within(std::span<const double> speeds, double limit) {
  // Rates of links are products of rounded figures: 12 x 20 must fit 240.
  const auto fits = std::find_if(speeds.begin(), speeds.end(), [&](double s) { return s <= limit * (1 + 1e-9); });
  return fits == speeds.end() ? speeds.back() : *fits;
}

NcclGraph ring_within_node(NcclArchitecture architecture, double usable) {
  NcclGraph best;
  for (const std::int32_t channels : {12, 8}) {
    const double speed = fastest_within(nccl_speeds_within_node(architecture), usable / channels);
    if (channels * speed > best.channels * best.intra) best = {channels, speed, speed};
  }
  return best;
}

// Ties go to the fastest channels, which the search tries first.
NcclGraph ring_between_nodes(const topology::NodeSpec& node, NcclArchitecture architecture, double usable,
                             std::int32_t local) {
  const auto nics = static_cast<std::int32_t>(std::floor(local * node.nic.per_device + 1e-9));
  const std::int32_t most = std::clamp(nics, 1, kMostGraphChannels);
  // RCCL takes a channel per NIC from its tables of known machines.
  const std::int32_t fewest = architecture == NcclArchitecture::kCdna ? most : 1;
  NcclGraph best;
  for (std::int32_t channels = fewest; channels <= most; ++channels) {
    double limit = node.nic.rate.value / 1e9;
    if (local > 1) limit = std::min(limit, usable / channels);
    const double speed = fastest_within(nccl_speeds_between_nodes(architecture), limit);
    if (speed < kSlowestTried * best.intra) break;
    if (channels * speed > best.channels * best.intra * (1 + 1e-9)) best = {channels, speed, speed};
  }
  return best;
}

}  // namespace

NcclArchitecture nccl_architecture(const topology::DeviceSpec& device) {
  const std::string& name = device.architecture;
  if (name.starts_with("cdna")) return NcclArchitecture::kCdna;
  if (name == "sm90") return NcclArchitecture::kHopper;
  if (name.starts_with("sm1")) return NcclArchitecture::kBlackwell;
  return NcclArchitecture::kAmpere;  // also where it is not stated
}

double share_of_links(const topology::NodeSpec& node, std::int32_t members) {
  const bool mesh = nccl_architecture(node.device) == NcclArchitecture::kCdna;
  const std::int32_t others = node.scale_up.domain - 1;
  if (!mesh || others < 1) return 1;
  return std::min(1.0, static_cast<double>(members - 1) / others);
}

NcclSystem nccl_system(const topology::Cluster& cluster, const GroupPath& path) {
  const topology::NodeSpec& node = cluster.node;
  const topology::GroupShape& shape = path.shape;
  CHECK(shape.members >= 2 && path.nodes >= 1, shape.members, path.nodes);
  NcclSystem s;
  s.architecture = nccl_architecture(node.device);
  s.nodes = path.nodes;
  s.ranks = shape.members;
  const std::int32_t local = std::max(1, s.ranks / s.nodes);
  // Several domains to a node: GPUs of different domains meet over PCIe.
  s.nvlink = node.scale_up.bandwidth.value > 0 && shape.tier != topology::Tier::kHost &&
             (local == 1 || shape.domains <= path.nodes);
  const double links = s.architecture == NcclArchitecture::kCdna ? share_of_links(node, local) : 1;
  const double port =
      s.nvlink ? node.scale_up.bandwidth.value * nccl_usable_port(s.architecture) * links : node.host_link.value;
  const double usable = port / 1e9;
  if (s.nodes > 1) {
    s.ring = ring_between_nodes(node, s.architecture, usable, local);
  } else if (!s.nvlink) {
    const double speed = fastest_within(nccl_speeds_within_node(s.architecture), usable);
    s.ring = {1, speed, speed};
  } else if (s.architecture == NcclArchitecture::kCdna) {
    const double link = usable / std::max(1, local - 1);
    s.ring = {std::max(1, local - 1), link, link};
  } else {
    s.ring = ring_within_node(s.architecture, usable);
  }
  s.tree = s.ring;
  if (s.nvlink && node.scale_up.in_switch_reduction && local >= 2) {
    const std::int32_t heads = std::min(local, kMostNvlsHeads);
    const std::span<const double> speeds = nccl_speeds_within_node(s.architecture);
    s.nvls = {heads, fastest_within(speeds, usable / heads), s.nodes > 1 ? s.ring.inter : speeds.front()};
  }
  return s;
}

}  // namespace stepcast::sim
