// Matching of communication across the members of each class of groups.
#include "program/check_match.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "program/check_parts.h"
#include "program/ops/operand_rules.h"

namespace stepcast::program {
namespace {

std::size_t key_of(RoleId role, Channel channel) {
  return static_cast<std::size_t>(role.value) * kChannelCount + static_cast<std::size_t>(channel);
}

CommunicationLists list_communication(const Program& p, const RankProgram& r, const Resolution& res) {
  CommunicationLists lists;
  lists.collectives.resize(p.roles.size() * kChannelCount);
  lists.parts.resize(p.roles.size() * kChannelCount);
  std::vector<bool> silent(p.segments.size(), false);  // seen to have no communication
  for (std::uint32_t call = 0; call < r.calls.size(); ++call) {
    const SegmentId id = r.calls[call].segment;
    if (silent[id.value]) continue;
    silent[id.value] = true;
    std::uint32_t flat = res.first_op[call];
    for (const Op& op : p.segments[id].ops) {
      if (op.group || !op.parts.empty()) silent[id.value] = false;
      if (op.group) lists.collectives[key_of(*op.group, op.channel)].push_back(flat);
      for (std::size_t i = 0; i < op.parts.size(); ++i) {
        lists.parts[key_of(op.parts[i].role, op.parts[i].channel)].push_back({flat, static_cast<std::uint16_t>(i)});
      }
      ++flat;
    }
  }
  return lists;
}

// What two matched collectives must have in common.
struct CollectiveForm {
  OpKind kind = OpKind::kAllReduce;
  DType dtype = DType::kF32;
  Reduce reduce = Reduce::kSum;
  std::int64_t root = 0;
  std::int64_t whole = 0;
  const std::vector<std::int64_t>* counts = nullptr;
  std::int32_t multiprocessors = -1;
};

// Elements of all members' parts together, and of the own part; in place there is only the whole.
std::int64_t whole_of(const Segment& s, const Op& op) {
  const std::int64_t elements =
      s.type_of(op.kind == OpKind::kAllGather ? op.operands.back() : op.operands.front()).shape.elements();
  const bool own_part = op.kind == OpKind::kAllReduce && op.attributes.count > 0;
  return own_part ? elements / op.attributes.count : elements;
}
std::optional<std::int64_t> part_of(const Segment& s, const Op& op) {
  if (op.operands.size() < 2) return std::nullopt;
  if (op.kind == OpKind::kAllGather) return s.type_of(op.operands.front()).shape.elements();
  const Shape out = s.type_of(op.operands.back()).shape;
  return out.elements() / column_blocks(s.type_of(op.operands.front()).shape, out);
}

CollectiveForm form_of(const Segment& s, const Op& op) {
  CollectiveForm f;
  f.kind = op.kind;
  f.dtype = s.type_of(op.operands[0]).dtype;
  f.whole = whole_of(s, op);
  f.counts = &op.member_counts;
  f.multiprocessors = op.attributes.multiprocessors;
  if (op.kind == OpKind::kAllReduce || op.kind == OpKind::kReduceScatter) f.reduce = op.attributes.reduce;
  if (op.kind == OpKind::kBroadcast) f.root = op.attributes.count;
  return f;
}

// Empty, or how the two differ.
std::string difference(const CollectiveForm& a, const CollectiveForm& b) {
  if (a.kind != b.kind) return std::string(to_string(a.kind)) + " against " + std::string(to_string(b.kind));
  if (a.dtype != b.dtype) return std::string(to_string(a.dtype)) + " against " + std::string(to_string(b.dtype));
  if (a.reduce != b.reduce) return "another reduction";
  if (a.root != b.root) return "root " + std::to_string(a.root) + " against " + std::to_string(b.root);
  if (a.whole != b.whole) return std::to_string(a.whole) + " elements against " + std::to_string(b.whole);
  if (*a.counts != *b.counts) return "other counts per member";
  if (a.multiprocessors != b.multiprocessors) {
    return std::to_string(a.multiprocessors) + " multiprocessors against " + std::to_string(b.multiprocessors);
  }
  return {};
}

class Matcher {
 public:
  Matcher(const Program& p, const std::vector<Resolution>& resolutions, ProblemList& problems)
      : p_(p), resolutions_(resolutions), problems_(problems) {}

  Matching run(std::vector<GroupClass> classes) {
    for (std::size_t i = 0; i < p_.rank_programs.size(); ++i) {
      result_.lists.push_back(list_communication(p_, p_.rank_programs[RankProgramId(i)], resolutions_[i]));
    }
    result_.classes = std::move(classes);
    for (const GroupClass& c : result_.classes) {
      result_.messages.emplace_back();
      for (int channel = 0; channel < kChannelCount; ++channel) {
        match_channel(c, static_cast<Channel>(channel));
      }
    }
    return std::move(result_);
  }

 private:
  const std::vector<std::uint32_t>& collectives(const GroupClass& c, std::size_t member, Channel channel) const {
    return result_.lists[c.members[member].value].collectives[key_of(c.role, channel)];
  }
  const Segment& segment_of(RankProgramId r, std::uint32_t op) const {
    return p_.segments[p_.rank_programs[r].calls[resolutions_[r.value].call_of[op]].segment];
  }
  const Op& op_of(RankProgramId r, std::uint32_t op) const {
    return op_at(p_, p_.rank_programs[r], resolutions_[r.value], op);
  }
  // "rank 3 F.c0.m0.attn.reduce", the rank being the member's in the class's first group.
  std::string name(const GroupClass& c, std::size_t member, std::uint32_t op) const {
    return rank(c, member) + " " + path_of(p_, c.members[member], resolutions_[c.members[member].value], op);
  }
  std::string rank(const GroupClass& c, std::size_t member) const {
    return "rank " + std::to_string(p_.groups[c.groups[0]].members[member].value);
  }
  void fail(const GroupClass& c, Channel channel, const std::string& message) {
    std::string text =
        "role " + p_.roles[c.role].name + ", channel " + std::string(to_string(channel)) + ": " + message;
    if (c.groups.size() > 1) text += " (and " + std::to_string(c.groups.size() - 1) + " more groups alike)";
    problems_.add(ErrorKind::kInput, std::move(text));
  }

  void match_channel(const GroupClass& c, Channel channel) {
    const std::size_t key = key_of(c.role, channel);
    bool has_collectives = false;
    bool has_messages = false;
    for (const std::uint32_t m : c.distinct) {
      const CommunicationLists& own = result_.lists[c.members[m].value];
      has_collectives = has_collectives || !own.collectives[key].empty();
      has_messages = has_messages || !own.parts[key].empty();
    }
    if (has_collectives) match_collectives(c, channel);
    if (has_messages) match_messages(c, channel);
  }

  void match_collectives(const GroupClass& c, Channel channel) {
    const std::vector<std::uint32_t>& reference = collectives(c, 0, channel);
    bool sizes_fit = true;
    for (const std::uint32_t m : c.distinct) {
      if (sizes_fit) sizes_fit = check_sizes(c, channel, m);
      if (m > 0) compare_collectives(c, channel, m, reference);
    }
    check_own_counts(c, channel);
  }

  // Reports the first collective of a member whose sizes do not fit the group; false when there is one.
  bool check_sizes(const GroupClass& c, Channel channel, std::size_t m) {
    const Op* last = nullptr;
    for (const std::uint32_t op : collectives(c, m, channel)) {
      if (&op_of(c.members[m], op) == last) continue;
      last = &op_of(c.members[m], op);
      const std::string problem = size_problem(c, m, op);
      if (problem.empty()) continue;
      fail(c, channel, name(c, m, op) + ": " + problem);
      return false;
    }
    return true;
  }

  void compare_collectives(const GroupClass& c, Channel channel, std::size_t m,
                           const std::vector<std::uint32_t>& reference) {
    const std::vector<std::uint32_t>& own = collectives(c, m, channel);
    const std::size_t common = std::min(own.size(), reference.size());
    for (std::size_t n = 0; n < common; ++n) {
      if (&op_of(c.members[0], reference[n]) == &op_of(c.members[m], own[n])) continue;  // one op of one segment
      const std::string text =
          difference(form_of(segment_of(c.members[0], reference[n]), op_of(c.members[0], reference[n])),
                     form_of(segment_of(c.members[m], own[n]), op_of(c.members[m], own[n])));
      if (text.empty()) continue;
      return fail(c, channel,
                  "collective " + std::to_string(n) + " disagrees: " + name(c, 0, reference[n]) + " and " +
                      name(c, m, own[n]) + ": " + text);
    }
    if (own.size() == reference.size()) return;
    const bool first_has_more = reference.size() > own.size();
    fail(c, channel,
         rank(c, 0) + " issues " + std::to_string(reference.size()) + " collectives, " + rank(c, m) + " " +
             std::to_string(own.size()) + "; the first without a partner is " +
             (first_has_more ? name(c, 0, reference[common]) : name(c, m, own[common])));
  }

  // Empty, or what is wrong with the sizes of one collective of member m, given the number of members.
  std::string size_problem(const GroupClass& c, std::size_t m, std::uint32_t flat) const {
    const Op& op = op_of(c.members[m], flat);
    const auto members = static_cast<std::int64_t>(c.members.size());
    if (op.kind == OpKind::kBroadcast && op.attributes.count >= members) {
      return "root " + std::to_string(op.attributes.count) + " of a group of " + std::to_string(members);
    }
    if (op.kind == OpKind::kAllToAll) {
      const std::int64_t elements = whole_of(segment_of(c.members[m], flat), op);
      if (elements % members == 0) return {};
      return std::to_string(elements) + " elements are not " + std::to_string(members) + " equal parts";
    }
    if (op.kind != OpKind::kAllGather && op.kind != OpKind::kReduceScatter) return {};
    if (!op.member_counts.empty()) {
      if (op.member_counts.size() == c.members.size()) return {};
      return std::to_string(op.member_counts.size()) + " member counts for a group of " + std::to_string(members);
    }
    const Segment& s = segment_of(c.members[m], flat);
    const std::int64_t whole = whole_of(s, op);
    const std::int64_t part = part_of(s, op).value_or(whole / members);
    if (whole / members == part && whole % members == 0) return {};
    return "the whole is " + std::to_string(whole) + " elements, expected " + std::to_string(members) +
           " members times " + std::to_string(part);
  }

  // With uneven counts each member's own part must be its count.
  void check_own_counts(const GroupClass& c, Channel channel) {
    const std::vector<std::uint32_t>& reference = collectives(c, 0, channel);
    const bool uneven = std::any_of(reference.begin(), reference.end(), [&](std::uint32_t flat) {
      return !op_of(c.members[0], flat).member_counts.empty();
    });
    if (!uneven) return;
    for (std::size_t m = 0; m < c.members.size(); ++m) {
      for (const std::uint32_t flat : collectives(c, m, channel)) {
        const Op& op = op_of(c.members[m], flat);
        if (op.member_counts.size() != c.members.size()) continue;
        const std::optional<std::int64_t> part = part_of(segment_of(c.members[m], flat), op);
        if (!part || *part == op.member_counts[m]) continue;
        fail(c, channel,
             name(c, m, flat) + ": its part is " + std::to_string(*part) + " elements, its member count " +
                 std::to_string(op.member_counts[m]));
        break;
      }
    }
  }

  // Parts of one program's messages, in issue order, by offset to the peer (0 to members - 1).
  using PartsByOffset = std::map<std::uint32_t, std::vector<PartRef>>;
  struct ProgramParts {
    PartsByOffset sends, receives;
  };

  ProgramParts parts_of(const GroupClass& c, Channel channel, RankProgramId program) const {
    ProgramParts parts;
    const auto members = static_cast<std::int64_t>(c.members.size());
    for (const PartRef& ref : result_.lists[program.value].parts[key_of(c.role, channel)]) {
      const P2pPart& part = op_of(program, ref.op).parts[ref.part];
      const auto offset = static_cast<std::uint32_t>(member_position(part.offset, members));
      (part.send ? parts.sends : parts.receives)[offset].push_back(ref);
    }
    return parts;
  }

  static std::span<const PartRef> at_offset(const PartsByOffset& parts, std::uint32_t offset) {
    const auto it = parts.find(offset);
    return it == parts.end() ? std::span<const PartRef>() : std::span(it->second);
  }

  void match_messages(const GroupClass& c, Channel channel) {
    std::map<std::uint32_t, ProgramParts> parts;  // by RankProgramId
    for (const std::uint32_t m : c.distinct) {
      parts.emplace(c.members[m].value, parts_of(c, channel, c.members[m]));
    }
    const auto members = static_cast<std::uint32_t>(c.members.size());
    for (MessageMatch& match : pairs_alike(c, parts)) {
      const auto [sender, receiver] = match.pairs.front();
      const std::uint32_t offset = (receiver + members - sender) % members;
      match_ops(c, channel, at_offset(parts.at(c.members[sender].value).sends, offset),
                at_offset(parts.at(c.members[receiver].value).receives, (members - offset) % members), match);
      result_.messages.back().push_back(std::move(match));
    }
  }

  // The pairs of members with a message on either side, without its ops yet, in the order of each match's first pair.
  static std::vector<MessageMatch> pairs_alike(const GroupClass& c,
                                               const std::map<std::uint32_t, ProgramParts>& parts) {
    const auto members = static_cast<std::uint32_t>(c.members.size());
    std::set<MessagePair> pairs;
    for (std::uint32_t m = 0; m < members; ++m) {
      const ProgramParts& own = parts.at(c.members[m].value);
      for (const auto& [offset, refs] : own.sends) pairs.insert({m, (m + offset) % members});
      for (const auto& [offset, refs] : own.receives) pairs.insert({(m + offset) % members, m});
    }
    std::map<std::array<std::uint32_t, 3>, std::size_t> place;  // by both programs and the distance
    std::vector<MessageMatch> matches;
    for (const MessagePair& pair : pairs) {
      const std::uint32_t distance = (pair.receiver + members - pair.sender) % members;
      const auto [it, is_new] =
          place.try_emplace({c.members[pair.sender].value, c.members[pair.receiver].value, distance}, matches.size());
      if (is_new) matches.emplace_back();
      matches[it->second].pairs.push_back(pair);
    }
    return matches;
  }

  // Pairs the sends of one program with the receives of another. What does not match is reported for the first pair.
  void match_ops(const GroupClass& c, Channel channel, std::span<const PartRef> sends,
                 std::span<const PartRef> receives, MessageMatch& match) {
    const auto [sender, receiver] = match.pairs.front();
    const std::string more = match.pairs.size() > 1 ? " (" + std::to_string(match.pairs.size()) + " pairs alike)" : "";
    const std::size_t common = std::min(sends.size(), receives.size());
    match.ops.reserve(common);
    for (std::size_t n = 0; n < common; ++n) {
      const TensorType sent = part_type(c.members[sender], sends[n]);
      const TensorType received = part_type(c.members[receiver], receives[n]);
      if (sent.dtype != received.dtype || sent.bytes() != received.bytes()) {
        return fail(c, channel,
                    "message " + std::to_string(n) + " disagrees: " + name(c, sender, sends[n].op) + " sends " +
                        describe(sent) + ", " + name(c, receiver, receives[n].op) + " receives " + describe(received) +
                        more);
      }
      match.ops.push_back({sends[n].op, receives[n].op});
    }
    if (sends.size() > common) {
      fail(c, channel,
           name(c, sender, sends[common].op) + ": a send without a receive: " + rank(c, receiver) + " receives " +
               std::to_string(common) + " of " + std::to_string(sends.size()) + " messages" + more);
    } else if (receives.size() > common) {
      fail(c, channel,
           name(c, receiver, receives[common].op) + ": a receive without a send: " + rank(c, sender) + " sends " +
               std::to_string(common) + " of " + std::to_string(receives.size()) + " messages" + more);
    }
  }

  TensorType part_type(RankProgramId r, const PartRef& ref) const {
    const Op& op = op_of(r, ref.op);
    return segment_of(r, ref.op).type_of(op.operands[op.parts[ref.part].operand]);
  }

  const Program& p_;
  const std::vector<Resolution>& resolutions_;
  ProblemList& problems_;
  Matching result_;
};

}  // namespace

Matching match(const Program& p, const std::vector<Resolution>& resolutions, std::vector<GroupClass> classes,
               ProblemList& problems) {
  return Matcher(p, resolutions, problems).run(std::move(classes));
}

}  // namespace stepcast::program
