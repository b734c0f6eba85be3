#include "topology/fabric_layout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "topology/fabric_ends.h"

namespace stepcast::topology {
namespace {

constexpr std::int32_t kNoLimit = std::numeric_limits<std::int32_t>::max();

std::int32_t size_of(std::int64_t nodes, std::int32_t node_size) {
  return static_cast<std::int32_t>(std::min<std::int64_t>(nodes * node_size, kNoLimit));
}

std::int32_t count_of(std::int32_t devices, std::int32_t size) { return devices / size + (devices % size != 0); }

}  // namespace

// What is wrong with NICs, each under the first of the devices that share it.
struct FabricLayout::NicDamages {
  std::int32_t devices_per_nic = 1;
  std::map<std::int32_t, DeviceOverride> changed;
  std::set<std::int32_t> uncabled;

  std::int32_t first(std::int32_t device) const { return device / devices_per_nic * devices_per_nic; }
  bool is_damaged(std::int32_t device) const {
    return changed.contains(first(device)) || uncabled.contains(first(device));
  }
  bool works(std::int32_t device) const {
    const auto found = changed.find(first(device));
    return (found == changed.end() || !found->second.nic_down) && !uncabled.contains(first(device));
  }
  double rate(std::int32_t device) const {
    const auto found = changed.find(first(device));
    return found == changed.end() ? 1 : found->second.nic_bandwidth;
  }
  // Of several devices that share it the slowest says how slow it is, once.
  void add(std::int32_t device, const DeviceOverride& whole) {
    const DeviceOverride given{.nic_bandwidth = whole.nic_bandwidth};
    DeviceOverride& nic = changed.try_emplace(first(device), given).first->second;
    nic.nic_bandwidth = std::min(nic.nic_bandwidth, whole.nic_bandwidth);
    nic.nic_down = nic.nic_down || whole.nic_down;
  }
};

FabricLayout::FabricLayout(const Cluster& cluster) {
  const NodeSpec& node = cluster.node;
  const FabricSpec& fabric = cluster.fabric;
  CHECK(cluster.devices() >= 1 && cluster.devices() < kNoLimit, cluster.name, cluster.devices());
  devices = static_cast<std::int32_t>(cluster.devices());
  per_node = Counted(node.devices);
  CHECK(node.scale_up.domain >= 1, cluster.name, node.scale_up.domain);
  per_domain = Counted(node.scale_up.domain);
  CHECK(per_domain.size % per_node.size == 0 || per_node.size % per_domain.size == 0, cluster.name, per_domain.size);
  const bool hierarchical = fabric.kind == FabricKind::kRail || fabric.kind == FabricKind::kFatTree;
  if (hierarchical) {
    CHECK(fabric.unit_nodes >= 1 && fabric.pod_nodes >= 0, fabric.unit_nodes, fabric.pod_nodes);
    CHECK(fabric.pod_nodes % fabric.unit_nodes == 0, fabric.unit_nodes, fabric.pod_nodes);
    per_unit = Counted(size_of(fabric.unit_nodes, per_node.size));
    if (fabric.pod_nodes > 0) per_pod = Counted(size_of(fabric.pod_nodes, per_node.size));
  }
  rails = fabric.kind == FabricKind::kRail;
  custom = fabric.kind == FabricKind::kCustom;
  routing = custom ? 1 : fabric.routing_efficiency;
  hop_latency = fabric.hop_latency;
  host_joined = node.host_link.value > 0;
  if (!(node.nic.rate.value > 0)) {
    read_damages(cluster);
    return;
  }
  CHECK(node.nic.per_device > 0, node.nic.per_device);
  devices_per_nic = node.nic.per_device >= 1 ? 1 : static_cast<std::int32_t>(std::lround(1 / node.nic.per_device));
  CHECK(per_node.size % devices_per_nic == 0, per_node.size, devices_per_nic);
  nics_per_node = per_node.size / devices_per_nic;
  nic_rate = node.nic.rate.value * std::max(1.0, node.nic.per_device) * node.nic.efficiency;
  nic_latency = node.nic.latency;
  nodes_joined = fabric.kind != FabricKind::kNone;
  read_damages(cluster);
  set_uplinks(cluster);
  find_shared_nics();
}

Tier FabricLayout::tier_between(std::int32_t a, std::int32_t b) const {
  if (a == b) return Tier::kNone;
  if (domain_of(a) == domain_of(b)) return Tier::kScaleUp;
  if (host_joined && node_of(a) == node_of(b)) return Tier::kHost;
  if (unit_of(a) == unit_of(b)) return Tier::kLeaf;
  return pod_of(a) == pod_of(b) ? Tier::kSpine : Tier::kCore;
}

std::int32_t FabricLayout::hops(Tier tier) {
  return tier == Tier::kLeaf ? 1 : tier == Tier::kSpine ? 3 : tier == Tier::kCore ? 5 : 0;
}

std::vector<NicState>::const_iterator FabricLayout::first_damage(std::int32_t device) const {
  return std::lower_bound(damages_.begin(), damages_.end(), device,
                          [](const NicState& state, std::int32_t d) { return state.device < d; });
}

NicState FabricLayout::nic_of(std::int32_t device) const {
  const std::int32_t place = device - node_of(device) * per_node.size;
  const std::int32_t own = devices_per_nic == 1 ? place : place / devices_per_nic;
  if (damages_.empty()) return {device, own, 1, {}};
  const auto found = first_damage(device);
  return found != damages_.end() && found->device == device ? *found : NicState{device, own, 1, {}};
}

double FabricLayout::pair_spread(Tier tier) const {
  const double unit = tier >= Tier::kSpine ? unit_capacity : 0;
  const double pod = tier >= Tier::kCore ? pod_capacity : 0;
  return 2 * (unit > 0 && pod > 0 ? std::min(unit, pod) : std::max(unit, pod));
}

// Overrides name devices; what they say of NICs holds for all devices that share them.
void FabricLayout::read_damages(const Cluster& cluster) {
  const std::map<std::int32_t, DeviceOverride> changed = changed_devices(cluster);
  NicDamages nics{devices_per_nic, {}, uncabled_nics(cluster)};
  std::set<std::int32_t> affected = nics.uncabled;
  for (const auto& [device, whole] : changed) {
    CHECK(device >= 0 && device < devices, cluster.name, device);
    if (whole.latency.ps != 0) affected.insert(device);
    if (whole.nic_bandwidth != 1.0 || whole.nic_down) {
      nics.add(device, whole);
      affected.insert(nics.first(device));
    }
  }
  for (const std::int32_t first : std::set<std::int32_t>(affected)) {
    if (!nics.is_damaged(first)) continue;
    for (std::int32_t i = 0; i < devices_per_nic; ++i) affected.insert(nics.first(first) + i);
  }
  for (const std::int32_t device : affected) {
    const std::int32_t lender = lender_of(device, nics);
    const auto own = changed.find(device);
    damages_.push_back({device, (lender - node_of(device) * per_node.size) / devices_per_nic, nics.rate(lender),
                        own == changed.end() ? Duration() : own->second.latency});
  }
}

// The first devices of a custom fabric's NICs without a cable.
std::set<std::int32_t> FabricLayout::uncabled_nics(const Cluster& cluster) const {
  std::set<std::int32_t> uncabled;
  if (!custom || nics_per_node == 0) return uncabled;
  for (std::int32_t first = 0; first < devices; first += devices_per_nic) uncabled.insert(first);
  for (const Attachment& at : ends_of(cluster, *this).attachments) {
    const std::int32_t node_start = at.node * per_node.size;
    const std::int32_t begin = at.nic < 0 ? node_start : node_start + at.nic * devices_per_nic;
    const std::int32_t end = at.nic < 0 ? node_start + per_node.size : begin + devices_per_nic;
    uncabled.erase(uncabled.lower_bound(begin), uncabled.lower_bound(end));
  }
  return uncabled;
}

// The device whose NIC carries the traffic of `device`: itself, or the next one of the node whose NIC works. Within one
// domain nothing passes a NIC; a node without any cable is told of with all others (FabricGraph).
std::int32_t FabricLayout::lender_of(std::int32_t device, const NicDamages& nics) const {
  const std::int32_t node_start = node_of(device) * per_node.size;
  std::int32_t lender = device;
  bool any_cable = false;
  while (!nics.works(lender)) {
    any_cable = any_cable || !nics.uncabled.contains(nics.first(lender));
    lender = lender + 1 == node_start + per_node.size ? node_start : lender + 1;
    if (lender != device) continue;
    if (devices <= per_domain.size || !any_cable) return device;
    const std::string node = "node " + std::to_string(node_of(device));
    throw Error(
        ErrorKind::kInput,
        nics.uncabled.empty() ? "all NICs of " + node + " are down" : "no NIC of " + node + " is up and has a cable",
        {}, {"leave one of its NICs up, or the node out"});
  }
  return lender;
}

void FabricLayout::set_uplinks(const Cluster& cluster) {
  const FabricSpec& fabric = cluster.fabric;
  if (per_unit.size == kNoLimit) return;
  units_ = count_of(devices, per_unit.size);
  pods_ = count_of(devices, per_pod.size);
  const bool pods = fabric.pod_nodes > 0;
  const double both = fabric.leaf_oversubscription * fabric.spine_oversubscription;
  const double unit_ratio = pods ? fabric.leaf_oversubscription : both;
  const double unit_nics = static_cast<double>(fabric.unit_nodes) * (rails ? 1 : nics_per_node);
  if (units_ > 1 && unit_ratio > 1) unit_capacity = unit_nics * nic_rate * routing / unit_ratio;
  const double pod_nics = static_cast<double>(fabric.pod_nodes) * nics_per_node;
  if (pods_ > 1 && fabric.spine_oversubscription > 1) pod_capacity = pod_nics * nic_rate * routing / both;
  if (unit_capacity > 0) pod_base_ = static_cast<std::uint32_t>(units_ * rail_count() * 2);
  nic_base_ = pod_base_ + (pod_capacity > 0 ? static_cast<std::uint32_t>(pods_ * 2) : 0);
}

void FabricLayout::find_shared_nics() {
  if (!nodes_joined || devices_per_nic > 1) return;
  for (const NicState& state : damages_) {
    if (state.nic != state.device % per_node.size) {
      shared_nics_.push_back(static_cast<std::int64_t>(node_of(state.device)) * nics_per_node + state.nic);
    }
  }
  std::sort(shared_nics_.begin(), shared_nics_.end());
  shared_nics_.erase(std::unique(shared_nics_.begin(), shared_nics_.end()), shared_nics_.end());
}

std::uint32_t FabricLayout::unit_link(std::int32_t unit, std::int32_t rail, bool down) const {
  return static_cast<std::uint32_t>((unit * rail_count() + rail) * 2 + (down ? 1 : 0));
}

std::uint32_t FabricLayout::pod_link(std::int32_t pod, bool down) const {
  return pod_base_ + static_cast<std::uint32_t>(pod * 2 + (down ? 1 : 0));
}

bool FabricLayout::nic_link(std::int32_t device, std::uint32_t& out) const {
  if (devices_per_nic == 1 && shared_nics_.empty()) return false;
  const std::int64_t nic = static_cast<std::int64_t>(node_of(device)) * nics_per_node + nic_of(device).nic;
  if (devices_per_nic > 1) {
    out = nic_base_ + static_cast<std::uint32_t>(nic * 2);
    return true;
  }
  const auto found = std::lower_bound(shared_nics_.begin(), shared_nics_.end(), nic);
  if (found == shared_nics_.end() || *found != nic) return false;
  out = nic_base_ + static_cast<std::uint32_t>((found - shared_nics_.begin()) * 2);
  return true;
}

// Any device whose own NIC it is, and which still uses it, knows the factor; a NIC that is down carries nothing.
double FabricLayout::nic_factor(std::int32_t node, std::int32_t nic) const {
  const NicState owner = nic_of(node * per_node.size + nic * devices_per_nic);
  return owner.nic == nic ? owner.rate : 1;
}

std::vector<SharedLink> FabricLayout::make_links() const {
  std::vector<SharedLink> links;
  const auto add = [&](Tier tier, const std::string& name, double capacity, const char* out, const char* in) {
    links.push_back({tier, name + out, BytesPerSecond(capacity)});
    links.push_back({tier, name + in, BytesPerSecond(capacity)});
  };
  for (std::int32_t unit = 0; unit_capacity > 0 && unit < units_; ++unit) {
    const std::string name = "unit " + std::to_string(unit);
    if (!rails) add(Tier::kSpine, name, unit_capacity, " up", " down");
    for (std::int32_t rail = 0; rails && rail < rail_count(); ++rail) {
      add(Tier::kSpine, name + " rail " + std::to_string(rail), unit_capacity, " up", " down");
    }
  }
  for (std::int32_t pod = 0; pod_capacity > 0 && pod < pods_; ++pod) {
    add(Tier::kCore, "pod " + std::to_string(pod), pod_capacity, " up", " down");
  }
  const auto add_nic = [&](std::int32_t node, std::int32_t nic) {
    add(Tier::kLeaf, "node " + std::to_string(node) + " NIC " + std::to_string(nic), nic_rate * nic_factor(node, nic),
        " out", " in");
  };
  for (std::int32_t node = 0; nodes_joined && devices_per_nic > 1 && node < devices / per_node.size; ++node) {
    for (std::int32_t nic = 0; nic < nics_per_node; ++nic) add_nic(node, nic);
  }
  for (const std::int64_t nic : shared_nics_) {
    add_nic(static_cast<std::int32_t>(nic / nics_per_node), static_cast<std::int32_t>(nic % nics_per_node));
  }
  return links;
}

}  // namespace stepcast::topology
