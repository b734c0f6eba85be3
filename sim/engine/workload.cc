// Prices ops and matches communication: the n-th op of a class on (group, channel) with the n-th of every other class
// in the group; the n-th send over (sender, role, offset, channel) with the n-th receive whose mirrored offset names
// that sender.
#include "sim/engine/workload.h"

#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <optional>

#include "base/check.h"
#include "base/error.h"
#include "sim/engine/price_cache.h"

namespace stepcast::sim {
namespace {

using program::Channel;
using program::OpKind;
using program::RankId;
using program::RoleId;

// Messages of one direction between two classes. Within one group the offset names the receiver, so with two stages,
// where next and previous are one rank, direction and channel still keep the lanes apart.
struct LaneKey {
  std::uint32_t sender = 0;
  RoleId role;
  std::int64_t offset = 0;  // 0 <= offset < group size
  Channel channel = Channel::kMain;
  auto operator<=>(const LaneKey&) const = default;
};

struct Lane {
  std::vector<std::uint32_t> transfers;
  std::size_t sends = 0;
  std::size_t receives = 0;
};

// Groups that look alike to every class share one entry.
struct FoldedGroup {
  PathClass path = 0;
  std::int64_t members = 0;
  std::size_t participants = 0;                                              // distinct classes
  std::array<std::vector<std::uint32_t>, program::kChannelCount> transfers;  // by channel, in sequence
};

std::int64_t modulo(std::int64_t value, std::int64_t size) {
  const std::int64_t rest = value % size;
  return rest < 0 ? rest + size : rest;
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
      : w_(w), checked_(p), program_(p.program()), costs_(costs), folding_(folding), prices_(p.program(), costs) {}

  void build() {
    w_.checked_ = &checked_;
    const std::size_t classes = folding_.representative.size();
    std::map<std::uint32_t, std::uint32_t> shape_of_program;
    for (std::size_t c = 0; c < classes; ++c) {
      const RankId rank = folding_.representative[c];
      const auto [it, is_new] = shape_of_program.try_emplace(program_.ranks[rank].program.value,
                                                             static_cast<std::uint32_t>(w_.shapes_.size()));
      if (is_new) w_.shapes_.push_back(make_shape(program_.ranks[rank].program));
      add_rank(static_cast<std::uint32_t>(c), rank, it->second);
    }
    w_.transfer_begin_.push_back(static_cast<std::uint32_t>(w_.transfer_ids_.size()));
    check_matched();
  }

 private:
  RankShape make_shape(program::RankProgramId id) {
    const program::RankProgram& r = program_.rank_programs[id];
    RankShape shape{&r, &checked_.resolution(id), {}, {}, {}};
    std::array<std::uint32_t, program::kStreamCount> last;
    last.fill(kNoOp);
    auto graph = r.graphs.begin();
    for (std::uint32_t call = 0; call < r.calls.size(); ++call) {
      while (graph != r.graphs.end() && call >= graph->end) ++graph;
      const bool in_graph = graph != r.graphs.end() && call >= graph->begin;
      bool starts_graph = in_graph && call == graph->begin;
      const program::SegmentId segment = r.calls[call].segment;
      const std::vector<program::Op>& ops = program_.segments[segment].ops;
      for (std::uint32_t i = 0; i < ops.size(); ++i) {
        const Duration launch = !in_graph      ? prices_.launch(segment, i)
                                : starts_graph ? costs_.graph_launch_time()
                                               : Duration();
        starts_graph = false;
        std::uint32_t& previous = last[static_cast<std::size_t>(ops[i].stream)];
        shape.stream_previous.push_back(previous);
        previous = shape.op_count();
        shape.ops.push_back(&ops[i]);
        shape.launch.push_back(launch);
      }
    }
    CHECK(shape.op_count() == shape.resolution->op_count(), shape.op_count(), shape.resolution->op_count());
    return shape;
  }

  void add_rank(std::uint32_t c, RankId rank, std::uint32_t shape_index) {
    const RankShape& shape = w_.shapes_[shape_index];
    const std::uint32_t first = w_.op_count();
    check_op_count(std::uint64_t{first} + shape.op_count());
    w_.ranks_.push_back(SimulatedRank{rank, shape_index, first});
    w_.rank_of_.resize(first + shape.op_count(), c);
    w_.duration_.reserve(first + shape.op_count());
    sequence_.assign(program_.roles.size(), {});
    const DeviceClass device = costs_.device_class(program_.ranks[rank].device);
    for (std::uint32_t i = 0; i < shape.op_count(); ++i) {
      const program::Op& op = *shape.ops[i];
      const std::uint32_t call = shape.resolution->call_of[i];
      const program::SegmentId segment = shape.program->calls[call].segment;
      const std::uint32_t in_segment = i - shape.resolution->first_op[call];
      w_.transfer_begin_.push_back(static_cast<std::uint32_t>(w_.transfer_ids_.size()));
      Duration duration;
      if (program::is_collective(op.kind)) {
        add_collective(rank, first + i, op, segment, in_segment);
      } else if (program::is_p2p(op.kind)) {
        for (const program::P2pPart& part : op.parts) add_message(c, rank, first + i, op, part, segment);
      } else if (op.kind != OpKind::kJoin) {
        duration = prices_.local(segment, in_segment, device);
      }
      w_.duration_.push_back(duration);
    }
  }

  void add_collective(RankId rank, std::uint32_t op_index, const program::Op& op, program::SegmentId segment,
                      std::uint32_t in_segment) {
    const RoleId role = op.group.value();
    FoldedGroup& group = folded_groups_[folded_group(program::membership(program_, rank, role).group)];
    const auto channel = static_cast<std::size_t>(op.channel);
    const std::size_t n = sequence_[role.value][channel]++;
    std::vector<std::uint32_t>& sequence = group.transfers[channel];
    if (n == sequence.size()) sequence.push_back(new_transfer());
    CHECK(n < sequence.size(), n, sequence.size());
    // Members' own views of an uneven collective may differ in size: the slowest view rules.
    const Duration time = prices_.collective(segment, in_segment, group.path, group.members);
    Transfer& transfer = w_.transfers_[sequence[n]];
    transfer.duration = std::max(transfer.duration, time);
    join_transfer(sequence[n], op_index);
  }

  void add_message(std::uint32_t c, RankId rank, std::uint32_t op_index, const program::Op& op,
                   const program::P2pPart& part, program::SegmentId segment) {
    const program::GroupId group = program::membership(program_, rank, part.role).group;
    const auto size = static_cast<std::int64_t>(program_.groups[group].members.size());
    const std::int64_t offset = modulo(part.offset, size);
    const RankId peer = program::peer_of(program_, rank, part);
    const std::uint32_t peer_class = folding_.class_of_rank[peer.value];
    const LaneKey key = part.send ? LaneKey{c, part.role, offset, part.channel}
                                  : LaneKey{peer_class, part.role, modulo(-offset, size), part.channel};
    Lane& lane = lanes_[key];
    const std::size_t n = part.send ? lane.sends++ : lane.receives++;
    if (n == lane.transfers.size()) lane.transfers.push_back(new_transfer());
    CHECK(n < lane.transfers.size(), n, lane.transfers.size());
    if (part.send) {
      const std::array<std::int32_t, 2> pair{program_.ranks[rank].device, program_.ranks[peer].device};
      const Bytes bytes(program_.segments[segment].type_of(op.operands[part.operand]).bytes());
      w_.transfers_[lane.transfers[n]].duration = prices_.message(bytes, costs_.path_class(pair));
    }
    join_transfer(lane.transfers[n], op_index);
  }

  // Alike to all classes: equal role, path and multiset of member classes.
  std::size_t folded_group(program::GroupId id) {
    const auto known = folded_group_of_.find(id);
    if (known != folded_group_of_.end()) return known->second;
    const program::Group& group = program_.groups[id];
    std::vector<std::int32_t> devices;
    std::vector<std::uint32_t> signature;
    for (const RankId member : group.members) {
      devices.push_back(program_.ranks[member].device);
      signature.push_back(folding_.class_of_rank[member.value]);
    }
    const PathClass path = costs_.path_class(devices);
    std::sort(signature.begin(), signature.end());
    std::vector<std::uint32_t> distinct = signature;
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    signature.push_back(path);
    signature.push_back(group.role.value);
    const auto [it, is_new] = signatures_.try_emplace(std::move(signature), folded_groups_.size());
    if (is_new) {
      folded_groups_.push_back(FoldedGroup{path, static_cast<std::int64_t>(group.members.size()), distinct.size(), {}});
    }
    folded_group_of_.emplace(id, it->second);
    return it->second;
  }

  std::uint32_t new_transfer() {
    w_.transfers_.emplace_back();
    return static_cast<std::uint32_t>(w_.transfers_.size() - 1);
  }

  // An exchange may be both ends of a message, when a class sends to itself: it takes part once. Ranks are added one by
  // one, so such an op is the last one that joined.
  void join_transfer(std::uint32_t transfer, std::uint32_t op) {
    std::vector<std::uint32_t>& ops = w_.transfers_[transfer].ops;
    if (!ops.empty() && ops.back() == op) return;
    ops.push_back(op);
    w_.transfer_ids_.push_back(transfer);
  }

  void check_matched() const {
    for (const FoldedGroup& group : folded_groups_) {
      for (const std::vector<std::uint32_t>& sequence : group.transfers) {
        for (const std::uint32_t t : sequence) {
          const Transfer& transfer = w_.transfers_[t];
          CHECK(transfer.ops.size() == group.participants, w_.describe(transfer.ops.front()), group.participants);
        }
      }
    }
    for (const auto& [key, lane] : lanes_) CHECK(lane.sends == lane.receives, lane.sends, lane.receives, key.sender);
  }

  Workload& w_;
  const program::CheckedProgram& checked_;
  const program::Program& program_;
  const CostModel& costs_;
  const Folding& folding_;
  PriceCache prices_;
  std::map<LaneKey, Lane> lanes_;
  std::vector<FoldedGroup> folded_groups_;
  std::map<program::GroupId, std::size_t> folded_group_of_;
  std::map<std::vector<std::uint32_t>, std::size_t> signatures_;
  std::vector<std::array<std::size_t, program::kChannelCount>>
      sequence_;  // of the rank being added: ops so far, by role and channel
};

Workload::Workload(const program::CheckedProgram& p, const CostModel& costs, const Folding& folding) {
  WorkloadBuilder(*this, p, costs, folding).build();
}

std::string Workload::describe(std::uint32_t op) const {
  const SimulatedRank& rank = ranks_[rank_of_[op]];
  const RankShape& shape = shape_of(rank);
  const std::uint32_t call = shape.resolution->call_of[op - rank.first_op];
  const std::uint32_t in_segment = op - rank.first_op - shape.resolution->first_op[call];
  return "rank " + std::to_string(rank.rank.value) + " " +
         program::op_path(checked_->program(), *shape.program, call, in_segment);
}

}  // namespace stepcast::sim
