// Reads before writes. A non-persistent buffer holds nothing until an op writes it; a temp likewise, in each call.
#include <algorithm>
#include <set>

#include "program/check_parts.h"

namespace stepcast::program {
namespace {

// The bytes written so far, as disjoint ranges in order.
class WrittenBytes {
 public:
  bool covers(std::int64_t begin, std::int64_t end) const {
    const auto it = first_ending_at_or_after(begin);
    return it != ranges_.end() && it->first <= begin && end <= it->second;
  }
  void add(std::int64_t begin, std::int64_t end) {
    const auto first = first_ending_at_or_after(begin);
    auto last = first;
    while (last != ranges_.end() && last->first <= end) ++last;
    if (first == last) {
      ranges_.insert(first, {begin, end});
      return;
    }
    const std::pair<std::int64_t, std::int64_t> merged(std::min(begin, first->first),
                                                       std::max(end, std::prev(last)->second));
    const auto at = ranges_.erase(first + 1, last) - 1;
    *at = merged;
  }

 private:
  using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;
  Ranges::const_iterator first_ending_at_or_after(std::int64_t at) const {
    return std::lower_bound(ranges_.begin(), ranges_.end(), at,
                            [](const auto& r, std::int64_t v) { return r.second < v; });
  }
  Ranges::iterator first_ending_at_or_after(std::int64_t at) {
    return std::lower_bound(ranges_.begin(), ranges_.end(), at,
                            [](const auto& r, std::int64_t v) { return r.second < v; });
  }
  Ranges ranges_;
};

// An all_gather in place reads its own part alone, at a position that depends on the rank, and writes the rest.
bool reads_all(const Op& op, const Operand& o) {
  return o.access == Access::kRead || (o.access == Access::kAccumulate && op.kind != OpKind::kAllGather);
}

// An adam with an index role writes its own part of the weight (op.h) and leaves the other members' parts as they are.
bool writes_in_part(const Segment& s, const Op& op, std::size_t i) {
  constexpr std::size_t kMoment = 2;
  constexpr std::size_t kWeight = 5;
  return op.kind == OpKind::kAdam && i == kWeight &&
         s.type_of(op.operands[kWeight]).shape.elements() > s.type_of(op.operands[kMoment]).shape.elements();
}

bool needs_all(const Segment& s, const Op& op, std::size_t i) {
  return reads_all(op, op.operands[i]) || writes_in_part(s, op, i);
}

void check_temps(const Segment& s, ProblemList& problems) {
  std::vector<bool> written(s.temps.size(), false);
  for (const Op& op : s.ops) {
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const Operand& o = op.operands[i];
      if (!o.temp || !needs_all(s, op, i) || written[o.index]) continue;
      problems.add(ErrorKind::kInput, "segment " + s.label + ", op " + op.name + ": reads temp " +
                                          s.temps[o.index].name + " before anything wrote it");
    }
    for (const Operand& o : op.operands) {
      if (o.temp && o.access != Access::kRead) written[o.index] = true;
    }
  }
}

class ReadCheck {
 public:
  ReadCheck(const Program& p, const RankProgram& r, ProblemList& problems)
      : p_(p), r_(r), problems_(problems), written_(r.buffers.size()) {}

  void run() {
    for (std::uint32_t call = 0; call < r_.calls.size(); ++call) {
      const Segment& s = p_.segments[r_.calls[call].segment];
      for (std::uint32_t op = 0; op < s.ops.size(); ++op) check_op(s, call, op);
    }
  }

 private:
  void check_op(const Segment& s, std::uint32_t call, std::uint32_t op) {
    const std::vector<Operand>& operands = s.ops[op].operands;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Operand& o = operands[i];
      if (o.temp || !needs_all(s, s.ops[op], i)) continue;
      const View& view = view_of(call, o);
      if (r_.buffers[view.buffer].persistent || written_[view.buffer.value].covers(view.byte_offset, end_of(view)))
        continue;
      if (!reported_.insert(view.buffer).second) continue;
      problems_.add(ErrorKind::kInput, "rank program " + r_.name + ", " + op_path(p_, r_, call, op) +
                                           ": reads buffer " + r_.buffers[view.buffer].name +
                                           " where nothing wrote it (bytes " + std::to_string(view.byte_offset) +
                                           " to " + std::to_string(end_of(view)) + ")");
    }
    for (const Operand& o : s.ops[op].operands) {
      if (o.temp || o.access == Access::kRead) continue;
      const View& view = view_of(call, o);
      if (!r_.buffers[view.buffer].persistent) written_[view.buffer.value].add(view.byte_offset, end_of(view));
    }
  }
  const View& view_of(std::uint32_t call, const Operand& o) const { return r_.views[r_.calls[call].args[o.index]]; }
  static std::int64_t end_of(const View& v) { return v.byte_offset + v.type.bytes(); }

  const Program& p_;
  const RankProgram& r_;
  ProblemList& problems_;
  std::vector<WrittenBytes> written_;
  std::set<BufferId> reported_;
};

}  // namespace

void find_unwritten_reads(const Program& p, ProblemList& problems) {
  for (const Segment& s : p.segments) check_temps(s, problems);
  for (const RankProgram& r : p.rank_programs) ReadCheck(p, r, problems).run();
}

}  // namespace stepcast::program
