// Roles and the groups behind them: that a rank is in the groups its program names, and that an op with an index role
// divides its tensors into as many parts as the group has members.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "program/check_parts.h"
#include "program/hasher.h"
#include "program/ops/rules.h"

namespace stepcast::program {
namespace {

std::vector<bool> used_segments(const Program& p, const RankProgram& r) {
  std::vector<bool> used(p.segments.size(), false);
  for (const Call& call : r.calls) used[call.segment.value] = true;
  return used;
}

void add_roles_of(const ParameterShard& shard, std::vector<bool>& used) {
  for (const ShardBlock& block : shard.blocks) {
    if (block.rows.role) used[block.rows.role->value] = true;
    if (block.cols.role) used[block.cols.role->value] = true;
  }
  if (shard.slice) used[shard.slice->role.value] = true;
}

std::vector<bool> used_roles(const Program& p, const RankProgram& r) {
  const std::vector<bool> segments = used_segments(p, r);
  std::vector<bool> used(p.roles.size(), false);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (!segments[i]) continue;
    for (const Op& op : p.segments[SegmentId(i)].ops) {
      if (op.group) used[op.group->value] = true;
      if (op.index_role) used[op.index_role->value] = true;
      if (op.sample_role) used[op.sample_role->value] = true;
      for (const P2pPart& part : op.parts) used[part.role.value] = true;
    }
  }
  for (const ParameterShard& shard : r.shards) add_roles_of(shard, used);
  return used;
}

// Parts that an op divides a tensor into, of which it uses that of its rank's index; 0 when it divides none.
std::int64_t parts_of(const Segment& s, const Op& op) {
  if (!op.index_role) return 0;
  for (const Operand& o : op.operands) {
    if (o.is_part()) return o.parts;
  }
  if (op.kind == OpKind::kSumSquares || op.kind == OpKind::kAllReduce) return op.attributes.count;
  const auto rows = [&](std::size_t i) { return s.type_of(op.operands[i]).shape.extent(0); };
  if (op.kind == OpKind::kOwnRows) return rows(0) / rows(1);
  if (op.kind == OpKind::kShareAttentionForward || op.kind == OpKind::kShareAttentionBackward) {
    const AttentionOperands at = attention_operands(op.kind);
    const std::int64_t parts = rows(at.keys) / rows(at.queries);
    return parts > 1 ? parts : 0;  // one member's keys fit any group
  }
  if (op.kind != OpKind::kAdam) return 0;
  const auto elements = [&](std::size_t i) { return s.type_of(op.operands[i]).shape.elements(); };
  std::int64_t most = std::max(elements(0), elements(4));
  if (op.operands.size() > 5) most = std::max(most, elements(5));
  const std::int64_t parts = most / elements(2);
  return parts > 1 ? parts : 0;  // tensors of the own part alone fit any group
}

}  // namespace

std::vector<GroupClass> classify_groups(const Program& p) {
  std::vector<std::uint32_t> program_of;  // by rank: read many times, hence close together
  program_of.reserve(p.ranks.size());
  for (const Rank& rank : p.ranks) program_of.push_back(rank.program.value);
  std::vector<GroupClass> classes;
  std::unordered_multimap<std::uint64_t, std::size_t> known;  // by hash of role and programs; never iterated
  std::vector<bool> seen;
  for (std::size_t g = 0; g < p.groups.size(); ++g) {
    const Group& group = p.groups[GroupId(g)];
    Hasher h;
    h.word(group.role.value);
    for (const RankId rank : group.members) h.word(program_of[rank.value]);
    const auto alike = [&](const GroupClass& c) {
      return c.role == group.role &&
             std::equal(c.members.begin(), c.members.end(), group.members.begin(), group.members.end(),
                        [&](RankProgramId program, RankId rank) { return program.value == program_of[rank.value]; });
    };
    auto [at, end] = known.equal_range(h.value());
    while (at != end && !alike(classes[at->second])) ++at;
    if (at != end) {
      classes[at->second].groups.push_back(GroupId(g));
      continue;
    }
    known.emplace(h.value(), classes.size());
    GroupClass c{group.role, {}, {}, {GroupId(g)}};
    c.members.reserve(group.members.size());
    seen.assign(p.rank_programs.size(), false);
    for (const RankId rank : group.members) {
      const std::uint32_t program = program_of[rank.value];
      if (!seen[program]) c.distinct.push_back(static_cast<std::uint32_t>(c.members.size()));
      seen[program] = true;
      c.members.push_back(RankProgramId(program));
    }
    classes.push_back(std::move(c));
  }
  return classes;
}

GroupSizes group_sizes(const Program& p, const std::vector<GroupClass>& classes) {
  GroupSizes sizes(p.rank_programs.size(), std::vector<std::vector<std::int64_t>>(p.roles.size()));
  for (const GroupClass& c : classes) {
    const auto size = static_cast<std::int64_t>(c.members.size());
    for (const std::uint32_t member : c.distinct) {
      std::vector<std::int64_t>& known = sizes[c.members[member].value][c.role.value];
      const auto at = std::lower_bound(known.begin(), known.end(), size);
      if (at == known.end() || *at != size) known.insert(at, size);
    }
  }
  return sizes;
}

void find_missing_memberships(const Program& p, ProblemList& problems) {
  std::vector<std::vector<std::size_t>> used(p.rank_programs.size());
  for (std::size_t r = 0; r < used.size(); ++r) {
    const std::vector<bool> roles = used_roles(p, p.rank_programs[RankProgramId(r)]);
    for (std::size_t role = 0; role < roles.size(); ++role) {
      if (roles[role]) used[r].push_back(role);
    }
  }
  for (std::size_t i = 0; i < p.ranks.size(); ++i) {
    const Rank& rank = p.ranks[RankId(i)];
    for (const std::size_t role : used[rank.program.value]) {
      if (rank.memberships[role]) continue;
      problems.add(ErrorKind::kInput, "rank " + std::to_string(i) + ": its program uses role " +
                                          p.roles[RoleId(role)].name + ", of which it is in no group");
    }
  }
}

void find_part_problems(const Program& p, const GroupSizes& sizes, ProblemList& problems) {
  for (std::size_t r = 0; r < p.rank_programs.size(); ++r) {
    const RankProgram& program = p.rank_programs[RankProgramId(r)];
    const std::vector<bool> used = used_segments(p, program);
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (!used[i]) continue;
      const Segment& s = p.segments[SegmentId(i)];
      for (const Op& op : s.ops) {
        const std::int64_t parts = parts_of(s, op);
        if (parts == 0) continue;
        for (const std::int64_t members : sizes[r][op.index_role->value]) {
          if (members == parts) continue;
          problems.add(ErrorKind::kInput, "rank program " + program.name + ", segment " + s.label + ", op " + op.name +
                                              ": divides by " + std::to_string(parts) + ", but a group of " +
                                              p.roles[*op.index_role].name + " has " + std::to_string(members) +
                                              " members");
        }
      }
    }
  }
}

}  // namespace stepcast::program
