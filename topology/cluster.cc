// Small questions about a cluster that follow from its counts.
#include "topology/cluster.h"

#include "base/check.h"

namespace stepcast::topology {

Bytes usable_memory(const DeviceSpec& device) {
  return device.memory_visible.count > 0 ? device.memory_visible : device.memory;
}

std::map<std::int32_t, DeviceOverride> changed_devices(const Cluster& cluster) {
  std::map<std::int32_t, DeviceOverride> changed;
  for (const DeviceOverride& change : cluster.overrides) {
    DeviceOverride& whole = changed.try_emplace(change.device, DeviceOverride{.device = change.device}).first->second;
    whole.compute_time *= change.compute_time;
    whole.memory_bandwidth *= change.memory_bandwidth;
    whole.nic_bandwidth *= change.nic_bandwidth;
    whole.nic_down = whole.nic_down || change.nic_down;
    whole.latency += change.latency;
  }
  return changed;
}

DeviceOverride override_of(const Cluster& cluster, std::int32_t device) {
  const std::map<std::int32_t, DeviceOverride> changed = changed_devices(cluster);
  const auto found = changed.find(device);
  return found == changed.end() ? DeviceOverride{.device = device} : found->second;
}

std::string_view to_string(NicKind kind) {
  constexpr std::string_view kNames[] = {"ib", "roce", "efa"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view to_string(FabricKind kind) {
  constexpr std::string_view kNames[] = {"none", "rail", "fat_tree", "custom"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view to_string(Routing routing) {
  constexpr std::string_view kNames[] = {"adaptive", "e_ecmp", "ecmp", "static"};
  return kNames[static_cast<std::size_t>(routing)];
}

std::int32_t node_of(const Cluster& cluster, std::int32_t device) {
  CHECK(device >= 0 && device < cluster.devices(), device, cluster.devices());
  return device / cluster.node.devices;
}

}  // namespace stepcast::topology
