// The coordinates of a cluster's network: which domain, node, unit, pod and rail a device is in, which NIC it uses, and
// where the shared links of each lie in Network::shared_links().
//
// Containers nest and are counted: device / size is the number of any of them. The last unit and the last pod may be
// partly filled; their uplinks are those of whole ones. A rail is a NIC's place in its node (of a multi-node domain
// too): the sender's traffic to another rail is handed over within its node first (NCCL's PXN), so that it enters the
// leaves on the receiver's rail and two nodes of a unit are one leaf apart.
//
// Without pods the leaves' uplinks and the unit's even part of the spine layer are one link, of the ratio leaf x spine.
// With pods, units have uplinks of the leaf ratio, pods of leaf x spine. A tier that is no narrower than the one below
// it has no links. Rails share a pod's uplinks, because every spine reaches every leaf of its pod.
#pragma once

#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "topology/network.h"

namespace stepcast::topology {

// How the NIC that a device uses differs from its own undamaged one.
struct NicState {
  std::int32_t device = 0;
  std::int32_t nic = 0;  // the place in the node of the NIC it uses
  double rate = 1;       // factor on the NIC's rate
  Duration latency;      // of the device
};

// Containers of `size` devices each. Their number is asked for many million times in a run: a product with the inverse
// in 2^-64, rounded up, is exact for 32-bit numbers (Lemire, Kaser and Kurz, "Faster remainder by direct computation",
// 2019) and several times faster than a quotient.
struct Counted {
  std::int32_t size;

  explicit Counted(std::int32_t devices = std::numeric_limits<std::int32_t>::max())
      : size(devices), inverse_(devices == 1 ? 0 : ~std::uint64_t{0} / static_cast<std::uint32_t>(devices) + 1) {}

  std::int32_t index_of(std::int32_t device) const {
    if (size == 1) return device;
    return static_cast<std::int32_t>(static_cast<Wide>(inverse_) * static_cast<std::uint32_t>(device) >> 64);
  }

 private:
  __extension__ using Wide = unsigned __int128;
  std::uint64_t inverse_;
};

struct FabricLayout {
  // Throws Error (kInput) for a node of several whose NICs are all down, and for bad ends of cables. CHECK: counts fit
  // together (domains, NICs, units, pods).
  explicit FabricLayout(const Cluster& cluster);

  std::int32_t devices = 0;  // of the cluster
  Counted per_node;
  Counted per_domain;
  Counted per_unit;
  Counted per_pod;                 // one pod: more than there are devices
  std::int32_t nics_per_node = 0;  // of bundles: the NICs of one device count as one
  std::int32_t devices_per_nic = 1;
  bool nodes_joined = false;  // by NICs and a fabric
  bool host_joined = false;   // domains of a node, by the host link
  bool rails = false;
  bool custom = false;
  double nic_rate = 0;  // of a NIC (bundle) alone, efficiency included
  double routing = 1;
  Duration nic_latency;
  Duration hop_latency;
  double unit_capacity = 0;  // of a unit's uplink, of one rail where there are rails; 0: no such links
  double pod_capacity = 0;   // 0: no such links

  Tier tier_between(std::int32_t a, std::int32_t b) const;
  // Switches on the way: 1, 3, 5 for leaf, spine, core; else 0.
  static std::int32_t hops(Tier tier);
  NicState nic_of(std::int32_t device) const;
  // GroupShape::spread of two devices: each sends half of its traffic to the other, half stays.
  double pair_spread(Tier tier) const;
  bool damaged() const { return !damages_.empty(); }
  // Devices with a damage are in ascending order; the first one at or after `device`.
  std::vector<NicState>::const_iterator first_damage(std::int32_t device) const;

  std::int32_t node_of(std::int32_t device) const { return per_node.index_of(device); }
  std::int32_t domain_of(std::int32_t device) const { return per_domain.index_of(device); }
  std::int32_t unit_of(std::int32_t device) const { return per_unit.index_of(device); }
  std::int32_t pod_of(std::int32_t device) const { return per_pod.index_of(device); }
  std::int32_t rail_count() const { return rails ? nics_per_node : 1; }
  std::int32_t rail_of(std::int32_t device) const { return rails ? nic_of(device).nic : 0; }

  // Positions of shared links. `down` is towards the device (a NIC: in).
  std::uint32_t unit_link(std::int32_t unit, std::int32_t rail, bool down) const;
  std::uint32_t pod_link(std::int32_t pod, bool down) const;
  // False when the NIC that the device uses has no other user; else the position of its link out, the next one is in.
  bool nic_link(std::int32_t device, std::uint32_t& out) const;

  // Uplinks and shared NICs, in the order of the positions above.
  std::vector<SharedLink> make_links() const;

 private:
  struct NicDamages;
  void read_damages(const Cluster& cluster);
  std::set<std::int32_t> uncabled_nics(const Cluster& cluster) const;
  std::int32_t lender_of(std::int32_t device, const NicDamages& nics) const;
  void set_uplinks(const Cluster& cluster);
  void find_shared_nics();
  double nic_factor(std::int32_t node, std::int32_t nic) const;

  std::int32_t units_ = 1;
  std::int32_t pods_ = 1;
  std::uint32_t pod_base_ = 0;
  std::uint32_t nic_base_ = 0;
  std::vector<NicState> damages_;          // by device
  std::vector<std::int64_t> shared_nics_;  // node x nics_per_node + nic, ascending; unused when devices_per_nic > 1
};

}  // namespace stepcast::topology
