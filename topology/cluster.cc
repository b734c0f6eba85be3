// Small questions about a cluster that follow from its counts.
#include "topology/cluster.h"

#include "base/check.h"

namespace stepcast::topology {

Bytes usable_memory(const DeviceSpec& device) {
  return device.memory_visible.count > 0 ? device.memory_visible : device.memory;
}

DeviceOverride override_of(const Cluster& cluster, std::int32_t device) {
  DeviceOverride whole{.device = device};
  for (const DeviceOverride& change : cluster.overrides) {
    if (change.device != device) continue;
    whole.compute_time *= change.compute_time;
    whole.memory_bandwidth *= change.memory_bandwidth;
    whole.nic_bandwidth *= change.nic_bandwidth;
    whole.nic_down = whole.nic_down || change.nic_down;
    whole.latency += change.latency;
  }
  return whole;
}

double compute_time_factor(const Cluster& cluster, std::int32_t device) {
  double factor = 1.0;
  for (const DeviceOverride& change : cluster.overrides) {
    if (change.device == device) factor *= change.compute_time;
  }
  return factor;
}

std::int32_t node_of(const Cluster& cluster, std::int32_t device) {
  CHECK(device >= 0 && device < cluster.devices(), device, cluster.devices());
  return device / cluster.node.devices;
}

}  // namespace stepcast::topology
