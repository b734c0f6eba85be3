// Structure: what must hold before any other check may follow an index or compute a size.
#include <algorithm>
#include <set>

#include "base/parallel.h"
#include "program/check_parts.h"
#include "program/ops/operand_rules.h"

namespace stepcast::program {
namespace {

class StructureCheck {
 public:
  StructureCheck(const Program& p, ProblemList& problems) : p_(p), problems_(problems) {}

  void check_segments() {
    for (std::size_t i = 0; i < p_.segments.size(); ++i) check_segment(SegmentId(i));
  }

  void check_names_and_ranks() {
    check_names();
    where_.clear();
    const std::size_t before = problems_.problems().size();
    for (std::size_t i = 0; i < p_.groups.size(); ++i) check_group(GroupId(i));
    // Every place in a group is known to its rank. Where ranks know of no more places than there are, each of their
    // entries is one of those.
    const bool agree = problems_.problems().size() == before && places_in_groups() == known_places();
    for (std::size_t i = 0; i < p_.ranks.size(); ++i) check_rank(RankId(i), agree);
  }

  void check_rank_program(RankProgramId id) {
    const RankProgram& r = p_.rank_programs[id];
    const std::string name = "rank program " + r.name;
    for (const Buffer& buffer : r.buffers) {
      if (buffer.bytes >= 0 && buffer.bytes < (std::int64_t{1} << 62)) continue;
      where_ = name + ", buffer " + buffer.name;
      fail("its size is out of range");
    }
    where_ = name;
    for (std::size_t i = 0; i < r.views.size(); ++i) {
      item_ = {", view ", i};
      check_view(r, r.views[ViewId(i)]);
    }
    for (std::size_t i = 0; i < r.calls.size(); ++i) {
      item_ = {", call ", i};
      check_call(r, r.calls[i]);
    }
    item_ = {};
    where_ = name + ", graphs";
    std::uint32_t end = 0;
    for (const CallRange& range : r.graphs) {
      require(range.begin >= end && range.begin < range.end && range.end <= r.calls.size(),
              "ranges must be disjoint, ascending and within the calls");
      end = std::max(end, range.end);
    }
    for (std::size_t i = 0; i < r.shards.size(); ++i) {
      where_ = name + ", shard " + std::to_string(i);
      check_shard(r, r.shards[i]);
    }
    where_ = name + ", loss";
    if (r.loss) check_loss_view(r, *r.loss);
  }

 private:
  void fail(const std::string& message) {
    const std::string item = item_.what == nullptr ? "" : std::string(item_.what) + std::to_string(item_.number);
    problems_.add(ErrorKind::kInput, where_ + item + ": " + message);
  }
  void require(bool holds, const char* message) {
    if (!holds) fail(message);
  }
  void check_role(RoleId role) { require(role.value < p_.roles.size(), "names a role that does not exist"); }

  void check_type(const TensorType& t) {
    if (!has_sound_size(t)) fail("has " + describe(t) + ", expected extents of at least 1 and fewer than 2^62 bytes");
    for (const Dim& dim : t.shape.dims) {
      if (dim.symbol) require(dim.symbol->value < p_.symbols.size(), "names a symbol that does not exist");
    }
  }

  void check_operand_part(const TensorType& whole, const Operand& o) {
    require(o.parts > 1 && o.before < o.parts, "an operand is no part of as many as it says");
    const Dim& rows = whole.shape.dims[0];
    const bool divides = whole.shape.rank > 0 && !rows.symbol && rows.bound % std::max<std::int64_t>(1, o.parts) == 0;
    if (!divides) fail(describe(whole) + " has no rows to cut into " + std::to_string(o.parts) + " parts");
  }

  void check_op(const Segment& s, const Op& op) {
    for (const Operand& o : op.operands) {
      const bool exists = o.index < (o.temp ? s.temps.size() : s.slots.size());
      require(exists, "an operand names no slot or temp");
      if (exists && o.names_part()) check_operand_part(s.whole_type_of(o), o);
    }
    if (op.group) check_role(*op.group);
    if (op.index_role) check_role(*op.index_role);
    if (op.sample_role) check_role(*op.sample_role);
    for (const P2pPart& part : op.parts) {
      check_role(part.role);
      require(part.operand < op.operands.size(), "a part names an operand that does not exist");
    }
    if (op.symbol) require(op.symbol->value < p_.symbols.size(), "sets a symbol that does not exist");
  }

  void check_segment(SegmentId id) {
    const Segment& s = p_.segments[id];
    const std::string name = "segment " + std::to_string(id.value) + " (" + s.label + ")";
    for (const Slot& slot : s.slots) {
      where_ = name + ", slot " + slot.name;
      check_type(slot.type);
    }
    for (const Temp& temp : s.temps) {
      where_ = name + ", temp " + temp.name;
      check_type(temp.type);
    }
    for (const Op& op : s.ops) {
      where_ = name + ", op " + op.name;
      check_op(s, op);
    }
  }

  void check_view(const RankProgram& r, const View& view) {
    const std::size_t before = problems_.problems().size();
    check_type(view.type);
    if (view.buffer.value >= r.buffers.size()) fail("names a buffer that does not exist");
    if (problems_.problems().size() != before) return;
    const std::int64_t size = r.buffers[view.buffer].bytes;
    const std::int64_t bytes = view.type.bytes();
    if (view.byte_offset < 0 || bytes > size || view.byte_offset > size - bytes) {
      fail(std::to_string(bytes) + " bytes at " + std::to_string(view.byte_offset) + " leave buffer " +
           r.buffers[view.buffer].name + " of " + std::to_string(size));
    }
    require(view.byte_offset % size_of(view.type.dtype) == 0, "its offset is no multiple of its element size");
  }

  void check_call(const RankProgram& r, const Call& call) {
    if (call.segment.value >= p_.segments.size()) return fail("names a segment that does not exist");
    const Segment& s = p_.segments[call.segment];
    if (call.args.size() != s.slots.size()) {
      return fail(std::to_string(call.args.size()) + " arguments for the " + std::to_string(s.slots.size()) +
                  " slots of segment " + s.label);
    }
    for (std::size_t i = 0; i < call.args.size(); ++i) {
      if (call.args[i].value >= r.views.size()) {
        fail("argument " + std::to_string(i) + " is a view that does not exist");
      } else if (const TensorType& type = r.views[call.args[i]].type; type != s.slots[i].type) {
        fail("argument " + std::to_string(i) + " is " + describe(type) + ", but slot " + s.slots[i].name +
             " of segment " + s.label + " is " + describe(s.slots[i].type));
      }
    }
  }

  void check_shard(const RankProgram& r, const ParameterShard& shard) {
    require(shard.parameter.value < p_.parameters.size(), "names a parameter that does not exist");
    if (shard.buffer.value >= r.buffers.size()) {
      fail("names a buffer that does not exist");
    } else {
      require(r.buffers[shard.buffer].persistent, "its buffer is not persistent");
      require(shard.byte_offset >= 0 && shard.byte_offset <= r.buffers[shard.buffer].bytes,
              "starts outside its buffer");
    }
    for (const ShardBlock& block : shard.blocks) {
      for (const AxisRule& axis : {block.rows, block.cols}) {
        if (axis.role) check_role(*axis.role);
        require(axis.begin >= 0 && axis.count >= 0, "a block has a negative extent");
      }
    }
    if (!shard.slice) return;
    check_role(shard.slice->role);
    require(shard.slice->chunk >= 1, "the chunk of its slice must be at least 1");
    require(shard.slice->offset >= 0, "the offset of its slice is negative");
  }

  void check_loss_view(const RankProgram& r, ViewId loss) {
    if (loss.value >= r.views.size()) return fail("is a view that does not exist");
    const View& view = r.views[loss];
    const bool persistent = view.buffer.value < r.buffers.size() && r.buffers[view.buffer].persistent;
    require(persistent && view.type == TensorType{DType::kF32, {1}}, "must be a persistent f32 [1]");
  }

  void check_names() {
    std::set<std::string> names;
    for (const Role& role : p_.roles) {
      where_ = "role " + role.name;
      require(names.insert(role.name).second, "the name is used twice");
    }
    names.clear();
    for (const Parameter& parameter : p_.parameters) {
      where_ = "parameter " + parameter.name;
      require(names.insert(parameter.name).second, "the name is used twice");
      require(has_sound_size({DType::kF64, {parameter.rows, parameter.cols}}),
              "its extents must be above 0, and fewer than 2^59 elements");
    }
  }

  void check_group(GroupId id) {
    const Group& group = p_.groups[id];
    item_ = {"group ", id.value};
    check_role(group.role);
    require(!group.members.empty(), "has no members");
    for (std::size_t i = 0; i < group.members.size(); ++i) {
      if (group.members[i].value >= p_.ranks.size()) {
        fail("names a rank that does not exist");
        continue;
      }
      const auto& memberships = p_.ranks[group.members[i]].memberships;
      const bool agrees = group.role.value < memberships.size() && memberships[group.role.value] &&
                          *memberships[group.role.value] == Membership{id, static_cast<std::uint32_t>(i)};
      if (!agrees)
        fail("rank " + std::to_string(group.members[i].value) + " does not know that it is member " +
             std::to_string(i));
    }
  }

  std::size_t places_in_groups() const {
    std::size_t places = 0;
    for (const Group& group : p_.groups) places += group.members.size();
    return places;
  }
  std::size_t known_places() const {
    std::size_t places = 0;
    for (const Rank& rank : p_.ranks) {
      for (const MaybeMembership& m : rank.memberships) places += m ? 1 : 0;
    }
    return places;
  }

  void check_rank(RankId id, bool memberships_agree) {
    const Rank& rank = p_.ranks[id];
    item_ = {"rank ", id.value};
    require(rank.program.value < p_.rank_programs.size(), "names a rank program that does not exist");
    require(rank.memberships.size() == p_.roles.size(), "must have one membership entry per role");
    if (memberships_agree) return;
    for (std::size_t role = 0; role < rank.memberships.size(); ++role) {
      const MaybeMembership& m = rank.memberships[role];
      if (!m) continue;
      const bool agrees = m->group.value < p_.groups.size() && p_.groups[m->group].role.value == role &&
                          m->index < p_.groups[m->group].members.size() && p_.groups[m->group].members[m->index] == id;
      require(agrees, "its membership does not agree with the group");
    }
  }

  const Program& p_;
  ProblemList& problems_;
  // Where a problem is: text, and a numbered item of it. The text of an item is made only for a problem.
  struct Item {
    const char* what = nullptr;
    std::size_t number = 0;
  };
  std::string where_;
  Item item_;
};

}  // namespace

void find_structure_problems(const Program& p, ProblemList& problems) {
  StructureCheck check(p, problems);
  check.check_segments();
  std::vector<ProblemList> own(p.rank_programs.size());
  parallel_for(own.size(), is_large(p),
               [&](std::size_t i) { StructureCheck(p, own[i]).check_rank_program(RankProgramId(i)); });
  for (const ProblemList& found : own) {
    for (const Problem& problem : found.problems()) problems.add(problem);
  }
  check.check_names_and_ranks();
}

}  // namespace stepcast::program
