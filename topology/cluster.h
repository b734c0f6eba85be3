// Where it runs: a cluster as counted identical nodes of identical devices, with their rates as the vendor states them,
// and the fabric between the nodes.
//
// Hierarchical: devices behind one scale-up switch (a domain: a node, a part of it, or a rack of nodes) -> nodes ->
// units of nodes under one set of leaf switches -> pods of units under one set of spine switches -> the core. Every
// figure carries its source text for `hardware`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace stepcast::topology {

enum class DeviceKind : std::uint8_t { kGpu, kCpu };

struct DeviceSpec {
  std::string name;  // H100-SXM-80GB
  DeviceKind kind = DeviceKind::kGpu;
  std::string
      architecture;  // sm80, sm90, sm100, sm103, cdna3, cdna4; empty: not stated. What collectives libraries tune by
  FlopsPerSecond peak_bf16;  // dense
  FlopsPerSecond peak_fp32;  // what an fp32 matmul runs at (TF32 not assumed)
  FlopsPerSecond peak_fp8;   // dense; 0: none
  FlopsPerSecond peak_fp4;   // dense; 0: none
  Bytes memory;              // nominal
  BytesPerSecond memory_bandwidth;
  std::int32_t multiprocessors = 0;  // SMs; compute units; cores on a CPU
  Bytes memory_visible{};            // what the driver reports as total; 0: as nominal
  double power_limit = 0;            // W; 0: not stated
  double clock = 0;                  // Hz at which the peaks are stated; 0: not stated
};

// The memory a program can see: memory_visible, or the nominal memory where that is not stated.
Bytes usable_memory(const DeviceSpec& device);

struct ScaleUpSpec {
  BytesPerSecond bandwidth;  // per device and direction
  std::int32_t domain = 1;   // consecutive devices that reach each other by it: divides a node or is whole nodes
  bool in_switch_reduction = false;  // the switch reduces and multicasts (NVLink SHARP)
};

enum class NicKind : std::uint8_t { kIb, kRoce, kEfa };

struct NicSpec {
  BytesPerSecond rate;    // of one NIC, per direction; 0: nodes have no NIC
  double per_device = 1;  // NICs of each device: a whole number, or 1/k when k consecutive devices of a node share one
  NicKind kind = NicKind::kIb;
  double efficiency = 1;  // share of `rate` that large messages reach
  Duration latency;       // one way between two NICs, without switches

  // What the NICs of one device carry together, of vendor rate.
  BytesPerSecond per_device_rate() const { return BytesPerSecond(rate.value * per_device); }
};

// kNone: no fabric: one node or one domain. kRail: device i of every node of a unit on leaf i. kFatTree: nodes on
// leaves as a whole. kCustom: the graph in `links`.
enum class FabricKind : std::uint8_t { kNone, kRail, kFatTree, kCustom };
enum class Routing : std::uint8_t { kAdaptive, kEnhancedEcmp, kEcmp, kStatic };

// A cable of a custom fabric, both directions alike. Ends are names: "node3.nic2" (a device's NIC, by its place in the
// node), "node3" (all NICs of the node), or any other word for a switch.
struct CableSpec {
  std::string a;
  std::string b;
  BytesPerSecond rate;
  Duration latency;
};

struct FabricSpec {
  FabricKind kind = FabricKind::kNone;
  std::int32_t unit_nodes = 32;       // nodes under one set of leaves
  std::int32_t pod_nodes = 0;         // nodes under one set of spines, whole units; 0: all of them
  double leaf_oversubscription = 1;   // leaf capacity down : up
  double spine_oversubscription = 1;  // spine capacity down : up; without pods: of the spine layer itself
  Routing routing = Routing::kAdaptive;
  std::int32_t queue_pairs = 1;  // per connection
  double routing_efficiency =
      1;                 // share of a NIC's rate that routing lets through where paths are chosen (above leaves)
  Duration hop_latency;  // per switch
  std::vector<CableSpec> cables;  // kCustom
};

struct NodeSpec {
  std::string name;  // hgx-h100
  DeviceSpec device;
  std::int32_t devices = 1;
  ScaleUpSpec scale_up;
  BytesPerSecond host_link;  // device <-> host memory, per device and direction; also between domains of a node
  NicSpec nic;

  // How many devices reach each other without a network: a node's, or those of a scale-up domain over several nodes.
  std::int32_t devices_without_network() const { return std::max(devices, scale_up.domain); }
};

// A device unlike its spec: a what-if, a measurement, a damage. Factors multiply; several overrides of one device add
// up to the product of factors and the sum of latencies. Splits classes by itself.
struct DeviceOverride {
  std::int32_t device = 0;        // global device number
  double compute_time = 1.0;      // multiplies compute times: 1.03 is slower
  double memory_bandwidth = 1.0;  // multiplies the memory rate: 0.9 is slower
  double nic_bandwidth = 1.0;     // multiplies its NICs' rate: 0.5 is slower
  bool nic_down = false;          // its traffic takes the NIC of the next device of the node that has one
  Duration latency{};             // added to every path that ends here
};

struct Cluster {
  std::string name;
  NodeSpec node;
  std::int32_t nodes = 1;
  FabricSpec fabric;
  std::vector<DeviceOverride> overrides;
  std::vector<std::string> sources;  // one line per figure: "memory_bandwidth 3.35 TB/s: NVIDIA H100 datasheet"

  std::int64_t devices() const { return static_cast<std::int64_t>(nodes) * node.devices; }
};

// The devices that have overrides, each with all of its own as one.
std::map<std::int32_t, DeviceOverride> changed_devices(const Cluster& cluster);
// All overrides of a device as one; the neutral one without any.
DeviceOverride override_of(const Cluster& cluster, std::int32_t device);
// As the cluster file writes them.
std::string_view to_string(NicKind kind);
std::string_view to_string(FabricKind kind);  // an nvl fabric is of kind rail; "none" is written by leaving it out
std::string_view to_string(Routing routing);
// The node that holds it: devices are numbered node by node. CHECK: the device exists.
std::int32_t node_of(const Cluster& cluster, std::int32_t device);

}  // namespace stepcast::topology
