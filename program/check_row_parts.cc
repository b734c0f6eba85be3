// Tensors of which ops use one member's part of the rows (ops/op.h). What follows from such an access is derived as if
// the rank had index 0 (resolve.cc, check_reads.cc). That holds at every index where all accesses to those bytes agree:
// parts of one number and one role, or the tensor whole. Parts without a role are the same bytes for all ranks.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "program/check_parts.h"

namespace stepcast::program {
namespace {

// Bytes of a buffer, or a temp whole, that ops use in parts.
struct CutBytes {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::uint16_t parts = 1;
  std::optional<RoleId> role;
};

// One operand as an access to bytes; of one part or, with parts 1, of all of them.
CutBytes access_of(const Op& op, const Operand& o, std::int64_t begin, std::int64_t bytes) {
  return {begin, begin + bytes, o.parts, o.is_part() ? op.index_role : std::nullopt};
}

bool agree(const CutBytes& cut, const CutBytes& access) {
  if (access.end <= cut.begin || cut.end <= access.begin) return true;
  if (access.parts == 1) return access.begin <= cut.begin && cut.end <= access.end;
  return access.begin == cut.begin && access.end == cut.end && access.parts == cut.parts && access.role == cut.role;
}

std::set<SegmentId> segments_with_parts(const Program& p) {
  std::set<SegmentId> found;
  for (std::size_t i = 0; i < p.segments.size(); ++i) {
    const std::vector<Op>& ops = p.segments[SegmentId(i)].ops;
    const auto cuts = [](const Op& op) {
      return std::any_of(op.operands.begin(), op.operands.end(), [](const Operand& o) { return o.is_part(); });
    };
    if (std::any_of(ops.begin(), ops.end(), cuts)) found.insert(SegmentId(i));
  }
  return found;
}

void check_cut_temps(const Segment& s, ProblemList& problems) {
  std::vector<CutBytes> cuts(s.temps.size());
  for (const Op& op : s.ops) {
    for (const Operand& o : op.operands) {
      if (!o.temp || !o.is_part()) continue;
      const CutBytes access = access_of(op, o, 0, 1);
      CutBytes& cut = cuts[o.index];
      if (cut.parts == 1) cut = access;
      if (agree(cut, access)) continue;
      problems.add(ErrorKind::kInput, "segment " + s.label + ", op " + op.name + ": temp " + s.temps[o.index].name +
                                          " is cut into other parts by an earlier op");
    }
  }
}

class RowPartsCheck {
 public:
  RowPartsCheck(const Program& p, const RankProgram& r, ProblemList& problems) : p_(p), r_(r), problems_(problems) {}

  void run(const std::set<SegmentId>& with_parts) {
    for (const Call& call : r_.calls) {
      if (with_parts.contains(call.segment)) collect(call);
    }
    if (cuts_.empty()) return;
    for (std::uint32_t call = 0; call < r_.calls.size(); ++call) check_call(call);
  }

 private:
  CutBytes access_of_slot(const Op& op, const Operand& o, const View& view) const {
    if (!o.is_part() || op.index_role) return access_of(op, o, view.byte_offset, view.type.bytes());
    const std::int64_t size = view.type.bytes() / o.parts;
    const std::int64_t begin = view.byte_offset + part_number(o, 0) * size;
    return {begin, begin + size, 1, std::nullopt};
  }

  void collect(const Call& call) {
    for (const Op& op : p_.segments[call.segment].ops) {
      for (const Operand& o : op.operands) {
        if (o.temp || !o.is_part() || !op.index_role) continue;
        const View& view = r_.views[call.args[o.index]];
        const CutBytes cut = access_of_slot(op, o, view);
        std::vector<CutBytes>& known = cuts_[view.buffer];
        const auto same = [&](const CutBytes& c) { return c.begin == cut.begin && c.end == cut.end; };
        if (std::none_of(known.begin(), known.end(), same)) known.push_back(cut);
      }
    }
  }

  void check_call(std::uint32_t call) {
    const Call& c = r_.calls[call];
    const auto of_interest = [&](ViewId v) { return cuts_.contains(r_.views[v].buffer); };
    if (std::none_of(c.args.begin(), c.args.end(), of_interest)) return;
    const std::vector<Op>& ops = p_.segments[c.segment].ops;
    for (std::uint32_t op = 0; op < ops.size(); ++op) {
      for (const Operand& o : ops[op].operands) {
        if (!o.temp) check_access(call, op, ops[op], o);
      }
    }
  }

  // Once per buffer: what is wrong with one of its accesses is wrong with many.
  void check_access(std::uint32_t call, std::uint32_t number, const Op& op, const Operand& o) {
    const View& view = r_.views[r_.calls[call].args[o.index]];
    const auto cuts = cuts_.find(view.buffer);
    if (cuts == cuts_.end()) return;
    const CutBytes access = access_of_slot(op, o, view);
    const auto fits = [&](const CutBytes& cut) { return agree(cut, access); };
    if (std::all_of(cuts->second.begin(), cuts->second.end(), fits)) return;
    if (!reported_.insert(view.buffer).second) return;
    problems_.add(ErrorKind::kInput, "rank program " + r_.name + ", " + op_path(p_, r_, call, number) +
                                         ": accesses bytes of buffer " + r_.buffers[view.buffer].name +
                                         " that another op cuts into other parts");
  }

  const Program& p_;
  const RankProgram& r_;
  ProblemList& problems_;
  std::map<BufferId, std::vector<CutBytes>> cuts_;
  std::set<BufferId> reported_;
};

}  // namespace

void find_mixed_row_parts(const Program& p, ProblemList& problems) {
  const std::set<SegmentId> with_parts = segments_with_parts(p);
  if (with_parts.empty()) return;
  for (const SegmentId s : with_parts) check_cut_temps(p.segments[s], problems);
  for (const RankProgram& r : p.rank_programs) RowPartsCheck(p, r, problems).run(with_parts);
}

}  // namespace stepcast::program
