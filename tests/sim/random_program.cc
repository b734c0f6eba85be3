// The generator. A key is a rank program: a stage or a rank, depending on the symmetry.
#include "tests/sim/random_program.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "program/builder.h"

namespace stepcast::sim {
namespace {

using program::Channel;
using program::DType;
using program::Op;
using program::Operand;
using program::OpKind;
using program::P2pPart;
using program::RankId;
using program::Ref;
using program::RoleId;
using program::Stream;

constexpr std::int64_t kBufferElements = 64;
constexpr std::size_t kBuffers = 5;

class Generator {
 public:
  explicit Generator(const RandomProgramOptions& options)
      : options_(options),
        random_(options.seed, "random_program"),
        tp_(pick({1, 2, 4})),
        dp_(1 + below(3)),
        pp_(1 + below(4)),
        stages_only_(options.symmetry == Symmetry::kStages) {
    for (const char* name : {"tp", "dp", "pp", "line", "world"}) roles_.emplace(name, builder_.role(name));
    const std::size_t keys = stages_only_ ? pp_ : ranks();
    for (std::size_t key = 0; key < keys; ++key) {
      programs_.emplace_back("key" + std::to_string(key));
      for (std::size_t b = 0; b < kBuffers; ++b) {
        programs_.back().buffer("b" + std::to_string(b), kBufferElements * 4, program::MemoryClass::kActivations, true);
      }
    }
    graph_begin_.assign(keys, 0);
  }

  program::CheckedProgram run() {
    for (int i = 0; i < options_.actions; ++i) act();
    std::vector<program::RankProgramId> ids;
    for (program::RankProgramBuilder& p : programs_) ids.push_back(builder_.rank_program(p.take()));
    for (std::size_t rank = 0; rank < ranks(); ++rank)
      builder_.rank(ids[key_of(rank)], static_cast<std::int32_t>(rank));
    for (const char* name : {"tp", "dp", "pp", "line", "world"}) {
      for (const std::vector<std::size_t>& group : groups(name)) {
        std::vector<RankId> members;
        for (const std::size_t rank : group) members.emplace_back(rank);
        builder_.group(roles_.at(name), std::move(members));
      }
    }
    return program::CheckedProgram(builder_.take());
  }

 private:
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_.integer_at(draws_++, bound)); }
  std::size_t pick(std::initializer_list<std::size_t> from) { return *(from.begin() + below(from.size())); }
  std::size_t ranks() const { return tp_ * dp_ * pp_; }
  std::size_t rank_at(std::size_t t, std::size_t d, std::size_t p) const { return t + tp_ * (d + dp_ * p); }
  std::size_t key_of(std::size_t rank) const { return stages_only_ ? rank / (tp_ * dp_) : rank; }

  std::vector<std::vector<std::size_t>> groups(const std::string& role) const {
    std::map<std::size_t, std::vector<std::size_t>> by_rest;
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      const std::size_t t = rank % tp_;
      const std::size_t d = rank / tp_ % dp_;
      const std::size_t p = rank / (tp_ * dp_);
      const std::size_t rest = role == "tp"      ? rank_at(0, d, p)
                               : role == "dp"    ? rank_at(t, 0, p)
                               : role == "world" ? 0
                                                 : rank_at(t, d, 0);
      by_rest[rest].push_back(rank);
    }
    std::vector<std::vector<std::size_t>> result;
    for (auto& [rest, group] : by_rest) result.push_back(std::move(group));
    return result;
  }

  // The keys of a random group of the role; with stages, those of all its groups that share the stage.
  std::vector<std::size_t> group_keys(const std::string& role) {
    const auto all = groups(role);
    std::vector<std::size_t> keys;
    for (const std::size_t rank : all[below(all.size())]) keys.push_back(key_of(rank));
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    return keys;
  }

  void act() {
    const std::size_t what = below(20);
    if (what < 9) {
      add_local(below(programs_.size()));
    } else if (what < 13) {
      add_collective();
    } else if (what < 16) {
      add_message();
    } else if (what < 17) {
      add_ring();
    } else if (what < 18) {
      add_swap();
    } else if (what < 19) {
      add_join(below(programs_.size()));
    } else {
      add_host_read(below(programs_.size()));
    }
    const std::size_t key = below(programs_.size());
    if (below(10) == 0 && programs_[key].call_count() > graph_begin_[key] + 2) {
      const std::uint32_t end = programs_[key].call_count();
      programs_[key].mark_graph({end - 2, end});
      graph_begin_[key] = end;
    }
  }

  std::string name() { return "n" + std::to_string(below(24)); }
  Stream any_stream() { return static_cast<Stream>(below(program::kStreamCount)); }

  program::ViewId view(std::size_t key, std::size_t buffer, std::size_t elements) {
    const std::size_t offset = 4 * below((kBufferElements - elements) / 4 + 1);
    return programs_[key].view(program::BufferId(buffer), static_cast<std::int64_t>(offset * 4), DType::kF32,
                               {static_cast<std::int64_t>(elements)});
  }

  void call(std::size_t key, program::SegmentBuilder& segment, std::vector<program::ViewId> args) {
    program::Tag tag;
    tag.pass = below(6) == 0 ? program::Pass::kOptimizer : program::Pass::kForward;
    tag.microbatch = programs_[key].call_count();
    programs_[key].call(builder_.segment(segment.take()), std::move(args), tag);
  }

  // One to three ops on any streams, the later ones through temps; operands are views of different buffers.
  void add_local(std::size_t key) {
    const std::size_t n = pick({4, 8, 16});
    const program::Shape shape{static_cast<std::int64_t>(n)};
    const std::size_t first = below(kBuffers);
    program::SegmentBuilder s("local");
    const Ref a = s.slot("a", DType::kF32, shape);
    const Ref b = s.slot("b", DType::kF32, shape);
    const Ref c = s.slot("c", DType::kF32, shape);
    const std::string stem = name();
    switch (below(4)) {
      case 0:
        s.op(OpKind::kAdd, any_stream(), stem, {program::in(a), program::in(b), program::out(c)});
        break;
      case 1:
        s.op(OpKind::kAccumulate, any_stream(), stem, {program::in(a), program::acc(b)});
        if (below(8) == 0) {
          Op& indexed = s.op(OpKind::kAccumulate, any_stream(), stem + "i", {program::in(a), program::acc(b)});
          indexed.index_role = roles_.at(below(2) == 0 ? "tp" : "dp");
          indexed.timing_index = true;
        }
        s.op(OpKind::kZeroFill, any_stream(), stem + "z", {program::out(c)});
        break;
      default: {
        const Ref t = s.temp("t", DType::kF32, shape, program::MemoryClass::kActivations);
        s.op(OpKind::kCopy, any_stream(), stem, {program::in(a), program::out(t)});
        s.op(OpKind::kAdd, any_stream(), stem + "b", {program::in(t), program::in(b), program::out(c)});
        s.op(OpKind::kAccumulate, any_stream(), stem + "c", {program::in(t), program::acc(c)});
      }
    }
    call(key, s, {view(key, first, n), view(key, (first + 1) % kBuffers, n), view(key, (first + 2) % kBuffers, n)});
  }

  // Of the whole, in place: empty when the parts are equal, else a part for each member, some of them empty.
  std::vector<std::int64_t> parts_of(std::size_t whole, std::size_t members) {
    if (whole % members == 0 && below(2) == 0) return {};
    std::vector<std::int64_t> counts(members, 0);
    for (std::size_t i = 0; i < whole; ++i) ++counts[below(members)];
    return counts;
  }

  void add_collective() {
    struct Lane {
      const char* role;
      Channel channel;
      Stream stream;
    };
    constexpr std::array<Lane, 4> kLanes{{{"tp", Channel::kMain, Stream::kTp},
                                          {"tp", Channel::kActivation, Stream::kCp},
                                          {"dp", Channel::kMain, Stream::kDp},
                                          {"world", Channel::kMain, Stream::kGather}}};
    const Lane lane = kLanes[below(kLanes.size())];
    const std::size_t n = pick({4, 8, 16});
    const std::string stem = name();
    constexpr std::array<OpKind, 5> kKinds{OpKind::kAllReduce, OpKind::kAllReduce, OpKind::kAllGather,
                                           OpKind::kReduceScatter, OpKind::kBroadcast};
    const OpKind kind = kKinds[below(kKinds.size())];
    const std::size_t members = groups(lane.role).front().size();
    const std::size_t root = below(members);
    std::vector<std::int64_t> counts;
    if (kind == OpKind::kAllGather || kind == OpKind::kReduceScatter) counts = parts_of(n, members);
    for (const std::size_t key : group_keys(lane.role)) {
      program::SegmentBuilder s("collective");
      const Ref a = s.slot("a", DType::kF32, {static_cast<std::int64_t>(n)});
      Op& op = s.op(kind, lane.stream, stem, {program::acc(a)});
      op.group = roles_.at(lane.role);
      op.channel = lane.channel;
      op.member_counts = counts;
      if (kind == OpKind::kBroadcast) op.attributes.count = static_cast<std::int64_t>(root);
      call(key, s, {view(key, below(kBuffers), n)});
    }
  }

  void add_p2p(std::size_t key, const std::string& stem, OpKind kind, Stream stream, std::vector<P2pPart> parts,
               std::size_t n) {
    program::SegmentBuilder s("p2p");
    std::vector<Operand> operands;
    std::vector<program::ViewId> args;
    const std::size_t first = below(kBuffers);
    for (std::uint16_t i = 0; i < parts.size(); ++i) {
      const Ref slot = s.slot("m" + std::to_string(i), DType::kF32, {static_cast<std::int64_t>(n)});
      operands.push_back(parts[i].send ? program::in(slot) : program::out(slot));
      args.push_back(view(key, (first + i) % kBuffers, n));
      parts[i].operand = i;
    }
    Op& op = s.op(kind, stream, stem, {});
    op.operands = operands;
    op.parts = std::move(parts);
    call(key, s, args);
  }

  // A stage and the next one, around the ring; of one random pipeline unless stages share programs.
  std::pair<std::size_t, std::size_t> neighbours() {
    const std::size_t t = below(tp_);
    const std::size_t d = below(dp_);
    const std::size_t p = below(pp_);
    return {key_of(rank_at(t, d, p)), key_of(rank_at(t, d, (p + 1) % pp_))};
  }

  void add_message() {
    if (pp_ < 2) return;
    const auto [here, next] = neighbours();
    const std::size_t n = pick({4, 8, 16});
    const RoleId pp = roles_.at("pp");
    if (below(2) == 0) {
      add_p2p(here, name(), OpKind::kSend, Stream::kSendNext, {{0, true, pp, 1, Channel::kActivation}}, n);
      add_p2p(next, name(), OpKind::kReceive, Stream::kRecvPrev, {{0, false, pp, -1, Channel::kActivation}}, n);
    } else {
      add_p2p(here, name(), OpKind::kReceive, Stream::kRecvNext, {{0, false, pp, 1, Channel::kGradient}}, n);
      add_p2p(next, name(), OpKind::kSend, Stream::kSendPrev, {{0, true, pp, -1, Channel::kGradient}}, n);
    }
  }

  // Every member of a tp group passes a message on.
  void add_ring() {
    if (tp_ < 2) return;
    const std::size_t n = pick({4, 8, 16});
    const RoleId tp = roles_.at("tp");
    for (const std::size_t key : group_keys("tp")) {
      add_p2p(key, name(), OpKind::kExchange, Stream::kEp,
              {{0, true, tp, 1, Channel::kActivation}, {0, false, tp, -1, Channel::kActivation}}, n);
    }
  }

  // One side sends and receives at once, the other side one after the other.
  void add_swap() {
    if (pp_ < 2) return;
    const auto [here, next] = neighbours();
    const std::size_t n = pick({4, 8, 16});
    const RoleId line = roles_.at("line");
    add_p2p(here, name(), OpKind::kExchange, Stream::kEp,
            {{0, true, line, 1, Channel::kActivation}, {0, false, line, 1, Channel::kGradient}}, n);
    add_p2p(next, name(), OpKind::kReceive, Stream::kEp, {{0, false, line, -1, Channel::kActivation}}, n);
    add_p2p(next, name(), OpKind::kSend, Stream::kEp, {{0, true, line, -1, Channel::kGradient}}, n);
  }

  void add_join(std::size_t key) {
    program::SegmentBuilder s("join");
    const std::size_t stream = below(program::kStreamCount);
    const std::size_t other = (stream + 1 + below(program::kStreamCount - 1)) % program::kStreamCount;
    s.op(OpKind::kJoin, static_cast<Stream>(stream), name(), {}).attributes.join_stream = static_cast<Stream>(other);
    call(key, s, {});
  }

  void add_host_read(std::size_t key) {
    program::SegmentBuilder s("read");
    const Ref a = s.slot("a", DType::kF32, {4});
    s.op(OpKind::kHostRead, Stream::kD2h, name(), {program::in(a)});
    call(key, s, {view(key, below(kBuffers), 4)});
  }

  const RandomProgramOptions& options_;
  RandomStream random_;
  std::uint64_t draws_ = 0;
  std::size_t tp_;
  std::size_t dp_;
  std::size_t pp_;
  bool stages_only_;
  program::ProgramBuilder builder_{"random"};
  std::map<std::string, RoleId> roles_;
  std::vector<program::RankProgramBuilder> programs_;
  std::vector<std::uint32_t> graph_begin_;  // by key: end of its last graph
};

}  // namespace

program::CheckedProgram random_program(const RandomProgramOptions& options) { return Generator(options).run(); }

std::int64_t HashedCosts::hashed(const std::string& name, std::uint64_t index, std::uint64_t bound) const {
  return static_cast<std::int64_t>(RandomStream(seed_, name).integer_at(index, bound));
}

PathClass HashedCosts::path_class(std::span<const std::int32_t> devices) const {
  const auto [low, high] = std::minmax_element(devices.begin(), devices.end());
  return *low / 4 == *high / 4 ? 0 : 1;
}

// Twelve divides by every speed used in tests, so that equal costs stay equal.
LocalCost HashedCosts::local_cost(const program::Op& op, std::span<const program::TensorType>,
                                  DeviceClass device) const {
  const Duration time(12 * hashed(op.name, 0, 10) * (device % 2 == 1 ? 3 : 1) / speed.local);
  if (!demands) return time;
  return {time, hashed(op.name, 3, 4) * (kWhole / 3), hashed(op.name, 4, 4) * (kWhole / 3)};
}

TransferCost HashedCosts::with_demands(Duration time, const std::string& name, PathClass path) const {
  TransferCost cost(time);
  if (!demands) return cost;
  cost.multiprocessors = hashed(name, 5, 3) * (kWhole / 7);
  cost.memory = hashed(name, 6, 3) * (kWhole / 5);
  cost.port = hashed(name, 7, 5) * (kWhole / 4);
  cost.nic = path == 1 ? hashed(name, 8, 5) * (kWhole / 4) : 0;
  return cost;
}

TransferCost HashedCosts::collective_cost(const program::Op& op, std::span<const program::TensorType>, PathClass path,
                                          std::int64_t members) const {
  const Duration time(12 * (hashed(op.name, 1, 10) + (path == 1 ? 7 : 0) + members) / speed.collective);
  return with_demands(time, op.name, path);
}

TransferCost HashedCosts::message_cost(Bytes message, PathClass path) const {
  const Duration time(12 * (message.count / 16 + (path == 1 ? 5 : 0)) / speed.message);
  return with_demands(time, "message" + std::to_string(message.count), path);
}

std::span<const SharedLink> HashedCosts::shared_links() const {
  constexpr std::int32_t kNodes = 32;
  if (!demands || !links_.empty()) return links_;
  for (std::int32_t i = 0; i < 2 * kNodes; ++i) {
    links_.push_back({slow_links.contains(i) ? kWhole / 2 : kWhole + kWhole / 2, "node", std::to_string(i)});
  }
  return links_;
}

// A ring: what leaves a node is one NIC's worth per member there; a message: one NIC's worth.
void HashedCosts::append_crossings(std::span<const std::int32_t> devices, Pattern pattern,
                                   std::vector<Crossing>& crossings) const {
  if (!demands || path_class(devices) == 0) return;
  std::map<std::int32_t, std::int64_t> members;
  for (const std::int32_t device : devices) ++members[device / 4];
  if (pattern == Pattern::kMessage) {
    crossings.push_back({static_cast<LinkId>(devices[0] / 4 * 2), kWeightUnit});
    crossings.push_back({static_cast<LinkId>(devices[1] / 4 * 2 + 1), kWeightUnit});
    return;
  }
  for (const auto& [node, count] : members) {
    crossings.push_back({static_cast<LinkId>(2 * node), count * kWeightUnit});
    crossings.push_back({static_cast<LinkId>(2 * node + 1), count * kWeightUnit});
  }
}

Duration HashedCosts::launch_time(const program::Op& op) const {
  return Duration(12 * hashed(op.name, 2, 3) / speed.launch);
}

}  // namespace stepcast::sim
