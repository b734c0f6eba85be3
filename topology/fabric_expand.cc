// A hierarchical fabric as explicit cables.
#include <algorithm>
#include <string>

#include "base/check.h"
#include "topology/fabric_graph.h"

namespace stepcast::topology {

std::vector<CableSpec> expand(const Cluster& cluster) {
  const FabricSpec& fabric = cluster.fabric;
  const NicSpec& nic = cluster.node.nic;
  CHECK(fabric.kind == FabricKind::kRail || fabric.kind == FabricKind::kFatTree, cluster.name);
  const FabricLayout layout(cluster);
  const bool pods = fabric.pod_nodes > 0;
  const double nic_rate = nic.rate.value * std::max(1.0, nic.per_device);
  const double both = fabric.leaf_oversubscription * fabric.spine_oversubscription;
  const double unit_rate = nic_rate * fabric.unit_nodes * (layout.rails ? 1 : layout.nics_per_node) /
                           (pods ? fabric.leaf_oversubscription : both);
  const double pod_rate = nic_rate * fabric.pod_nodes * layout.nics_per_node / both;

  const auto leaf = [&](std::int32_t unit, std::int32_t rail) {
    return "unit" + std::to_string(unit) + ".leaf" + std::to_string(rail);
  };
  std::vector<CableSpec> cables;
  for (std::int32_t node = 0; node < cluster.nodes; ++node) {
    const std::int32_t unit = layout.unit_of(node * layout.per_node.size);
    for (std::int32_t i = 0; i < layout.nics_per_node; ++i) {
      cables.push_back({"node" + std::to_string(node) + ".nic" + std::to_string(i),
                        leaf(unit, layout.rails ? i : 0),
                        BytesPerSecond(nic_rate),
                        {}});
    }
  }
  const std::int32_t last = layout.devices - 1;
  for (std::int32_t unit = 0; unit <= layout.unit_of(last) && layout.unit_of(last) > 0; ++unit) {
    const std::string spine = "pod" + std::to_string(layout.pod_of(unit * layout.per_unit.size)) + ".spine";
    for (std::int32_t rail = 0; rail < layout.rail_count(); ++rail) {
      cables.push_back({leaf(unit, rail), spine, BytesPerSecond(unit_rate), {}});
    }
  }
  for (std::int32_t pod = 0; pod <= layout.pod_of(last) && layout.pod_of(last) > 0; ++pod) {
    cables.push_back({"pod" + std::to_string(pod) + ".spine", "core", BytesPerSecond(pod_rate), {}});
  }
  return cables;
}

}  // namespace stepcast::topology
