// Aliasing within one op. Kernels read their inputs while they write, and may go over them more than once, so that what
// an op writes may share no bytes with its other operands. Element by element work may be done in place.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "program/check_parts.h"

namespace stepcast::program {
namespace {

// Whether an op may write operand `written` onto exactly the bytes of operand `other`: no element of the result needs
// an input that an earlier element has overwritten. The gradient of a norm reads a row whole before it writes the row.
bool works_in_place(OpKind kind, std::size_t written, std::size_t other) {
  switch (kind) {
    case OpKind::kCopy:
    case OpKind::kCast:
    case OpKind::kAdd:
    case OpKind::kAccumulate:
      return true;
    case OpKind::kRmsNormBackwardInput:
    case OpKind::kLayerNormBackwardInput:
      return written == 4 && (other == 0 || other == 5);  // dx onto dy or the residual
    case OpKind::kDropoutBackward:
      return written == 2 && other == 0;  // the gradient onto itself
    default:
      return false;
  }
}

// Whether the check looks at operands i and j of an op; each pair of written operands is looked at once.
bool is_judged(const Op& o, std::size_t i, std::size_t j) {
  if (i == j || o.operands[i].access == Access::kRead) return false;
  return j > i || o.operands[j].access == Access::kRead;
}

// What a call of a segment has to be looked at for, whatever its arguments.
struct SegmentPairs {
  bool always_clashes = false;                                 // one slot or temp twice in one op
  std::vector<std::pair<std::uint16_t, std::uint16_t>> slots;  // must not overlap, or only in place; each pair once
};

SegmentPairs pairs_of(const Segment& s) {
  SegmentPairs pairs;
  for (const Op& o : s.ops) {
    for (std::size_t i = 0; i < o.operands.size(); ++i) {
      for (std::size_t j = 0; j < o.operands.size(); ++j) {
        const Operand& a = o.operands[i];
        const Operand& b = o.operands[j];
        if (!is_judged(o, i, j) || a.temp != b.temp) continue;
        if (a.index == b.index && are_other_parts(a, b)) continue;
        if (a.index == b.index) {
          pairs.always_clashes = pairs.always_clashes || !works_in_place(o.kind, i, j);
        } else if (!a.temp) {
          pairs.slots.push_back(std::minmax(a.index, b.index));
        }
      }
    }
  }
  std::sort(pairs.slots.begin(), pairs.slots.end());
  pairs.slots.erase(std::unique(pairs.slots.begin(), pairs.slots.end()), pairs.slots.end());
  return pairs;
}

bool overlap(const View& v, const View& w) {
  return v.buffer == w.buffer && v.byte_offset < w.byte_offset + w.type.bytes() &&
         w.byte_offset < v.byte_offset + v.type.bytes();
}

class AliasCheck {
 public:
  AliasCheck(const Program& p, const RankProgram& r, ProblemList& problems) : p_(p), r_(r), problems_(problems) {}

  void run() {
    std::vector<SegmentPairs> pairs(p_.segments.size());
    std::vector<bool> known(p_.segments.size(), false);
    for (std::uint32_t call = 0; call < r_.calls.size(); ++call) {
      const SegmentId id = r_.calls[call].segment;
      const Segment& s = p_.segments[id];
      if (!known[id.value]) pairs[id.value] = pairs_of(s);
      known[id.value] = true;
      if (!may_clash(pairs[id.value], r_.calls[call])) continue;
      for (std::uint32_t op = 0; op < s.ops.size(); ++op) check_op(s.ops[op], call, op);
    }
  }

 private:
  bool may_clash(const SegmentPairs& pairs, const Call& call) const {
    if (pairs.always_clashes) return true;
    return std::any_of(pairs.slots.begin(), pairs.slots.end(), [&](const auto& pair) {
      return overlap(r_.views[call.args[pair.first]], r_.views[call.args[pair.second]]);
    });
  }

  void check_op(const Op& o, std::uint32_t call, std::uint32_t op) {
    for (std::size_t i = 0; i < o.operands.size(); ++i) {
      for (std::size_t j = 0; j < o.operands.size(); ++j) {
        if (is_judged(o, i, j) && clash(o, call, i, j)) report(o, call, op, i, j);
      }
    }
  }

  // Whether operand i is written where it may not be because of operand j.
  bool clash(const Op& o, std::uint32_t call, std::size_t i, std::size_t j) const {
    const Operand& a = o.operands[i];
    const Operand& b = o.operands[j];
    if (a.temp != b.temp || (a.index == b.index && are_other_parts(a, b))) return false;
    if (a.temp) return a.index == b.index && !works_in_place(o.kind, i, j);
    const View& v = view_of(call, a);
    const View& w = view_of(call, b);
    if (!overlap(v, w)) return false;
    return v.byte_offset != w.byte_offset || v.type.bytes() != w.type.bytes() || !works_in_place(o.kind, i, j);
  }

  // Once per op of a segment: its calls are many and mostly alike.
  void report(const Op& o, std::uint32_t call, std::uint32_t op, std::size_t i, std::size_t j) {
    if (!reported_.emplace(r_.calls[call].segment, op).second) return;
    const Operand& written = o.operands[i];
    const std::string where = written.temp ? "temp " + p_.segments[r_.calls[call].segment].temps[written.index].name
                                           : "buffer " + r_.buffers[view_of(call, written).buffer].name;
    problems_.add(ErrorKind::kInput, "rank program " + r_.name + ", " + op_path(p_, r_, call, op) +
                                         ": writes operand " + std::to_string(i) + " onto bytes of operand " +
                                         std::to_string(j) + ", in " + where);
  }
  const View& view_of(std::uint32_t call, const Operand& o) const { return r_.views[r_.calls[call].args[o.index]]; }

  const Program& p_;
  const RankProgram& r_;
  ProblemList& problems_;
  std::set<std::pair<SegmentId, std::uint32_t>> reported_;
};

}  // namespace

void find_aliased_operands(const Program& p, RankProgramId r, ProblemList& problems) {
  AliasCheck(p, p.rank_programs[r], problems).run();
}

}  // namespace stepcast::program
