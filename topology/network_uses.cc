// Which shared links the traffic of a group passes, and how much of it.
//
// A ring visits the domains in the order of their first members and closes; between two domains g = fewest_per_domain
// members of the first send to as many of the second, each through its own NIC: what passes one member's NIC passes
// every link on the way once. In an all-to-all each of m members on one side of a link sends to the n - m on the other,
// while one NIC carries what its device sends to the n - g members outside its domain. Traffic stays on the sender's
// rail up and the receiver's down; a message is on the receiver's rail from its node on.
#include <algorithm>
#include <map>
#include <vector>

#include "base/check.h"
#include "topology/fabric_graph.h"
#include "topology/fabric_layout.h"
#include "topology/network.h"

namespace stepcast::topology {
namespace {

using Devices = std::span<const std::int32_t>;

// Members domain by domain, domains in the order of their first members.
struct Domains {
  Devices members;
  std::vector<std::size_t> begin;  // and the end of the last
  std::size_t fewest = 0;

  std::size_t count() const { return begin.size() - 1; }
  Devices operator[](std::size_t i) const { return members.subspan(begin[i], begin[i + 1] - begin[i]); }
};

// The devices with those of a domain side by side, in `storage`.
Devices grouped(Devices devices, const FabricLayout& layout, std::vector<std::int32_t>& storage) {
  std::map<std::int32_t, std::size_t> first_of;  // domain: position of its first member
  for (std::size_t i = 0; i < devices.size(); ++i) first_of.try_emplace(layout.domain_of(devices[i]), i);
  storage.assign(devices.begin(), devices.end());
  std::stable_sort(storage.begin(), storage.end(), [&](std::int32_t a, std::int32_t b) {
    return first_of.at(layout.domain_of(a)) < first_of.at(layout.domain_of(b));
  });
  return storage;
}

Domains domains_of(Devices devices, const FabricLayout& layout, std::vector<std::int32_t>& storage) {
  // In ascending order, the usual case, they are side by side already.
  const bool ascending = std::is_sorted(devices.begin(), devices.end());
  Domains domains;
  domains.members = ascending ? devices : grouped(devices, layout, storage);
  std::int32_t last = -1;
  for (std::size_t i = 0; i < domains.members.size(); ++i) {
    const std::int32_t domain = layout.domain_of(domains.members[i]);
    if (domain != last) domains.begin.push_back(i);
    last = domain;
  }
  domains.begin.push_back(devices.size());
  domains.fewest = devices.size();
  for (std::size_t i = 0; i < domains.count(); ++i) domains.fewest = std::min(domains.fewest, domains[i].size());
  return domains;
}

class Uses {
 public:
  Uses(const FabricLayout& layout, const FabricGraph* graph, std::vector<LinkUse>& uses)
      : layout_(layout), graph_(graph), uses_(uses), begin_(static_cast<std::ptrdiff_t>(uses.size())) {}

  void message(std::int32_t sender, std::int32_t receiver) {
    const Tier tier = layout_.tier_between(sender, receiver);
    if (tier < Tier::kLeaf) return;
    std::uint32_t nic = 0;
    if (layout_.nic_link(sender, nic)) add(nic);
    if (layout_.nic_link(receiver, nic)) add(nic + 1);
    if (graph_ != nullptr) {
      graph_->append_links(graph_->route(sender, receiver), path_);
      for (const std::uint32_t link : path_) add(link);
    } else {
      const std::int32_t rail = layout_.rail_of(receiver);
      cross(sender, rail, receiver, rail);
    }
  }

  void ring(Devices devices) {
    std::vector<std::int32_t> storage;
    const Domains domains = domains_of(devices, layout_, storage);
    for (std::size_t i = 0; i < domains.count(); ++i) {
      const Devices from = domains[i];
      const Devices to = domains[i + 1 == domains.count() ? 0 : i + 1];
      for (std::size_t j = 0; j < domains.fewest; ++j) pass(from[j], to[j]);
    }
    shared_nics(devices);
  }

  void all_to_all(Devices devices) {
    std::vector<std::int32_t> storage;
    const Domains domains = domains_of(devices, layout_, storage);
    const auto outside = static_cast<std::int64_t>(devices.size() - domains.fewest);
    if (graph_ != nullptr) {
      all_pairs(devices, outside);
    } else {
      std::vector<std::int32_t> sorted(devices.begin(), devices.end());
      std::sort(sorted.begin(), sorted.end());
      if (layout_.unit_capacity > 0) unit_exchange(sorted, outside);
      if (layout_.pod_capacity > 0) pod_exchange(sorted, outside);
    }
    shared_nics(devices);
  }

  // Each link once, in ascending order.
  void settle() {
    const auto begin = uses_.begin() + begin_;
    std::sort(begin, uses_.end());
    auto last = begin;
    for (auto use = begin; use != uses_.end(); ++use) {
      if (use != begin && use->link == last->link) {
        last->weight += use->weight;
      } else {
        if (use != begin) ++last;
        *last = *use;
      }
    }
    if (begin != uses_.end()) uses_.erase(last + 1, uses_.end());
  }

 private:
  void add(std::uint32_t link, std::int64_t weight = kLinkUseUnit) { uses_.push_back({link, weight}); }

  void cross(std::int32_t from, std::int32_t up_rail, std::int32_t to, std::int32_t down_rail) {
    const std::int32_t from_unit = layout_.unit_of(from);
    const std::int32_t to_unit = layout_.unit_of(to);
    if (from_unit == to_unit) return;
    if (layout_.unit_capacity > 0) {
      add(layout_.unit_link(from_unit, up_rail, false));
      add(layout_.unit_link(to_unit, down_rail, true));
    }
    const std::int32_t from_pod = layout_.pod_of(from);
    const std::int32_t to_pod = layout_.pod_of(to);
    if (layout_.pod_capacity > 0 && from_pod != to_pod) {
      add(layout_.pod_link(from_pod, false));
      add(layout_.pod_link(to_pod, true));
    }
  }

  void pass(std::int32_t from, std::int32_t to) {
    if (graph_ == nullptr) {
      cross(from, layout_.rail_of(from), to, layout_.rail_of(to));
    } else if (layout_.tier_between(from, to) >= Tier::kLeaf) {
      path_.clear();
      graph_->append_links(graph_->route(from, to), path_);
      for (const std::uint32_t link : path_) add(link);
    }
  }

  void shared_nics(Devices devices) {
    for (const std::int32_t device : devices) {
      std::uint32_t nic = 0;
      if (!layout_.nic_link(device, nic)) continue;
      add(nic);
      add(nic + 1);
    }
  }

  void exchange(std::uint32_t up, std::int64_t inside, std::int64_t m, std::int64_t n, std::int64_t outside) {
    if (m == 0 || inside == n) return;
    const std::int64_t weight = (kLinkUseUnit * m * (n - inside) + outside - 1) / outside;
    add(up, weight);
    add(up + 1, weight);
  }

  void unit_exchange(Devices sorted, std::int64_t outside) {
    std::vector<std::int64_t> on_rail(static_cast<std::size_t>(layout_.rail_count()));
    for (std::size_t i = 0; i < sorted.size();) {
      const std::int32_t unit = layout_.unit_of(sorted[i]);
      const std::size_t begin = i;
      std::fill(on_rail.begin(), on_rail.end(), 0);
      for (; i < sorted.size() && layout_.unit_of(sorted[i]) == unit; ++i) {
        ++on_rail[static_cast<std::size_t>(layout_.rail_of(sorted[i]))];
      }
      for (std::int32_t rail = 0; rail < layout_.rail_count(); ++rail) {
        exchange(layout_.unit_link(unit, rail, false), static_cast<std::int64_t>(i - begin),
                 on_rail[static_cast<std::size_t>(rail)], static_cast<std::int64_t>(sorted.size()), outside);
      }
    }
  }

  void pod_exchange(Devices sorted, std::int64_t outside) {
    for (std::size_t i = 0; i < sorted.size();) {
      const std::int32_t pod = layout_.pod_of(sorted[i]);
      const std::size_t begin = i;
      while (i < sorted.size() && layout_.pod_of(sorted[i]) == pod) ++i;
      const auto inside = static_cast<std::int64_t>(i - begin);
      exchange(layout_.pod_link(pod, false), inside, inside, static_cast<std::int64_t>(sorted.size()), outside);
    }
  }

  // Of a custom fabric: every pair's path, each an outside-th of what passes a NIC.
  void all_pairs(Devices devices, std::int64_t outside) {
    const auto first = static_cast<std::ptrdiff_t>(uses_.size());
    for (const std::int32_t a : devices) {
      for (const std::int32_t b : devices) pass(a, b);
      settle();
    }
    for (auto use = uses_.begin() + first; use != uses_.end(); ++use) {
      use->weight = (use->weight + outside - 1) / outside;
    }
  }

  const FabricLayout& layout_;
  const FabricGraph* graph_;
  std::vector<LinkUse>& uses_;
  std::ptrdiff_t begin_;  // uses before it belong to others
  std::vector<std::uint32_t> path_;
};

}  // namespace

void Network::append_uses(std::span<const std::int32_t> devices, TrafficPattern pattern,
                          std::vector<LinkUse>& uses) const {
  if (links_.empty() || devices.size() < 2) return;
  const auto [low, high] = std::minmax_element(devices.begin(), devices.end());
  CHECK(*low >= 0 && *high < layout_->devices, *low, *high);
  if (layout_->tier_between(*low, *high) < Tier::kLeaf) return;
  Uses collector(*layout_, graph_.get(), uses);
  if (pattern == TrafficPattern::kMessage) {
    collector.message(devices[0], devices[1]);
  } else if (pattern == TrafficPattern::kRing) {
    collector.ring(devices);
  } else {
    collector.all_to_all(devices);
  }
  collector.settle();
}

}  // namespace stepcast::topology
