// Form: what can be judged segment by segment and rank program by rank program, without matching ranks.
#include <algorithm>
#include <map>
#include <set>
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

// A number for the part of a path before the op's name; equal parts have equal numbers.
std::uint64_t prefix_number(const Tag& tag, std::uint64_t label) {
  std::uint64_t h = label + static_cast<std::uint64_t>(tag.pass);
  const auto add = [&h](std::uint64_t part) { h = (h ^ part) * 0x9e3779b97f4a7c15ULL + (h >> 29); };
  add(tag.chunk ? std::uint64_t{*tag.chunk} + 1 : 0);
  add(tag.microbatch ? std::uint64_t{*tag.microbatch} + 1 : 0);
  add(tag.layer ? std::uint64_t{*tag.layer} + 1 : 0);
  return h;
}

// Two ops of one rank program with one path. Calls that may share the path up to the op's name are looked at together.
void check_paths(const Program& p, RankProgramId id, ProblemList& problems) {
  const RankProgram& r = p.rank_programs[id];
  std::vector<std::uint64_t> labels;
  for (const Segment& s : p.segments) labels.push_back(hash_text(s.label));
  std::vector<std::pair<std::uint64_t, std::uint32_t>> calls;
  calls.reserve(r.calls.size());
  for (std::uint32_t call = 0; call < r.calls.size(); ++call) {
    calls.emplace_back(prefix_number(r.calls[call].tag, labels[r.calls[call].segment.value]), call);
  }
  std::sort(calls.begin(), calls.end());
  struct Named {
    std::string_view name;
    std::uint32_t call, op;
  };
  std::vector<Named> names;
  for (std::size_t first = 0, last = 0; first < calls.size(); first = last) {
    names.clear();
    for (last = first; last < calls.size() && calls[last].first == calls[first].first; ++last) {
      const std::vector<Op>& ops = p.segments[r.calls[calls[last].second].segment].ops;
      for (std::uint32_t i = 0; i < ops.size(); ++i) names.push_back({ops[i].name, calls[last].second, i});
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

  void run() {
    const RankProgram& r = p_.rank_programs[id_];
    for (std::uint32_t op = 0; op < res_.op_count(); ++op) {
      const Op& o = op_at(p_, r, res_, op);
      if (o.group) check(op, o, {{o.group->value, o.channel, Use::kCollective}, 0, 0});
      for (const P2pPart& part : o.parts) {
        const Lane lane{part.role.value, part.channel, part.send ? Use::kSend : Use::kReceive};
        for (const std::int64_t size : sizes_[part.role.value]) {
          const std::int64_t remainder = part.offset % size;
          check(op, o, {lane, size, remainder < 0 ? remainder + size : remainder});
        }
      }
    }
  }

 private:
  enum class Use : std::uint8_t { kCollective, kSend, kReceive };
  using Lane = std::tuple<std::uint32_t, Channel, Use>;      // role, channel, use
  using Key = std::tuple<Lane, std::int64_t, std::int64_t>;  // lane, group size, peer's offset in it

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

void find_form_problems(const Program& p, const std::vector<Resolution>& resolutions, const GroupSizes& sizes,
                        ProblemList& problems) {
  for (std::size_t i = 0; i < p.rank_programs.size(); ++i) {
    check_paths(p, RankProgramId(i), problems);
    StreamCheck(p, RankProgramId(i), resolutions[i], sizes, problems).run();
  }
}

}  // namespace stepcast::program
