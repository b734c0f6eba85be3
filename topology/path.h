// Between devices: the tier a group's traffic crosses, and the rate at which one device sends into it.
//
// Follows from coordinates (node, position in the node) alone. Latency and achieved fractions are no property of the
// topology: they are measured, and a calibration holds them per tier. Fabrics between nodes are not described yet.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/units.h"
#include "topology/cluster.h"

namespace stepcast::topology {

inline constexpr const char* kTierNone = "none";         // one device: nothing is sent
inline constexpr const char* kTierScaleUp = "scale_up";  // devices behind one scale-up switch

struct Path {
  std::string tier = kTierNone;       // the slowest tier crossed
  BytesPerSecond bandwidth;           // vendor rate per device and direction; 0 without traffic
  std::int32_t devices_per_node = 1;  // of the group, in each node it touches

  bool operator==(const Path&) const = default;
};

// The path of a group of global device numbers, in any order. Throws Error: kInput for an empty group, a device that
// does not exist or one named twice; kUnsupported for a group over several nodes or scale-up domains.
Path path_of_group(const Cluster& cluster, std::span<const std::int32_t> devices);

// The path between two devices; none when they are the same.
Path path_between(const Cluster& cluster, std::int32_t a, std::int32_t b);

}  // namespace stepcast::topology
