// Shapes of groups and pairs. In a hierarchical cluster all containers (domain, node, unit, pod) are ranges of device
// numbers: over sorted members each is a run, and the farthest pair is the first and the last.
#include "topology/network.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "topology/fabric_graph.h"
#include "topology/fabric_layout.h"

namespace stepcast::topology {
namespace {

using Devices = std::span<const std::int32_t>;

void check_device(const Cluster& cluster, std::int32_t device) {
  if (device >= 0 && device < cluster.devices()) return;
  throw Error(ErrorKind::kInput, "no device " + std::to_string(device), {},
              {cluster.name + " has devices 0 to " + std::to_string(cluster.devices() - 1)});
}

// `sorted`, or the devices themselves when they ascend already.
Devices ascending(const Cluster& cluster, Devices devices, std::vector<std::int32_t>& sorted) {
  if (devices.empty()) throw Error(ErrorKind::kInput, "a group without devices has no path");
  Devices result = devices;
  const auto not_ascending = [](std::int32_t a, std::int32_t b) { return a >= b; };
  if (std::adjacent_find(devices.begin(), devices.end(), not_ascending) != devices.end()) {
    sorted.assign(devices.begin(), devices.end());
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) {
      throw Error(ErrorKind::kInput, "device " + std::to_string(*twice) + " is in a group twice");
    }
    result = sorted;
  }
  check_device(cluster, result.front());
  check_device(cluster, result.back());
  return result;
}

// Calls each(run) for the members in each container.
template <class Each>
void for_each_run(Devices members, const Counted& container, const Each& each) {
  for (std::size_t begin = 0; begin < members.size();) {
    const std::int64_t limit = (std::int64_t{container.index_of(members[begin])} + 1) * container.size;
    std::size_t end = begin + 1;
    while (end < members.size() && members[end] < limit) ++end;
    each(members.subspan(begin, end - begin));
    begin = end;
  }
}

struct Damages {
  double slowest_nic = 1;
  Duration latency;  // of the two members with the most
};

// The part of the NIC it uses that a member has: the members on a borrowed one share it evenly, because a collective's
// own flows start and stop together. Others that use it are the engine's business.
double part_of_nic(const FabricLayout& layout, Devices members, const NicState& state) {
  if (layout.devices_per_nic > 1) return state.rate;
  const std::int32_t node_start = layout.node_of(state.device) * layout.per_node.size;
  int users = 0;
  for (std::int32_t device = node_start; device < node_start + layout.per_node.size; ++device) {
    const bool member = std::binary_search(members.begin(), members.end(), device);
    users += static_cast<int>(member && layout.nic_of(device).nic == state.nic);
  }
  return state.rate / users;
}

// Looks at the damaged devices or at the members, whichever are fewer.
Damages damages_of(const FabricLayout& layout, Devices members) {
  Damages damages;
  if (!layout.damaged()) return damages;
  Duration most;
  Duration second;
  const auto add = [&](const NicState& state) {
    const bool borrows = state.nic != (state.device - layout.node_of(state.device) * layout.per_node.size);
    const double part = borrows ? part_of_nic(layout, members, state) : state.rate;
    damages.slowest_nic = std::min(damages.slowest_nic, part);
    second = std::max(second, std::min(most, state.latency));
    most = std::max(most, state.latency);
  };
  const auto begin = layout.first_damage(members.front());
  const auto end = layout.first_damage(members.back() + 1);
  if (static_cast<std::size_t>(end - begin) < members.size()) {
    for (auto state = begin; state != end; ++state) {
      if (std::binary_search(members.begin(), members.end(), state->device)) add(*state);
    }
  } else {
    for (const std::int32_t member : members) add(layout.nic_of(member));
  }
  damages.latency = most + second;
  return damages;
}

void check_joined(const Cluster& cluster, const FabricLayout& layout, std::int32_t a, std::int32_t b) {
  if (layout.nodes_joined) return;
  const bool one_node = layout.node_of(a) == layout.node_of(b);
  throw Error(ErrorKind::kUnsupported,
              std::string("a path between ") + (one_node ? "scale-up domains" : "nodes") + " (devices " +
                  std::to_string(a) + " and " + std::to_string(b) + ")",
              {},
              {cluster.name + " has no fabric: state cluster.nic and cluster.fabric, or choose a NODE-FABRIC preset"});
}

BytesPerSecond port_of(const NodeSpec& node, Tier tier) {
  return tier == Tier::kHost ? node.host_link : node.scale_up.bandwidth;
}

double rate_of(const FabricLayout& layout, Tier tier, double slowest_nic) {
  double rate = layout.nic_rate * slowest_nic;
  if (tier < Tier::kSpine) return rate;
  rate *= layout.routing;
  // Small units under steep ratios: an uplink may be narrower than one NIC.
  if (layout.unit_capacity > 0) rate = std::min(rate, layout.unit_capacity);
  if (layout.pod_capacity > 0 && tier == Tier::kCore) rate = std::min(rate, layout.pod_capacity);
  return rate;
}

// `members` send evenly to all n: from a link's side m to the other n - m, each n-th of what a member sends.
double spread_through(double capacity, std::size_t inside, std::size_t m, std::size_t n) {
  return capacity * static_cast<double>(n) / (static_cast<double>(m) * static_cast<double>(n - inside));
}

double spread_of(const FabricLayout& layout, Devices members) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  double spread = kNone;
  const std::size_t n = members.size();
  if (layout.unit_capacity > 0) {
    std::vector<std::size_t> on_rail(static_cast<std::size_t>(layout.rail_count()));
    for_each_run(members, layout.per_unit, [&](Devices unit) {
      if (unit.size() == n) return;
      std::fill(on_rail.begin(), on_rail.end(), 0);
      for (const std::int32_t member : unit) ++on_rail[static_cast<std::size_t>(layout.rail_of(member))];
      const std::size_t most = *std::max_element(on_rail.begin(), on_rail.end());
      spread = std::min(spread, spread_through(layout.unit_capacity, unit.size(), most, n));
    });
  }
  if (layout.pod_capacity > 0) {
    for_each_run(members, layout.per_pod, [&](Devices pod) {
      if (pod.size() == n) return;
      spread = std::min(spread, spread_through(layout.pod_capacity, pod.size(), pod.size(), n));
    });
  }
  return spread == kNone ? 0 : spread;
}

}  // namespace

std::string_view to_string(Tier tier) {
  constexpr std::string_view kNames[kTierCount] = {"none", "scale_up", "host", "leaf", "spine", "core"};
  return kNames[static_cast<std::size_t>(tier)];
}

Network::Network(Cluster cluster) : cluster_(std::move(cluster)) {
  layout_ = std::make_unique<const FabricLayout>(cluster_);
  links_ = layout_->make_links();
  if (layout_->custom) graph_ = std::make_unique<const FabricGraph>(cluster_, *layout_, links_);
}
Network::~Network() = default;
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;

GroupShape Network::shape_of(std::span<const std::int32_t> devices) const {
  std::vector<std::int32_t> sorted;
  const Devices members = ascending(cluster_, devices, sorted);
  const FabricLayout& layout = *layout_;
  GroupShape shape;
  if (members.size() == 1) return shape;
  shape.tier = layout.tier_between(members.front(), members.back());
  if (shape.tier >= Tier::kLeaf) check_joined(cluster_, layout, members.front(), members.back());
  shape.members = shape.fewest_per_domain = static_cast<std::int32_t>(members.size());
  shape.domains = 0;
  for_each_run(members, layout.per_domain, [&](Devices domain) {
    ++shape.domains;
    shape.most_per_domain = std::max(shape.most_per_domain, static_cast<std::int32_t>(domain.size()));
    shape.fewest_per_domain = std::min(shape.fewest_per_domain, static_cast<std::int32_t>(domain.size()));
  });
  shape.port = port_of(cluster_.node, shape.tier);
  const Damages damages = damages_of(layout, members);
  shape.latency = damages.latency;
  if (shape.tier < Tier::kLeaf) return shape;
  shape.nic = BytesPerSecond(rate_of(layout, shape.tier, damages.slowest_nic));
  if (graph_) {
    const FabricGraph::Bound bound = graph_->bound_of(members);
    shape.nic = std::min(shape.nic, BytesPerSecond(bound.rate));
    shape.latency += layout.nic_latency + bound.latency;
    shape.spread = BytesPerSecond(bound.spread);
    return shape;
  }
  shape.latency += layout.nic_latency + layout.hop_latency * FabricLayout::hops(shape.tier);
  if (shape.tier >= Tier::kSpine) shape.spread = BytesPerSecond(spread_of(layout, members));
  return shape;
}

GroupShape Network::shape_between(std::int32_t sender, std::int32_t receiver) const {
  check_device(cluster_, sender);
  check_device(cluster_, receiver);
  const FabricLayout& layout = *layout_;
  GroupShape shape;
  shape.tier = layout.tier_between(sender, receiver);
  if (shape.tier == Tier::kNone) return shape;
  if (shape.tier >= Tier::kLeaf) check_joined(cluster_, layout, sender, receiver);
  shape.members = 2;
  shape.domains = shape.tier == Tier::kScaleUp ? 1 : 2;
  shape.most_per_domain = shape.fewest_per_domain = shape.tier == Tier::kScaleUp ? 2 : 1;
  shape.port = port_of(cluster_.node, shape.tier);
  double slowest_nic = 1;
  if (layout.damaged()) {
    const NicState from = layout.nic_of(sender);
    const NicState to = layout.nic_of(receiver);
    slowest_nic = std::min({1.0, from.rate, to.rate});
    shape.latency = from.latency + to.latency;
  }
  if (shape.tier < Tier::kLeaf) return shape;
  shape.nic = BytesPerSecond(rate_of(layout, shape.tier, slowest_nic));
  if (graph_) {
    const FabricGraph::Route route = graph_->route(sender, receiver);
    shape.nic = std::min(shape.nic, BytesPerSecond(route.rate));
    shape.latency += layout.nic_latency + route.latency;
    return shape;
  }
  shape.latency += layout.nic_latency + layout.hop_latency * FabricLayout::hops(shape.tier);
  if (layout.unit_capacity > 0 || layout.pod_capacity > 0) {
    shape.spread = BytesPerSecond(layout.pair_spread(shape.tier));
  }
  return shape;
}

BytesPerSecond Network::nominal_nic() const { return BytesPerSecond(layout_->nic_rate); }

}  // namespace stepcast::topology
