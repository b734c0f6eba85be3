// A lane stands for as many lanes of the job as there are groups of its class, or senders of its class.
#include "sim/network_use.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace stepcast::sim {
namespace {

using program::RoleId;

const CommunicationSlot& slot_of(const Workload& w, const Participant& p) {
  return w.shape_of(w.ranks()[p.rank]).slots[p.slot];
}

struct LaneFacts {
  RoleId role;
  bool message = false;
  std::int64_t instances = 0;  // of the lane in the job
  std::int64_t members = 0;    // that send, per instance
};

LaneFacts facts_of(const Workload& w, const Folding& f, const Lane& lane) {
  const Participant& first = lane.participants.front();
  const CommunicationSlot& slot = slot_of(w, first);
  if (slot.message) {
    const auto sender = std::find_if(lane.participants.begin(), lane.participants.end(),
                                     [&](const Participant& p) { return slot_of(w, p).send; });
    return {slot.role, true, f.ranks[sender->rank], 1};
  }
  const program::GroupId group = program::membership(w.program(), w.ranks()[first.rank].rank, slot.role).group;
  return {slot.role, false, f.groups[f.class_of_group[group.value]],
          static_cast<std::int64_t>(w.program().groups[group].members.size())};
}

double seconds(SimTime from, SimTime to) { return (to - from).seconds(); }

// Bytes at an even rate from `start` to `end`.
struct Burst {
  SimTime start;
  SimTime end;
  double rate = 0;
};

// The highest sum of rates at any time.
double peak_of(std::vector<Burst>& bursts) {
  std::vector<std::pair<std::int64_t, double>> changes;
  changes.reserve(2 * bursts.size());
  for (const Burst& b : bursts) {
    if (b.end <= b.start) continue;
    changes.emplace_back(b.start.ps, b.rate);
    changes.emplace_back(b.end.ps, -b.rate);
  }
  // Ends before starts: negative rates sort first within an instant.
  std::sort(changes.begin(), changes.end());
  double now = 0;
  double peak = 0;
  for (const auto& [time, change] : changes) {
    now += change;
    peak = std::max(peak, now);
  }
  return peak;
}

// Bytes over all ranks by role, as bytes per rank. Returns their sum.
double carry(const std::map<RoleId, double>& by_role, double all_ranks, TierUse& use) {
  double total = 0;
  for (const auto& [role, bytes] : by_role) {
    total += bytes;
    use.carries.emplace_back(role, bytes / all_ranks);
  }
  use.bytes_per_rank = total / all_ranks;
  std::stable_sort(use.carries.begin(), use.carries.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return total;
}

// What one kind of private link of all ranks carried out of them.
class PrivateTier {
 public:
  // `most`: what the link carries at most, in bytes per second.
  PrivateTier(const Workload& w, const Folding& f, std::string name, double rate, double most,
              Bytes TransferCost::*bytes)
      : w_(w), f_(f), rate_(rate), most_(most), bytes_(bytes), ranks_(w.ranks().size()) {
    use_.tier = std::move(name);
  }

  void add(const Lane& lane, const LaneFacts& facts, const Timeline& times) {
    double total = 0;
    for (std::uint32_t n = 0; n < lane.count; ++n) {
      const TransferCost& cost = w_.price_of(lane.first + n).cost;
      const auto bytes = static_cast<double>((cost.*bytes_).count);
      if (bytes == 0) continue;
      total += bytes;
      const Burst burst{times.transfers[lane.first + n].start, times.transfers[lane.first + n].end, bytes};
      for (const Participant& p : lane.participants) {
        if (!facts.message || slot_of(w_, p).send) ranks_[p.rank].push_back(burst);
      }
    }
    if (total > 0) by_role_[facts.role] += total * static_cast<double>(facts.instances * facts.members);
  }

  TierUse result(double all_ranks, Duration step) {
    const double total = carry(by_role_, all_ranks, use_);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank].empty()) continue;
      use_.links += f_.ranks[rank];
      for (Burst& b : ranks_[rank]) b.rate = b.end > b.start ? b.rate / seconds(b.start, b.end) : 0;
      if (rate_ > 0) {
        use_.peak_utilisation = std::max(use_.peak_utilisation, std::min(most_, peak_of(ranks_[rank])) / rate_);
      }
    }
    if (rate_ > 0 && use_.links > 0 && step.ps > 0) {
      use_.mean_utilisation = total / static_cast<double>(use_.links) / (rate_ * step.seconds());
    }
    return use_;
  }

 private:
  const Workload& w_;
  const Folding& f_;
  double rate_ = 0;
  double most_ = 0;
  Bytes TransferCost::*bytes_;
  std::vector<std::vector<Burst>> ranks_;
  std::map<RoleId, double> by_role_;
  TierUse use_;
};

// Shared links of one tier.
struct SharedTier {
  std::map<std::uint32_t, std::vector<Burst>> bursts;  // by link class, in shares of a NIC per second
  std::map<RoleId, double> by_role;                    // bytes over all links
  std::map<std::uint32_t, double> share_seconds;       // by link class
};

TierUse result_of(const Workload& w, const Folding& f, const std::string& name, SharedTier& tier, double all_ranks,
                  Duration step, double most) {
  TierUse use;
  use.tier = name;
  double utilisations = 0;
  for (auto& [link_class, bursts] : tier.bursts) {
    const auto capacity = static_cast<double>(w.links()[link_class].capacity);
    const auto count = static_cast<double>(f.links[link_class]);
    use.links += f.links[link_class];
    use.peak_utilisation = std::max(use.peak_utilisation, std::min(most, peak_of(bursts) / capacity));
    utilisations += count * tier.share_seconds[link_class] / capacity / step.seconds();
  }
  if (use.links > 0) use.mean_utilisation = utilisations / static_cast<double>(use.links);
  carry(tier.by_role, all_ranks, use);
  return use;
}

std::vector<TierUse> shared_tiers(const Workload& w, const Timeline& times, const Folding& f, double all_ranks,
                                  Duration step, double most) {
  std::map<std::string, SharedTier> tiers;
  std::vector<std::string> order;
  for (const SharedLink& link : w.links()) {
    if (tiers.try_emplace(link.tier).second) order.push_back(link.tier);
  }
  for (const Lane& lane : w.lanes()) {
    if (lane.loads == 0) continue;
    const RoleId role = facts_of(w, f, lane).role;
    for (const LinkLoad& load : w.link_loads()[lane.loads]) {
      SharedTier& tier = tiers[w.links()[load.link_class].tier];
      const double weight = static_cast<double>(load.weight) / static_cast<double>(kWeightUnit);
      for (std::uint32_t n = 0; n < lane.count; ++n) {
        const TransferCost& cost = w.price_of(lane.first + n).cost;
        if (cost.nic == 0) continue;
        const SimTime start = times.transfers[lane.first + n].start;
        const SimTime end = times.transfers[lane.first + n].end;
        const double shares = weight * static_cast<double>(cost.nic) * cost.time.seconds();
        if (end > start) tier.bursts[load.link_class].push_back({start, end, shares / seconds(start, end)});
        tier.share_seconds[load.link_class] += shares;
        // Shared links come in pairs, out of somewhere and into somewhere else: half of what all of them carry.
        tier.by_role[role] +=
            weight * static_cast<double>(cost.nic_bytes.count) * static_cast<double>(f.links[load.link_class]) / 2;
      }
    }
  }
  std::vector<TierUse> uses;
  for (const std::string& name : order) uses.push_back(result_of(w, f, name, tiers[name], all_ranks, step, most));
  return uses;
}

// Alike but for the segment they come from: one line of the table.
using LineKey = std::tuple<RoleId, program::OpKind, std::int64_t, Exposed, std::int64_t, Duration, Algorithm, Protocol>;

struct Line {
  CommunicationUse use;
  // Picoseconds over all ranks, summed in whole numbers: the same whatever is folded.
  __int128 moving = 0;
  __int128 exposed = 0;
  std::set<std::uint32_t> ranks;  // simulated ones that take part
};

Line& line_of(std::map<LineKey, Line>& lines, const TransferPrice& price, RoleId role, Exposed exposed) {
  const LineKey key{role,          price.kind,      -price.message.count, exposed,
                    price.members, price.cost.time, price.cost.algorithm, price.cost.protocol};
  const auto [it, is_new] = lines.try_emplace(key);
  if (is_new) it->second.use = {role, price.kind, exposed, price.message, price.members, 0, 0, price.cost, {}, {}};
  return it->second;
}

}  // namespace

std::vector<CommunicationUse> communication_use(const Workload& w, const Timeline& times, const Folding& folding,
                                                const std::vector<ExposedByLane>& exposed) {
  std::map<LineKey, Line> lines;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Line*> line_of_lane;  // by lane and price number
  for (std::uint32_t l = 0; l < w.lanes().size(); ++l) {
    const Lane& lane = w.lanes()[l];
    const LaneFacts facts = facts_of(w, folding, lane);
    const std::int64_t ends = facts.message ? 2 : facts.members;
    Line* line = nullptr;
    std::uint32_t known = kNoOp;  // price number of `line`
    for (std::uint32_t n = 0; n < lane.count; ++n) {
      const std::uint32_t t = lane.first + n;
      if (w.price_number(t) != known) {
        known = w.price_number(t);
        line = &line_of(lines, w.price_of(t), facts.role, lane.exposed);
        line_of_lane[{l, known}] = line;
        for (const Participant& p : lane.participants) line->ranks.insert(p.rank);
      }
      line->use.transfers += facts.instances;
      const std::int64_t took = (times.transfers[t].end - times.transfers[t].start).ps;
      line->moving += static_cast<__int128>(facts.instances * ends) * took;
    }
  }
  for (std::uint32_t c = 0; c < exposed.size(); ++c) {
    for (const auto& [lane, ps] : exposed[c]) {
      line_of_lane.at(lane)->exposed += static_cast<__int128>(ps) * folding.ranks[c];
    }
  }
  std::vector<CommunicationUse> uses;
  const auto all = static_cast<std::int64_t>(w.program().ranks.size());
  for (auto& [key, line] : lines) {
    for (const std::uint32_t rank : line.ranks) line.use.ranks += folding.ranks[rank];
    line.use.moving = Duration(static_cast<std::int64_t>(line.moving / line.use.ranks));
    line.use.exposed = Duration(static_cast<std::int64_t>(line.exposed / all));
    uses.push_back(line.use);
  }
  return uses;
}

std::vector<TierUse> tier_use(const Workload& w, const Timeline& times, const Folding& folding,
                              const VendorRates& rates, Duration step, bool contention) {
  if (step.ps == 0) return {};
  const auto all_ranks = static_cast<double>(w.program().ranks.size());
  constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  PrivateTier port(w, folding, "scale_up", rates.port.value, contention ? rates.nominal_port.value : kUnlimited,
                   &TransferCost::port_bytes);
  PrivateTier nic(w, folding, "nic", rates.nic.value, contention ? rates.nominal_nic.value : kUnlimited,
                  &TransferCost::nic_bytes);
  for (const Lane& lane : w.lanes()) {
    const LaneFacts facts = facts_of(w, folding, lane);
    port.add(lane, facts, times);
    nic.add(lane, facts, times);
  }
  std::vector<TierUse> uses;
  for (PrivateTier* tier : {&port, &nic}) {
    TierUse use = tier->result(all_ranks, step);
    if (use.links > 0) uses.push_back(std::move(use));
  }
  for (TierUse& use : shared_tiers(w, times, folding, all_ranks, step, contention ? 1 : kUnlimited))
    uses.push_back(std::move(use));
  return uses;
}

}  // namespace stepcast::sim
