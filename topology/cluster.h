// Where it runs: a cluster as counted identical nodes of identical devices, with their rates as the vendor states them.
//
// Hierarchical: cluster -> nodes -> devices behind one scale-up switch. Fabrics between nodes come with their issue; a
// node preset alone is a cluster of one node. Every figure carries its source text for `hardware`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace stepcast::topology {

enum class DeviceKind : std::uint8_t { kGpu, kCpu };

struct DeviceSpec {
  std::string name;  // H100-SXM-80GB
  DeviceKind kind = DeviceKind::kGpu;
  FlopsPerSecond peak_bf16;  // dense
  FlopsPerSecond peak_fp32;  // what an fp32 matmul runs at (TF32 not assumed)
  Bytes memory;              // nominal
  BytesPerSecond memory_bandwidth;
  std::int32_t multiprocessors = 0;  // SMs; cores on a CPU
  Bytes memory_visible{};            // what the driver reports as total; 0: as nominal
};

// The memory a program can see: memory_visible, or the nominal memory where that is not stated.
Bytes usable_memory(const DeviceSpec& device);

struct ScaleUpSpec {
  BytesPerSecond bandwidth;  // per device and direction
  std::int32_t domain = 1;   // consecutive devices of a node that reach each other by it
};

struct NodeSpec {
  std::string name;  // hgx-h100
  DeviceSpec device;
  std::int32_t devices = 1;
  ScaleUpSpec scale_up;
  BytesPerSecond host_link;  // device <-> host memory, per device and direction
};

// A device slower (or faster) than its spec: its compute times are multiplied. Splits classes by itself.
struct DeviceOverride {
  std::int32_t device = 0;    // global device number
  double compute_time = 1.0;  // multiplies compute times
};

struct Cluster {
  std::string name;
  NodeSpec node;
  std::int32_t nodes = 1;
  std::vector<DeviceOverride> overrides;
  std::vector<std::string> sources;  // one line per figure: "memory_bandwidth 3.35 TB/s: NVIDIA H100 datasheet"

  std::int64_t devices() const { return static_cast<std::int64_t>(nodes) * node.devices; }
};

// The factor on compute times of a global device number: the product of its overrides, 1 without any.
double compute_time_factor(const Cluster& cluster, std::int32_t device);
// The node that holds it: devices are numbered node by node. CHECK: the device exists.
std::int32_t node_of(const Cluster& cluster, std::int32_t device);

}  // namespace stepcast::topology
