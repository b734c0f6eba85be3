// What ops take from one another, in two tiers.
//
// Within a device: collectives hold multiprocessors from their own start (their kernels spin while they wait), messages
// while they move, and both use the memory rate while bytes move; what is left is shared by the local ops that run. A
// local op that needs more of either than is left slows down in proportion. Communication is not slowed by computation:
// its kernels are resident and few. On links: transfers share ports, NICs and shared links max-min fairly
// (link_flows.h). A transfer spreads its bytes evenly over its time alone, so that its latency stretches with it.
//
// Measured slowdowns of computation beside communication average 19 % and reach 40 % (arXiv 2507.03114; A100, H100,
// MI210, MI250); 24 of 132 multiprocessors held leave 82 %.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/link_flows.h"
#include "sim/engine/progress.h"
#include "sim/engine/workload.h"

namespace stepcast::sim {

// However much is held, local ops go on at this much of full speed.
inline constexpr Share kSlowest = kWhole / 16;

class Contention {
 public:
  // The local op that runs at a place.
  struct Local {
    std::uint32_t op = 0;
    std::uint32_t generation = 0;
    LocalCost cost;
    Progress progress;
    bool is_new = false;
  };

  // `slows_devices`: local ops share their device with what else runs there; else only transfers share links.
  Contention(const Workload& w, bool slows_devices);

  const Local& local(std::uint32_t place) const { return locals_[place]; }

  // Changes what communication kernels hold on a rank's device.
  void hold(std::uint32_t rank, Share multiprocessors);

  // One local op runs per rank and stream: its place is rank * kStreamCount + stream.
  void start_local(std::uint32_t rank, program::Stream stream, std::uint32_t op, const LocalCost& cost, Duration alone,
                   SimTime now);
  bool is_current_local(std::uint32_t place, std::uint32_t generation) const {
    return locals_[place].generation == generation;
  }
  // Returns the op.
  std::uint32_t end_local(std::uint32_t place);

  void start_flow(std::uint32_t transfer, Duration alone, SimTime now);
  bool is_current_flow(std::uint32_t flow, std::uint32_t generation) const {
    return flows_[flow].generation == generation;
  }
  // Returns the transfer.
  std::uint32_t end_flow(std::uint32_t flow);

  // Solves for all that changed at `now`, once it is worked off. Calls local_ends(SimTime, place, generation) and
  // flow_ends(SimTime, flow, generation) for whatever ends at a new time; earlier generations are void.
  template <class LocalEnds, class FlowEnds>
  void settle(SimTime now, LocalEnds&& local_ends, FlowEnds&& flow_ends) {
    for (const std::uint32_t rank : touched_) {
      Device& device = devices_[rank];
      device.touched = false;
      const Share rate = rate_of(rank);
      for (std::uint32_t running = device.running; running != 0; running &= running - 1) {
        const std::uint32_t place = rank * program::kStreamCount + static_cast<std::uint32_t>(__builtin_ctz(running));
        Local& local = locals_[place];
        const Share own = local.cost.multiprocessors == 0 && local.cost.memory == 0 ? kWhole : rate;
        const bool is_new = local.is_new;
        if (own != local.progress.rate()) {
          local.progress.change(now, own);
        } else if (!is_new) {
          continue;
        }
        local.is_new = false;
        local.generation = next_generation(local.generation);
        local_ends(local.progress.end(), place, local.generation);
      }
    }
    touched_.clear();
    changed_.clear();
    links_.solve(changed_);
    for (const std::uint32_t flow : changed_) {
      flows_[flow].progress.change(now, links_.rate(flow));
      if (!flows_[flow].is_new) new_flows_.push_back(flow);
    }
    for (const std::uint32_t flow : new_flows_) {
      Flow& f = flows_[flow];
      f.is_new = false;
      f.generation = next_generation(f.generation);
      flow_ends(f.progress.end(), flow, f.generation);
    }
    new_flows_.clear();
  }

  static constexpr std::uint32_t kGenerations = std::uint32_t{1} << 29;

 private:
  struct Device {
    Share held = 0;
    Share memory = 0;
    std::uint16_t running = 0;  // streams with a local op, one bit each
    static_assert(program::kStreamCount <= 16);
    bool touched = false;
  };
  struct Flow {
    std::uint32_t transfer = 0;
    std::uint32_t generation = 0;
    Progress progress;
    bool is_new = false;
  };

  static std::uint32_t next_generation(std::uint32_t generation) { return (generation + 1) % kGenerations; }
  // Only running local ops notice.
  void touch(std::uint32_t rank) {
    Device& device = devices_[rank];
    if (device.touched || device.running == 0) return;
    device.touched = true;
    touched_.push_back(rank);
  }
  Share rate_of(std::uint32_t rank) const;
  void use_memory(const Lane& lane, Share memory);
  void uses_of(const Lane& lane, const TransferCost& cost);

  const Workload& w_;
  const bool slows_devices_;
  std::vector<Device> devices_;  // by simulated rank
  std::vector<Local> locals_;    // by place
  std::vector<Flow> flows_;      // by number in links_
  LinkFlows links_;
  std::vector<std::uint32_t> touched_;    // ranks
  std::vector<std::uint32_t> new_flows_;  // whose end is to be scheduled
  std::vector<std::uint32_t> changed_;
  std::vector<FlowUse> uses_;
};

}  // namespace stepcast::sim
