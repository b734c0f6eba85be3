#include "topology/network_reader.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "topology/cluster.pb.h"
#include "topology/routing.h"

namespace stepcast::topology {
namespace {

// NVIDIA's scalable unit of 32 nodes (DGX SuperPOD reference architecture, DGX H100): 8 leaves of 64 ports, half down.
constexpr std::int32_t kUnitNodes = 32;
// 46 to 49 of 50 GB/s for ConnectX-7 NDR (NVIDIA/nccl-tests issues 290 and 319).
constexpr double kNicEfficiency = 0.92;
constexpr std::int32_t kRoceQueuePairs = 4;
constexpr double kMaxLatency = 1;  // second

// The kind of that name.
template <class Kind>
std::optional<Kind> named(std::string_view name, std::initializer_list<Kind> kinds) {
  const auto found = std::find_if(kinds.begin(), kinds.end(), [&](Kind kind) { return to_string(kind) == name; });
  return found == kinds.end() ? std::nullopt : std::optional(*found);
}

class NetworkReader {
 public:
  NetworkReader(const FieldLocator& locate, ProblemList& problems, Cluster& cluster)
      : locate_(locate), problems_(problems), cluster_(cluster) {}

  void read(const proto::Cluster& message) {
    if (message.has_nic()) read_nic(message.nic());
    if (!message.has_fabric()) return;
    if (!message.has_nic()) wrong("nic.rate", "is missing: a fabric joins NICs", {"state nic: {rate: 400 Gb/s}"});
    read_fabric(message.fabric());
  }

 private:
  void wrong(const std::string& field, std::string message, std::vector<std::string> help = {}) {
    problems_.add(ErrorKind::kInput, std::move(message), locate_(field), std::move(help));
  }

  bool in_range(const std::string& field, double value, double low, double high, const char* expected) {
    if (std::isfinite(value) && value >= low && value <= high) return true;
    wrong(field, std::string("is not ") + expected);
    return false;
  }

  void share(const std::string& field, double value) {
    if (!(value > 0 && value <= 1)) wrong(field, "is not a share above 0, at most 1");
  }

  Duration latency(const std::string& field, double seconds) {
    const bool good = in_range(field, seconds, 0, kMaxLatency, "a latency from 0 to 1 s");
    return good ? Duration::from_seconds(seconds) : Duration();
  }

  void read_nic(const proto::Nic& message) {
    NicSpec& nic = cluster_.node.nic;
    if (!message.has_rate()) {
      wrong("nic.rate", "is missing", {"the rate of one NIC, as 400 Gb/s"});
    } else if (in_range("nic.rate", message.rate(), 1, kMaxRate, "a rate from 1 to 9e18 per second")) {
      nic.rate = BytesPerSecond(message.rate());
    }
    if (message.has_per_gpu()) nic.per_device = nics_per_device(message.per_gpu());
    if (message.has_kind()) {
      const auto kind = named(message.kind(), {NicKind::kIb, NicKind::kRoce, NicKind::kEfa});
      if (!kind) wrong("nic.kind", "is none of ib, roce and efa");
      nic.kind = kind.value_or(NicKind::kIb);
    }
    nic.efficiency = message.has_efficiency() ? message.efficiency() : kNicEfficiency;
    share("nic.efficiency", nic.efficiency);
    if (message.has_latency()) nic.latency = latency("nic.latency", message.latency());
  }

  // Exactly a whole number or one over a whole number: "0.333" would be neither.
  double nics_per_device(double given) {
    const std::int32_t devices = cluster_.node.devices;
    if (std::isfinite(given) && given >= 1 && given <= 1024 && given == std::floor(given)) return given;
    const double sharers = std::isfinite(given) && given > 0 && given < 1 ? std::round(1 / given) : 0;
    if (sharers < 1 || std::abs(given * sharers - 1) > 1e-3) {
      wrong("nic.per_gpu", "is neither a whole number of NICs nor one NIC for k devices",
            {"a whole number from 1 to 1024, or 1/k: 0.5 for one NIC to two devices"});
      return 1;
    }
    if (devices >= 1 && std::fmod(devices, sharers) != 0) {
      wrong("nic.per_gpu",
            "one NIC for " + std::to_string(static_cast<std::int64_t>(sharers)) +
                " devices does not divide a node of " + std::to_string(devices),
            {"1/k with a k that divides " + std::to_string(devices)});
      return 1;
    }
    return 1 / sharers;
  }

  void read_fabric(const proto::Fabric& message) {
    FabricSpec& fabric = cluster_.fabric;
    const std::string word = message.has_kind() ? message.kind() : "rail";
    const bool racks = word == "nvl";
    const auto kind = named(racks ? "rail" : word, {FabricKind::kRail, FabricKind::kFatTree, FabricKind::kCustom});
    if (!kind) wrong("fabric.kind", "is none of rail, fat_tree, nvl and custom");
    fabric.kind = kind.value_or(FabricKind::kRail);
    if (racks && cluster_.node.scale_up.domain <= cluster_.node.devices) {
      wrong("fabric.kind", "nvl joins racks, but scale_up.domain is no more than a node",
            {"state scale_up.domain, such as 72, or kind: rail"});
    }
    read_counts(message);
    read_oversubscription(message);
    read_routing(message);
    if (message.has_hop_latency()) fabric.hop_latency = latency("fabric.hop_latency", message.hop_latency());
    read_cables(message);
  }

  void read_counts(const proto::Fabric& message) {
    FabricSpec& fabric = cluster_.fabric;
    const std::int32_t domain_nodes =
        cluster_.node.devices < 1 ? 1 : std::max(1, cluster_.node.scale_up.domain / cluster_.node.devices);
    fabric.unit_nodes = (kUnitNodes + domain_nodes - 1) / domain_nodes * domain_nodes;
    if (message.has_unit_nodes()) fabric.unit_nodes = message.unit_nodes();
    if (fabric.unit_nodes < 1) {
      wrong("fabric.unit_nodes", "is " + std::to_string(fabric.unit_nodes) + ", not at least 1");
      return;
    }
    if (fabric.unit_nodes % domain_nodes != 0) {
      wrong("fabric.unit_nodes",
            "units of " + std::to_string(fabric.unit_nodes) + " nodes cut scale-up domains of " +
                std::to_string(domain_nodes),
            {"use a multiple of " + std::to_string(domain_nodes)});
    }
    if (message.has_pod_nodes()) fabric.pod_nodes = message.pod_nodes();
    if (fabric.pod_nodes < 0 || fabric.pod_nodes % fabric.unit_nodes != 0) {
      wrong("fabric.pod_nodes",
            "is " + std::to_string(fabric.pod_nodes) + ", not whole units of " + std::to_string(fabric.unit_nodes) +
                " nodes",
            {"use a multiple of unit_nodes; 0: one pod"});
    }
  }

  void read_oversubscription(const proto::Fabric& message) {
    if (message.oversubscription_size() > 2) {
      wrong("fabric.oversubscription", "has " + std::to_string(message.oversubscription_size()) +
                                           " ratios, not one or two: leaf first, then spine");
      return;
    }
    for (const double ratio : message.oversubscription()) {
      if (!in_range("fabric.oversubscription", ratio, 1, 1e6, "a ratio down : up from 1 to 1,000,000")) return;
    }
    FabricSpec& fabric = cluster_.fabric;
    if (message.oversubscription_size() > 0) fabric.leaf_oversubscription = message.oversubscription(0);
    if (message.oversubscription_size() > 1) fabric.spine_oversubscription = message.oversubscription(1);
  }

  void read_routing(const proto::Fabric& message) {
    FabricSpec& fabric = cluster_.fabric;
    const bool roce = cluster_.node.nic.kind == NicKind::kRoce;
    fabric.routing = roce ? Routing::kEnhancedEcmp : Routing::kAdaptive;
    if (message.has_routing()) {
      const auto routing =
          named(message.routing(), {Routing::kAdaptive, Routing::kEnhancedEcmp, Routing::kEcmp, Routing::kStatic});
      if (!routing) wrong("fabric.routing", "is none of adaptive, e_ecmp, ecmp and static");
      fabric.routing = routing.value_or(Routing::kAdaptive);
    }
    fabric.queue_pairs = message.has_qps_per_connection() ? message.qps_per_connection() : roce ? kRoceQueuePairs : 1;
    if (fabric.queue_pairs < 1 || fabric.queue_pairs > 1024) {
      wrong("fabric.qps_per_connection", "is " + std::to_string(fabric.queue_pairs) + ", not between 1 and 1024");
      fabric.queue_pairs = 1;
    }
    fabric.routing_efficiency = routing_efficiency_of(fabric.routing, fabric.queue_pairs);
    if (!message.has_routing_efficiency()) return;
    fabric.routing_efficiency = message.routing_efficiency();
    share("fabric.routing_efficiency", fabric.routing_efficiency);
  }

  // Whether the ends exist depends on the number of nodes: Network checks them.
  void read_cables(const proto::Fabric& message) {
    const bool custom = cluster_.fabric.kind == FabricKind::kCustom;
    if (custom && message.cables_size() == 0) wrong("fabric.cables", "is missing: a custom fabric is its cables");
    if (!custom && message.cables_size() > 0) {
      wrong("fabric.cables", "only a custom fabric is described by cables", {"write kind: custom"});
    }
    for (int i = 0; i < message.cables_size(); ++i) {
      const proto::Cable& cable = message.cables(i);
      const std::string field = "fabric.cables[" + std::to_string(i) + "]";
      if (cable.a().empty()) wrong(field + ".a", "is missing");
      if (cable.b().empty()) wrong(field + ".b", "is missing");
      in_range(field + ".rate", cable.rate(), 1, kMaxRate, "a rate from 1 to 9e18 per second");
      cluster_.fabric.cables.push_back(
          {cable.a(), cable.b(), BytesPerSecond(cable.rate()), latency(field + ".latency", cable.latency())});
    }
  }

  const FieldLocator& locate_;
  ProblemList& problems_;
  Cluster& cluster_;
};

}  // namespace

void read_network(const proto::Cluster& message, const FieldLocator& locate, ProblemList& problems, Cluster& cluster) {
  NetworkReader(locate, problems, cluster).read(message);
}

}  // namespace stepcast::topology
