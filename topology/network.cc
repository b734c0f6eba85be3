// Paths within one scale-up domain.
#include "topology/network.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"

namespace stepcast::topology {

class FabricGraph {};

namespace {

void check_members(const Cluster& cluster, const std::vector<std::int32_t>& sorted) {
  if (sorted.empty()) throw Error(ErrorKind::kInput, "a group without devices has no path");
  const std::string range = cluster.name + " has devices 0 to " + std::to_string(cluster.devices() - 1);
  for (const std::int32_t device : {sorted.front(), sorted.back()}) {
    if (device >= 0 && device < cluster.devices()) continue;
    throw Error(ErrorKind::kInput, "no device " + std::to_string(device), {}, {range});
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    throw Error(ErrorKind::kInput, "device " + std::to_string(*twice) + " is in a group twice");
}

}  // namespace

std::string_view to_string(Tier tier) {
  constexpr std::string_view kNames[kTierCount] = {"none", "scale_up", "host", "leaf", "spine", "core"};
  return kNames[static_cast<std::size_t>(tier)];
}

Network::Network(Cluster cluster) : cluster_(std::move(cluster)) {}
Network::~Network() = default;
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;

GroupShape Network::shape_of(std::span<const std::int32_t> devices) const {
  std::vector<std::int32_t> sorted(devices.begin(), devices.end());
  std::sort(sorted.begin(), sorted.end());
  check_members(cluster_, sorted);
  GroupShape shape;
  if (sorted.size() == 1) return shape;
  const std::int32_t domain = cluster_.node.scale_up.domain;
  if (sorted.front() / domain != sorted.back() / domain) {
    throw Error(ErrorKind::kUnsupported, "a path between nodes");
  }
  shape.tier = Tier::kScaleUp;
  shape.members = shape.most_per_domain = shape.fewest_per_domain = static_cast<std::int32_t>(sorted.size());
  shape.port = cluster_.node.scale_up.bandwidth;
  return shape;
}

GroupShape Network::shape_between(std::int32_t sender, std::int32_t receiver) const {
  const std::int32_t pair[] = {sender, receiver};
  return shape_of(std::span(pair).first(sender == receiver ? 1 : 2));
}

void Network::append_uses(std::span<const std::int32_t>, TrafficPattern, std::vector<LinkUse>&) const {}

BytesPerSecond Network::nominal_nic() const {
  return BytesPerSecond(cluster_.node.nic.per_device_rate().value * cluster_.node.nic.efficiency);
}

}  // namespace stepcast::topology
