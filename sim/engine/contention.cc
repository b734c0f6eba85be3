// Links of the solver: four per simulated rank (port out, port in, NIC out, NIC in), then one per class of shared
// links. Private links count in shares; shared ones in shares times kWeightUnit, so that weights stay whole.
#include "sim/engine/contention.h"

#include <algorithm>

#include "base/check.h"

namespace stepcast::sim {
namespace {

constexpr std::uint32_t kPrivateLinks = 4;
enum PrivateLink : std::uint32_t { kPortOut, kPortIn, kNicOut, kNicIn };

std::vector<Share> capacities_of(const Workload& w) {
  std::vector<Share> capacities;
  for (std::uint32_t rank = 0; rank < w.ranks().size(); ++rank) {
    const DeviceLimits limits = w.limits(rank);
    capacities.insert(capacities.end(), {limits.port, limits.port, limits.nic, limits.nic});
  }
  for (const SharedLink& link : w.links()) capacities.push_back(link.capacity * kWeightUnit);
  return capacities;
}

}  // namespace

Contention::Contention(const Workload& w, bool slows_devices)
    : w_(w),
      slows_devices_(slows_devices),
      devices_(w.ranks().size()),
      locals_(w.ranks().size() * program::kStreamCount),
      links_(capacities_of(w)) {}

void Contention::hold(std::uint32_t rank, Share multiprocessors) {
  if (multiprocessors == 0) return;
  devices_[rank].held += multiprocessors;
  CHECK(devices_[rank].held >= 0, rank, devices_[rank].held);
  touch(rank);
}

Share Contention::rate_of(std::uint32_t rank) const {
  if (!slows_devices_) return kWhole;
  const Device& device = devices_[rank];
  Share multiprocessors = 0;
  Share memory = 0;
  for (std::uint32_t running = device.running; running != 0; running &= running - 1) {
    const Local& local = locals_[rank * program::kStreamCount + static_cast<std::uint32_t>(__builtin_ctz(running))];
    multiprocessors += local.cost.multiprocessors;
    memory += local.cost.memory;
  }
  const auto share = [](Share left, Share wanted) { return wanted > left ? left * kWhole / wanted : kWhole; };
  const Share by_multiprocessors = share(std::max<Share>(0, kWhole - device.held), multiprocessors);
  const Share by_memory = share(std::max<Share>(0, kWhole - device.memory), memory);
  return std::max(kSlowest, std::min(by_multiprocessors, by_memory));
}

void Contention::start_local(std::uint32_t rank, program::Stream stream, std::uint32_t op, const LocalCost& cost,
                             Duration alone, SimTime now) {
  const auto bit = static_cast<std::uint32_t>(stream);
  Local& local = locals_[rank * program::kStreamCount + bit];
  CHECK((devices_[rank].running & (1U << bit)) == 0, rank, bit);
  local.op = op;
  local.cost = cost;
  local.progress.start(now, alone);
  local.is_new = true;
  devices_[rank].running = static_cast<std::uint16_t>(devices_[rank].running | (1U << bit));
  touch(rank);
}

std::uint32_t Contention::end_local(std::uint32_t place) {
  const std::uint32_t rank = place / program::kStreamCount;
  Local& local = locals_[place];
  local.generation = next_generation(local.generation);
  devices_[rank].running = static_cast<std::uint16_t>(devices_[rank].running & ~(1U << place % program::kStreamCount));
  touch(rank);
  return local.op;
}

void Contention::uses_of(const Lane& lane, const TransferCost& cost) {
  uses_.clear();
  const auto use = [&](std::uint32_t rank, PrivateLink link, Share demand) {
    if (demand > 0) uses_.push_back({rank * kPrivateLinks + link, demand});
  };
  for (const Participant& p : lane.participants) {
    const CommunicationSlot& slot = w_.shape_of(w_.ranks()[p.rank]).slots[p.slot];
    if (!slot.message || slot.send) {
      use(p.rank, kPortOut, cost.port);
      use(p.rank, kNicOut, cost.nic);
    }
    if (!slot.message || !slot.send) {
      use(p.rank, kPortIn, cost.port);
      use(p.rank, kNicIn, cost.nic);
    }
  }
  if (cost.nic == 0) return;
  const auto first_shared = static_cast<std::uint32_t>(w_.ranks().size() * kPrivateLinks);
  for (const LinkLoad& load : w_.link_loads()[lane.loads]) {
    uses_.push_back({first_shared + load.link_class, load.weight * cost.nic});
  }
}

void Contention::use_memory(const Lane& lane, Share memory) {
  if (memory == 0) return;
  for (const Participant& p : lane.participants) {
    devices_[p.rank].memory += memory;
    touch(p.rank);
  }
}

void Contention::start_flow(std::uint32_t transfer, Duration alone, SimTime now) {
  const Lane& lane = w_.lane_of_transfer(transfer);
  const TransferCost& cost = w_.price_of(transfer).cost;
  uses_of(lane, cost);
  use_memory(lane, cost.memory);
  const std::uint32_t flow = links_.add(uses_);
  if (flow >= flows_.size()) flows_.resize(flow + 1);
  flows_[flow].transfer = transfer;
  flows_[flow].progress.start(now, alone);
  flows_[flow].is_new = true;
  new_flows_.push_back(flow);
}

std::uint32_t Contention::end_flow(std::uint32_t flow) {
  const std::uint32_t transfer = flows_[flow].transfer;
  flows_[flow].generation = next_generation(flows_[flow].generation);
  use_memory(w_.lane_of_transfer(transfer), -w_.price_of(transfer).cost.memory);
  links_.remove(flow);
  return transfer;
}

}  // namespace stepcast::sim
