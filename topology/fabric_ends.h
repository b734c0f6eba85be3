// The ends of a custom fabric's cables as numbers: switches by name, then attachment points of nodes and NICs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/fabric_layout.h"

namespace stepcast::topology {

struct Attachment {
  std::int32_t node = 0;
  std::int32_t nic = -1;  // -1: all NICs of the node
};

struct FabricCable {
  std::int32_t a = 0;  // vertices: switches 0.., then attachments
  std::int32_t b = 0;
  std::int32_t spec = 0;  // position in FabricSpec::cables
};

struct FabricEnds {
  std::vector<std::string> switches;    // in the order of their names
  std::vector<Attachment> attachments;  // by node, then NIC
  std::vector<FabricCable> cables;

  std::int32_t switch_count() const { return static_cast<std::int32_t>(switches.size()); }
  bool is_switch(std::int32_t vertex) const { return vertex < switch_count(); }
  const Attachment& attachment(std::int32_t vertex) const {
    return attachments[static_cast<std::size_t>(vertex - switch_count())];
  }
};

// Throws Error (kInput) with every problem: ends that do not exist, a pair of ends given twice, a cable from a point to
// itself.
FabricEnds ends_of(const Cluster& cluster, const FabricLayout& layout);

}  // namespace stepcast::topology
