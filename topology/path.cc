// Paths within one node: every device of a scale-up domain reaches every other at the full rate of its own links.
#include "topology/path.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/error.h"

namespace stepcast::topology {
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

Path path_of_group(const Cluster& cluster, std::span<const std::int32_t> devices) {
  std::vector<std::int32_t> sorted(devices.begin(), devices.end());
  std::sort(sorted.begin(), sorted.end());
  check_members(cluster, sorted);
  if (sorted.size() == 1) return {};

  const std::int32_t first = sorted.front();
  const std::int32_t last = sorted.back();
  const std::string pair = "devices " + std::to_string(first) + " and " + std::to_string(last);
  if (node_of(cluster, first) != node_of(cluster, last)) {
    throw Error(ErrorKind::kUnsupported, "a path between nodes (" + pair + ")", {},
                {"keep the group within " + std::to_string(cluster.node.devices) + " devices of one node"});
  }
  const std::int32_t domain = cluster.node.scale_up.domain;
  CHECK(domain >= 1, cluster.name, domain);
  const std::int32_t node_start = node_of(cluster, first) * cluster.node.devices;
  if ((first - node_start) / domain != (last - node_start) / domain) {
    throw Error(ErrorKind::kUnsupported, "a path between scale-up domains (" + pair + ")", {},
                {"keep the group within " + std::to_string(domain) + " devices of one domain"});
  }
  return {.tier = kTierScaleUp,
          .bandwidth = cluster.node.scale_up.bandwidth,
          .devices_per_node = static_cast<std::int32_t>(sorted.size())};
}

Path path_between(const Cluster& cluster, std::int32_t a, std::int32_t b) {
  const std::int32_t devices[] = {a, b};
  return path_of_group(cluster, std::span(devices).first(a == b ? 1 : 2));
}

}  // namespace stepcast::topology
