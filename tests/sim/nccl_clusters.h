// Nodes as their vendors state them, for tests of collectives: what a cluster preset says of links, NICs and
// architecture, without its file.
#pragma once

#include <string>

#include "topology/cluster.h"

namespace stepcast::sim {

struct NodeFigures {
  std::string device;
  std::string architecture;
  double port = 0;  // bytes/s
  bool switch_reduces = false;
  double nic = 50e9;  // of one NIC
  double nics = 1;    // per device
  double efficiency = 0.96;
  std::int32_t domain = 8;
  std::int32_t per_node = 8;
  double memory = 3.35e12;
  std::int32_t processors = 132;
};

inline topology::Cluster make_cluster(const NodeFigures& f, std::int32_t nodes) {
  topology::Cluster c;
  c.name = f.device;
  c.nodes = nodes;
  c.node.device.name = f.device;
  c.node.device.architecture = f.architecture;
  c.node.device.peak_bf16 = FlopsPerSecond(989.5e12);
  c.node.device.peak_fp32 = FlopsPerSecond(67e12);
  c.node.device.memory = Bytes(std::int64_t{80} << 30);
  c.node.device.memory_bandwidth = BytesPerSecond(f.memory);
  c.node.device.multiprocessors = f.processors;
  c.node.devices = f.per_node;
  c.node.scale_up = {BytesPerSecond(f.port), f.domain, f.switch_reduces};
  c.node.host_link = BytesPerSecond(52e9);
  c.node.nic = {BytesPerSecond(f.nic), f.nics, topology::NicKind::kIb, f.efficiency, Duration(1'000'000)};
  c.fabric.kind = nodes > 1 ? topology::FabricKind::kRail : topology::FabricKind::kNone;
  c.fabric.unit_nodes = nodes;
  c.fabric.hop_latency = Duration(200'000);
  return c;
}

inline NodeFigures a100() { return {"A100-SXM-80GB", "sm80", 300e9, false, 25e9, 1, 0.96, 8, 8, 2.039e12, 108}; }
inline NodeFigures h100() { return {"H100-SXM-80GB", "sm90", 450e9, true}; }
inline NodeFigures h200() { return {"H200-SXM-141GB", "sm90", 450e9, true, 50e9, 1, 0.96, 8, 8, 4.8e12, 132}; }
inline NodeFigures b200() { return {"B200-SXM-180GB", "sm100", 900e9, true, 50e9, 1, 0.96, 8, 8, 8e12, 148}; }
inline NodeFigures gb200() { return {"GB200", "sm100", 900e9, true, 50e9, 1, 0.96, 72, 4, 8e12, 148}; }
inline NodeFigures mi300x() { return {"MI300X", "cdna3", 448e9, false, 50e9, 1, 0.96, 8, 8, 5.3e12, 304}; }

}  // namespace stepcast::sim
