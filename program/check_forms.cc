// Form: what can be judged segment by segment and rank program by rank program, without matching ranks.
#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "base/random.h"
#include "program/check_parts.h"
#include "program/ops/rules.h"

namespace stepcast::program {
namespace {

void check_segment_ops(const Segment& s, ProblemList& problems) {
  std::set<std::string> names;
  std::vector<TensorType> types;
  // Paths join labels and names with dots: a dot inside one could make two ops look like one.
  if (s.label.find('.') != std::string::npos) {
    problems.add(ErrorKind::kInput,
                 "segment " + s.label + ": its label has a dot, which separates the parts of a path");
  }
  for (const Op& op : s.ops) {
    types.clear();
    for (const Operand& o : op.operands) types.push_back(s.type_of(o));
    const std::string where = "segment " + s.label + ", op " + op.name + ": ";
    const std::string problem = check_operands(op, types);
    if (!problem.empty()) problems.add(ErrorKind::kInput, where + problem);
    if (op.name.empty()) problems.add(ErrorKind::kInput, where + "an op needs a name");
    if (op.name.find('.') != std::string::npos)
      problems.add(ErrorKind::kInput, where + "its name has a dot, which separates the parts of a path");
    if (op.symbol) problems.add(ErrorKind::kUnsupported, where + "sets a symbol; symbols are not measured yet");
    if (!names.insert(op.name).second) problems.add(ErrorKind::kInput, where + "the name is used twice in the segment");
  }
}

// A call and a number for the part of its paths before the op's name.
using NumberedCall = std::pair<std::uint64_t, std::uint32_t>;

// A number for the part of a path before the op's name; equal parts have equal numbers.
std::uint64_t prefix_number(const Tag& tag, std::uint64_t label) {
  std::uint64_t h = label + static_cast<std::uint64_t>(tag.pass);
  const auto add = [&h](std::uint64_t part) { h = (h ^ part) * 0x9e3779b97f4a7c15ULL + (h >> 29); };
  add(tag.chunk ? std::uint64_t{*tag.chunk} + 1 : 0);
  add(tag.microbatch ? std::uint64_t{*tag.microbatch} + 1 : 0);
  add(tag.layer ? std::uint64_t{*tag.layer} + 1 : 0);
  return h;
}

// Which segments share an op name. Asked for the same few pairs again and again.
class SharedNames {
 public:
  explicit SharedNames(const Program& p) : p_(p) {
    constexpr std::size_t kMostSegments = 1024;  // bounds the table
    if (p.segments.size() <= kMostSegments) known_.assign(p.segments.size() * p.segments.size(), kUnknown);
  }

  // Whether any two of the calls do.
  bool any(const RankProgram& r, std::span<const NumberedCall> calls) {
    constexpr std::size_t kFew = 8;  // pairs of more are not worth it: their names are then compared as they are
    if (calls.size() > kFew) return true;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      for (std::size_t j = i + 1; j < calls.size(); ++j) {
        if (share(r.calls[calls[i].second].segment, r.calls[calls[j].second].segment)) return true;
      }
    }
    return false;
  }

 private:
  static constexpr std::int8_t kUnknown = -1;

  bool share(SegmentId a, SegmentId b) {
    if (known_.empty()) return compare(a, b);
    std::int8_t& known = known_[a.value * p_.segments.size() + b.value];
    if (known == kUnknown) known = compare(a, b) ? 1 : 0;
    return known == 1;
  }
  bool compare(SegmentId a, SegmentId b) const {
    const std::vector<Op>& others = p_.segments[b].ops;
    return std::any_of(p_.segments[a].ops.begin(), p_.segments[a].ops.end(), [&](const Op& op) {
      return std::any_of(others.begin(), others.end(), [&](const Op& other) { return other.name == op.name; });
    });
  }

  const Program& p_;
  std::vector<std::int8_t> known_;
};

// Finds numbers that come again: open addressing, since nearly none does.
class SeenNumbers {
 public:
  explicit SeenNumbers(std::size_t most) : places_(16) {
    while (places_.size() < 2 * most) places_.resize(2 * places_.size());
  }
  // The position given with an equal number before, or `position` itself.
  std::uint32_t first_of(std::uint64_t number, std::uint32_t position) {
    const std::size_t mask = places_.size() - 1;
    std::size_t at = (number ^ (number >> 32)) * 0x9e3779b97f4a7c15ULL >> 32 & mask;
    while (places_[at].position_plus_one != 0 && places_[at].number != number) at = (at + 1) & mask;
    if (places_[at].position_plus_one == 0) places_[at] = {number, position + 1};
    return places_[at].position_plus_one - 1;
  }

 private:
  struct Place {
    std::uint64_t number = 0;
    std::uint32_t position_plus_one = 0;
  };
  std::vector<Place> places_;
};

// Calls that may share a path with another call, ascending by number, then by position. Calls of one number mostly
// follow each other (the segments of an attention block); such a run is fine if its segments have no name in common and
// no other run has its number.
std::vector<NumberedCall> doubtful_calls(const Program& p, const RankProgram& r, SharedNames& shared) {
  std::vector<std::uint64_t> labels;
  labels.reserve(p.segments.size());
  for (const Segment& s : p.segments) labels.push_back(hash_text(s.label));
  std::vector<NumberedCall> calls;
  std::vector<std::uint32_t> runs;  // first call of each
  calls.reserve(r.calls.size());
  for (std::uint32_t call = 0; call < r.calls.size(); ++call) {
    calls.emplace_back(prefix_number(r.calls[call].tag, labels[r.calls[call].segment.value]), call);
    if (call == 0 || calls[call].first != calls[call - 1].first) runs.push_back(call);
  }
  SeenNumbers seen(runs.size());
  std::vector<bool> doubtful(runs.size(), false);
  for (std::uint32_t run = 0; run < runs.size(); ++run) {
    const std::uint32_t end = run + 1 < runs.size() ? runs[run + 1] : static_cast<std::uint32_t>(calls.size());
    const std::uint32_t first = seen.first_of(calls[runs[run]].first, run);
    doubtful[run] = first != run || shared.any(r, std::span(calls).subspan(runs[run], end - runs[run]));
    if (first != run) doubtful[first] = true;
  }
  std::vector<NumberedCall> result;
  runs.push_back(static_cast<std::uint32_t>(calls.size()));
  for (std::size_t run = 0; run < doubtful.size(); ++run) {
    if (doubtful[run]) result.insert(result.end(), calls.begin() + runs[run], calls.begin() + runs[run + 1]);
  }
  std::sort(result.begin(), result.end());
  return result;
}

// Two ops of one rank program with one path. Calls that may share the path up to the op's name are looked at together.
void check_paths(const Program& p, RankProgramId id, ProblemList& problems) {
  const RankProgram& r = p.rank_programs[id];
  SharedNames shared(p);
  const std::vector<NumberedCall> calls = doubtful_calls(p, r, shared);
  struct Named {
    std::string_view name;
    std::uint32_t call, op;
  };
  std::vector<Named> names;
  for (std::size_t first = 0, last = 0; first < calls.size(); first = last) {
    for (last = first; last < calls.size() && calls[last].first == calls[first].first;) ++last;
    const auto alike = std::span<const NumberedCall>(calls).subspan(first, last - first);
    if (!shared.any(r, alike)) continue;
    names.clear();
    for (const auto& [number, call] : alike) {
      const std::vector<Op>& ops = p.segments[r.calls[call].segment].ops;
      for (std::uint32_t i = 0; i < ops.size(); ++i) names.push_back({ops[i].name, call, i});
    }
    std::sort(names.begin(), names.end(), [](const Named& a, const Named& b) { return a.name < b.name; });
    for (std::size_t i = 1; i < names.size(); ++i) {
      if (names[i].name != names[i - 1].name || names[i].call == names[i - 1].call) continue;
      const std::string path = op_path(p, r, names[i].call, names[i].op);
      if (path != op_path(p, r, names[i - 1].call, names[i - 1].op)) continue;
      if (i > 1 && names[i - 2].name == names[i].name) continue;  // said already
      problems.add(ErrorKind::kInput, "rank program " + r.name + ": two ops have the path " + path);
    }
  }
}

// One stream per communicator: collectives by (role, channel), messages by (role, channel, peer, direction). Receivers
// pair messages by arrival, so that two streams to one peer would race. Offsets that differ by the size of the group
// name one peer.
class StreamCheck {
 public:
  StreamCheck(const Program& p, RankProgramId id, const Resolution& res, const GroupSizes& sizes, ProblemList& problems)
      : p_(p), id_(id), res_(res), sizes_(sizes[id.value]), problems_(problems) {}

  // What an op says of its streams is the segment's: the first call of each segment says it all.
  void run() {
    const RankProgram& r = p_.rank_programs[id_];
    std::vector<bool> seen(p_.segments.size(), false);
    for (std::uint32_t call = 0; call < r.calls.size(); ++call) {
      const SegmentId segment = r.calls[call].segment;
      if (seen[segment.value]) continue;
      seen[segment.value] = true;
      std::uint32_t flat = res_.first_op[call];
      for (const Op& o : p_.segments[segment].ops) check_op(flat++, o);
    }
  }

 private:
  enum class Use : std::uint8_t { kCollective, kSend, kReceive };
  using Lane = std::tuple<std::uint32_t, Channel, Use>;      // role, channel, use
  using Key = std::tuple<Lane, std::int64_t, std::int64_t>;  // lane, group size, peer's offset in it

  void check_op(std::uint32_t op, const Op& o) {
    if (o.group) check(op, o, {{o.group->value, o.channel, Use::kCollective}, 0, 0});
    for (const P2pPart& part : o.parts) {
      const Lane lane{part.role.value, part.channel, part.send ? Use::kSend : Use::kReceive};
      for (const std::int64_t size : sizes_[part.role.value]) {
        check(op, o, {lane, size, member_position(part.offset, size)});
      }
    }
  }

  void check(std::uint32_t op, const Op& o, const Key& key) {
    const auto [it, is_new] = first_.emplace(key, std::pair(o.stream, op));
    const Lane& lane = std::get<0>(key);
    if (is_new || it->second.first == o.stream || !reported_.insert(lane).second) return;
    const bool message = std::get<2>(lane) != Use::kCollective;
    const std::string role = p_.roles[RoleId(std::get<0>(lane))].name;
    problems_.add(ErrorKind::kInput, describe_op(p_, id_, res_, op) + ": uses " + role + " on channel " +
                                         std::string(to_string(std::get<1>(lane))) + " on stream " +
                                         std::string(to_string(o.stream)) + ", but " +
                                         path_of(p_, id_, res_, it->second.second) + " on stream " +
                                         std::string(to_string(it->second.first)) + "; a channel lives on one stream" +
                                         (message ? " per peer and direction" : ""));
  }

  const Program& p_;
  RankProgramId id_;
  const Resolution& res_;
  const std::vector<std::vector<std::int64_t>>& sizes_;  // by RoleId
  ProblemList& problems_;
  std::map<Key, std::pair<Stream, std::uint32_t>> first_;
  std::set<Lane> reported_;
};

}  // namespace

void find_operand_problems(const Program& p, ProblemList& problems) {
  for (const Segment& s : p.segments) check_segment_ops(s, problems);
}

void find_form_problems(const Program& p, RankProgramId r, const Resolution& res, const GroupSizes& sizes,
                        ProblemList& problems) {
  check_paths(p, r, problems);
  StreamCheck(p, r, res, sizes, problems).run();
}

}  // namespace stepcast::program
