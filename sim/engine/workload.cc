// Lays out the simulated ranks and ties their slots to lanes: a collective slot to the lane of its group's class and
// channel, a message slot to the lane of its sender's class, role, offset and channel.
#include "sim/engine/workload.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace stepcast::sim {
namespace {

using program::RankId;

// Messages of one direction between two classes. Within one group the offset names the receiver, so with two stages,
// where next and previous are one rank, direction and channel still keep the lanes apart.
using MessageKey = std::pair<MessageLane, program::Channel>;

bool dearer(const TransferCost& a, const TransferCost& b) {
  const auto key = [](const TransferCost& c) { return std::tuple(c.time, c.nic, c.port, c.multiprocessors, c.memory); };
  return key(a) > key(b);
}

}  // namespace

void check_op_count(std::uint64_t ops) {
  if (ops < kNoOp) return;
  throw Error(ErrorKind::kInput, "the step has over " + std::to_string(kNoOp) + " ops to simulate", {},
              {"fold equal ranks together, or take fewer microbatches"});
}

class WorkloadBuilder {
 public:
  WorkloadBuilder(Workload& w, const program::CheckedProgram& p, const CostModel& costs, const Folding& folding)
      : w_(w), program_(p.program()), costs_(costs), folding_(folding), shapes_(p, costs, folding) {
    w_.checked_ = &p;
  }

  void build() {
    w_.link_loads_.emplace_back();
    for (const LinkId link : folding_.link) w_.links_.push_back(costs_.shared_links()[link]);
    group_lane_.assign(folding_.group.size() * program::kChannelCount, kNoClass);
    for (const std::vector<LinkLoad>& loads : folding_.group_loads) group_loads_.push_back(loads_number(loads));
    std::uint64_t ops = 0;
    for (std::uint32_t c = 0; c < folding_.representative.size(); ++c) {
      const RankId rank = folding_.representative[c];
      const std::uint32_t shape = shapes_.shape_of(rank);
      w_.ranks_.push_back(
          {rank, shape, static_cast<std::uint32_t>(ops), static_cast<std::uint32_t>(w_.lanes_of_slots_.size())});
      ops += shapes_.shapes[shape].op_count();
      check_op_count(ops);
      join_lanes(c, rank, shapes_.shapes[shape]);
    }
    w_.op_count_ = static_cast<std::uint32_t>(ops);
    w_.shapes_ = std::move(shapes_.shapes);
    w_.prices_ = std::move(shapes_.prices);
    number_transfers();
  }

 private:
  void join_lanes(std::uint32_t c, RankId rank, const RankShape& shape) {
    for (std::uint32_t slot = 0; slot < shape.slots.size(); ++slot) {
      const CommunicationSlot& s = shape.slots[slot];
      const program::GroupId group = program::membership(program_, rank, s.role).group;
      const std::uint32_t number = s.message ? message_lane(c, rank, s, group) : collective_lane(s, group);
      Lane& lane = w_.lanes_[number];
      if (lane.participants.empty()) lane.count = static_cast<std::uint32_t>(s.ops.size());
      CHECK(lane.count == s.ops.size(), lane.count, s.ops.size(), rank.value);
      lane.participants.push_back({c, slot});
      w_.lanes_of_slots_.push_back(number);
    }
  }

  std::uint32_t new_lane(Exposed exposed, std::uint32_t loads) {
    w_.lanes_.push_back({0, 0, {}, loads, exposed});
    return static_cast<std::uint32_t>(w_.lanes_.size() - 1);
  }

  std::uint32_t collective_lane(const CommunicationSlot& s, program::GroupId group) {
    const std::uint32_t group_class = folding_.class_of_group[group.value];
    std::uint32_t& lane = group_lane_[group_class * program::kChannelCount + static_cast<std::size_t>(s.channel)];
    if (lane == kNoClass) lane = new_lane(s.exposed, group_loads_[group_class]);
    return lane;
  }

  std::uint32_t message_lane(std::uint32_t c, RankId rank, const CommunicationSlot& s, program::GroupId group) {
    MessageLane key{c, s.role, s.offset};
    if (!s.send) {
      const auto size = static_cast<std::int64_t>(program_.groups[group].members.size());
      const RankId sender = program::peer_of(
          program_, rank, {0, false, s.role, static_cast<std::int32_t>(s.offset), program::Channel::kMain});
      key = {folding_.class_of_rank[sender.value], s.role, program::member_position(-s.offset, size)};
    }
    const auto [it, is_new] = message_lane_.try_emplace({key, s.channel}, 0U);
    if (is_new) {
      const auto loads = folding_.message_loads.find(key);
      it->second = new_lane(s.exposed, loads == folding_.message_loads.end() ? 0 : loads_number(loads->second));
    }
    return it->second;
  }

  std::uint32_t loads_number(const std::vector<LinkLoad>& loads) {
    if (loads.empty()) return 0;
    w_.link_loads_.push_back(loads);
    return static_cast<std::uint32_t>(w_.link_loads_.size() - 1);
  }

  void number_transfers() {
    std::uint64_t transfers = 0;
    for (Lane& lane : w_.lanes_) {
      lane.first = static_cast<std::uint32_t>(transfers);
      transfers += lane.count;
    }
    check_op_count(transfers);
    w_.transfers_.reserve(transfers);
    for (std::uint32_t l = 0; l < w_.lanes_.size(); ++l) {
      w_.transfers_.insert(w_.transfers_.end(), w_.lanes_[l].count, {l, kNoOp});
      check_participants(w_.lanes_[l]);
      for (const Participant& p : w_.lanes_[l].participants) price(w_.lanes_[l], p);
    }
  }

  // Members' own views of an uneven collective may differ in size: the dearest view rules. A message's price is its
  // sender's.
  void price(const Lane& lane, const Participant& p) {
    const CommunicationSlot& slot = w_.shapes_[w_.ranks_[p.rank].shape].slots[p.slot];
    for (std::uint32_t n = 0; n < slot.prices.size(); ++n) {
      std::uint32_t& price = w_.transfers_[lane.first + n].price;
      const bool replaces = price == kNoOp || (price != slot.prices[n] &&
                                               dearer(w_.prices_[slot.prices[n]].cost, w_.prices_[price].cost));
      if (replaces) price = slot.prices[n];
    }
  }

  // A checked Program matches every op; what could go wrong is the folding.
  void check_participants(const Lane& lane) const {
    const Participant& first = lane.participants.front();
    const CommunicationSlot& slot = w_.shapes_[w_.ranks_[first.rank].shape].slots[first.slot];
    if (slot.message) {
      CHECK(lane.participants.size() == 2, w_.describe(first.rank, slot.ops.front()), lane.participants.size());
      return;
    }
    const RankId rank = w_.ranks_[first.rank].rank;
    const program::Group& group = program_.groups[program::membership(program_, rank, slot.role).group];
    std::vector<std::uint32_t> classes;
    for (const RankId member : group.members) classes.push_back(folding_.class_of_rank[member.value]);
    std::sort(classes.begin(), classes.end());
    const auto distinct = static_cast<std::size_t>(std::unique(classes.begin(), classes.end()) - classes.begin());
    CHECK(lane.participants.size() == distinct, w_.describe(first.rank, slot.ops.front()), distinct);
  }

  Workload& w_;
  const program::Program& program_;
  const CostModel& costs_;
  const Folding& folding_;
  ShapeBuilder shapes_;
  std::vector<std::uint32_t> group_lane_;   // by group class and channel
  std::vector<std::uint32_t> group_loads_;  // by group class: position in link_loads_
  std::map<MessageKey, std::uint32_t> message_lane_;
};

Workload::Workload(const program::CheckedProgram& p, const CostModel& costs, const Folding& folding) {
  WorkloadBuilder(*this, p, costs, folding).build();
}

std::string Workload::describe(std::uint32_t rank, std::uint32_t op_in_rank) const {
  const SimulatedRank& r = ranks_[rank];
  const RankShape& shape = shape_of(r);
  const std::uint32_t call = shape.resolution->call_of[op_in_rank];
  return "rank " + std::to_string(r.rank.value) + " " +
         program::op_path(checked_->program(), *shape.program, call, op_in_rank - shape.resolution->first_op[call]);
}

}  // namespace stepcast::sim
