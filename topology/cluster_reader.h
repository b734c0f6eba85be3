// From the cluster message (topology/cluster.proto, filled by config's binder) to a checked Cluster.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "topology/cluster.h"

namespace stepcast::topology {

namespace proto {
class Cluster;
}  // namespace proto

// Where a field of the message came from, by its dotted path ("gpu.memory"): the binder knows, the message does not.
using FieldLocator = std::function<Location(const std::string& field)>;

// One node of message.gpus_per_node devices. Defaults: kind gpu, memory_visible as memory, scale_up.domain the whole
// node, name "custom", host_link c2c or else pcie; of the network, as cluster.proto says. Without a fabric block there
// is none (kNone). `base` must have been laid under the message already and is ignored here.
//
// Throws Error (kInput) with every problem: rates that are not finite or below one unit per second, counts below 1,
// more visible than nominal memory, domains that neither divide the node nor are whole nodes, NICs that do not divide
// over devices, a fabric without NICs, units that cut domains, pods that cut units, a custom fabric without cables.
Cluster cluster_of(const proto::Cluster& message, const FieldLocator& locate);

}  // namespace stepcast::topology
