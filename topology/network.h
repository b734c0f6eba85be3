// Between devices: the tier that traffic crosses, the rates and latency on the way, and the links that several devices
// share. Follows from coordinates (domain, node, unit, pod) in a hierarchical cluster, from shortest paths in a custom
// one.
//
// Every device has a scale-up port and its NICs to itself, unless NICs are shared or down. Above them only links that
// can hold traffic up are links here: uplinks of leaves and spines that are oversubscribed. A non-blocking tier never
// binds, because whatever passes it has passed NICs of the same total rate.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "topology/cluster.h"

namespace stepcast::topology {

// Nearest first. kHost: between scale-up domains of one node. kLeaf: between nodes of a unit. kSpine: between units of
// a pod. kCore: between pods. A custom fabric has kLeaf only.
enum class Tier : std::uint8_t { kNone, kScaleUp, kHost, kLeaf, kSpine, kCore };
inline constexpr int kTierCount = 6;
std::string_view to_string(Tier tier);  // none, scale_up, host, leaf, spine, core

// What a group of devices looks like to whoever prices its collectives. Equal shapes, equal prices.
struct GroupShape {
  Tier tier = Tier::kNone;  // the farthest that any two members cross
  std::int32_t members = 1;
  std::int32_t domains = 1;  // scale-up domains touched
  std::int32_t most_per_domain = 1;
  std::int32_t fewest_per_domain = 1;
  BytesPerSecond
      port;  // vendor rate of a member's scale-up port; the host link where only that joins domains of a node
  // Of one member's NICs, efficiency, routing, slowed NICs of any member and cables of a custom fabric included; 0
  // within a domain. A NIC that members borrow counts with the part that each of them has; one that devices share by
  // design, or with devices outside the group, with its whole rate: that sharing is the engine's business.
  BytesPerSecond nic;
  Duration latency;  // one way between the two members farthest apart: NICs, switches, perturbations; 0 within a domain
  // The rate at which every member can send to all others evenly that oversubscribed uplinks allow; 0: none limits.
  BytesPerSecond spread;
  bool operator==(const GroupShape&) const = default;
};

struct SharedLink {
  Tier tier = Tier::kLeaf;
  std::string name;         // "unit 3 rail 5 up", "pod 0 down", "node 7 NIC 2 out"
  BytesPerSecond capacity;  // efficiency and routing included, as in GroupShape::nic
};

// A shared link and how many members' NICs' worth of the group's traffic passes it, in 1/1024: 2048 means twice what
// passes one member's NIC.
struct LinkUse {
  std::uint32_t link = 0;  // position in shared_links()
  std::int64_t weight = 0;
  auto operator<=>(const LinkUse&) const = default;
};
inline constexpr std::int64_t kLinkUseUnit = 1024;

// kRing: rings over the members in order, domain by domain, one entry and exit per member's NIC. kAllToAll: every
// member to every other evenly. kMessage: from the first to the second.
enum class TrafficPattern : std::uint8_t { kRing, kAllToAll, kMessage };

class FabricGraph;    // fabric_graph.h: Boost.Graph stays behind it
struct FabricLayout;  // fabric_layout.h: coordinates

class Network {
 public:
  // Throws Error (kInput, kUnsupported): a custom fabric whose cables do not join all nodes, or name what is not there;
  // a node whose NICs are all down.
  explicit Network(Cluster cluster);
  ~Network();
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;

  const Cluster& cluster() const { return cluster_; }

  // Devices in member order, each once. Throws Error: kInput for an empty group, a device that does not exist or one
  // named twice; kUnsupported when nothing joins the members (several domains and neither host link nor NIC).
  GroupShape shape_of(std::span<const std::int32_t> devices) const;
  // Of a message; constant time but for custom fabrics. The same device twice: tier kNone.
  GroupShape shape_between(std::int32_t sender, std::int32_t receiver) const;

  const std::vector<SharedLink>& shared_links() const { return links_; }
  // Appends the shared links in use, each once, in ascending order.
  void append_uses(std::span<const std::int32_t> devices, TrafficPattern pattern, std::vector<LinkUse>& uses) const;

  // Vendor rate x efficiency of an undamaged device's NICs, the whole of one that it shares; 0 without NICs.
  BytesPerSecond nominal_nic() const;

 private:
  Cluster cluster_;
  std::vector<SharedLink> links_;
  std::unique_ptr<const FabricLayout> layout_;
  std::unique_ptr<const FabricGraph> graph_;  // custom fabrics
};

}  // namespace stepcast::topology
