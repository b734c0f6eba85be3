// Reads before writes. A non-persistent buffer holds nothing until an op writes it; a temp likewise, in each call.
#include <algorithm>
#include <set>

#include "program/check_parts.h"

namespace stepcast::program {
namespace {

using ByteRange = std::pair<std::int64_t, std::int64_t>;

// The bytes written so far of each buffer, as disjoint ranges in order. Most have one, which lies in a flat table.
class WrittenBytes {
 public:
  explicit WrittenBytes(std::size_t buffers) : only_(buffers, ByteRange{0, 0}) {}

  bool covers(BufferId buffer, std::int64_t begin, std::int64_t end) const {
    const ByteRange& only = only_[buffer.value];
    if (only.second != kListed) return only.first <= begin && end <= only.second;
    const Ranges& ranges = lists_[static_cast<std::size_t>(only.first)];
    const auto it = first_ending_at_or_after(ranges, begin);
    return it != ranges.end() && it->first <= begin && end <= it->second;
  }
  void add(BufferId buffer, std::int64_t begin, std::int64_t end) {
    ByteRange& only = only_[buffer.value];
    if (only.second == 0) {  // nothing yet: a view has at least one byte
      only = {begin, end};
    } else if (only.second == kListed) {
      add_to(lists_[static_cast<std::size_t>(only.first)], begin, end);
    } else if (begin <= only.second && only.first <= end) {
      only = {std::min(begin, only.first), std::max(end, only.second)};
    } else {
      lists_.push_back({only});
      only = {static_cast<std::int64_t>(lists_.size() - 1), kListed};
      add_to(lists_.back(), begin, end);
    }
  }

 private:
  static constexpr std::int64_t kListed = -1;
  using Ranges = std::vector<ByteRange>;

  static Ranges::const_iterator first_ending_at_or_after(const Ranges& ranges, std::int64_t at) {
    return std::lower_bound(ranges.begin(), ranges.end(), at,
                            [](const ByteRange& r, std::int64_t v) { return r.second < v; });
  }
  static void add_to(Ranges& ranges, std::int64_t begin, std::int64_t end) {
    const auto first = ranges.begin() + (first_ending_at_or_after(ranges, begin) - ranges.cbegin());
    auto last = first;
    while (last != ranges.end() && last->first <= end) ++last;
    if (first == last) {
      ranges.insert(first, {begin, end});
      return;
    }
    const ByteRange merged(std::min(begin, first->first), std::max(end, std::prev(last)->second));
    const auto at = ranges.erase(first + 1, last) - 1;
    *at = merged;
  }

  std::vector<ByteRange> only_;  // by BufferId; with the end kListed, `first` is the place in lists_
  std::vector<Ranges> lists_;
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

// What the ops of a segment wrote of one slot or temp so far: nothing, members' parts of its rows, or all.
class WrittenParts {
 public:
  bool covers(const Operand& o) const { return all_ || (o.is_part() && o.before < parts_.size() && parts_[o.before]); }
  bool all() const { return all_; }
  bool some() const { return all_ || !parts_.empty(); }
  void add(const Operand& o) {
    if (o.is_part()) {
      parts_.resize(o.parts, false);
      parts_[o.before] = true;
    }
    all_ = all_ || !o.is_part() || std::all_of(parts_.begin(), parts_.end(), [](bool part) { return part; });
  }

 private:
  bool all_ = false;
  std::vector<bool> parts_;  // by places before the rank
};

void check_temps(const Segment& s, ProblemList& problems) {
  std::vector<WrittenParts> written(s.temps.size());
  for (const Op& op : s.ops) {
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const Operand& o = op.operands[i];
      if (!o.temp || !needs_all(s, op, i) || written[o.index].covers(o)) continue;
      problems.add(ErrorKind::kInput, "segment " + s.label + ", op " + op.name + ": reads temp " +
                                          s.temps[o.index].name + " before anything wrote it");
    }
    for (const Operand& o : op.operands) {
      if (o.temp && o.access != Access::kRead) written[o.index].add(o);
    }
  }
}

// What a segment does to its slots as a whole.
struct SlotUse {
  std::vector<std::uint16_t> needed;  // read before the segment writes them
  std::vector<std::uint16_t> written;
  bool in_part = false;  // it leaves a slot written in part, which the two lists cannot say
};

SlotUse slot_use(const Segment& s) {
  SlotUse use;
  std::vector<bool> needed(s.slots.size(), false);
  std::vector<WrittenParts> written(s.slots.size());
  for (const Op& op : s.ops) {
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const Operand& o = op.operands[i];
      if (o.temp || written[o.index].covers(o) || needed[o.index] || !needs_all(s, op, i)) continue;
      needed[o.index] = true;
      use.needed.push_back(o.index);
    }
    for (const Operand& o : op.operands) {
      if (!o.temp && o.access != Access::kRead) written[o.index].add(o);
    }
  }
  for (std::size_t slot = 0; slot < written.size(); ++slot) {
    if (written[slot].all()) use.written.push_back(static_cast<std::uint16_t>(slot));
    use.in_part = use.in_part || (written[slot].some() && !written[slot].all());
  }
  return use;
}

// Where all that a call needs was written before the call, its ops need not be looked at one by one.
class ReadCheck {
 public:
  ReadCheck(const Program& p, const RankProgram& r, ProblemList& problems)
      : p_(p), r_(r), problems_(problems), written_(r.buffers.size()) {}

  void run() {
    std::vector<SlotUse> uses(p_.segments.size());
    std::vector<bool> known(p_.segments.size(), false);
    for (std::uint32_t call = 0; call < r_.calls.size(); ++call) {
      const SegmentId id = r_.calls[call].segment;
      const Segment& s = p_.segments[id];
      SlotUse& use = uses[id.value];
      if (!known[id.value]) use = slot_use(s);
      known[id.value] = true;
      const std::vector<ViewId>& args = r_.calls[call].args;
      const bool sound = !use.in_part && std::all_of(use.needed.begin(), use.needed.end(),
                                                     [&](std::uint16_t slot) { return is_written(args[slot]); });
      if (sound) {
        for (const std::uint16_t slot : use.written) add(r_.views[args[slot]], bytes_of(r_.views[args[slot]], {}));
      } else {
        for (std::uint32_t op = 0; op < s.ops.size(); ++op) check_op(s, call, op);
      }
    }
  }

 private:
  bool is_written(const View& view, const ByteRange& bytes) const {
    return r_.buffers[view.buffer].persistent || written_.covers(view.buffer, bytes.first, bytes.second);
  }
  bool is_written(ViewId id) const { return is_written(r_.views[id], bytes_of(r_.views[id], {})); }
  void add(const View& view, const ByteRange& bytes) {
    if (!r_.buffers[view.buffer].persistent) written_.add(view.buffer, bytes.first, bytes.second);
  }

  void check_op(const Segment& s, std::uint32_t call, std::uint32_t op) {
    const std::vector<Operand>& operands = s.ops[op].operands;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Operand& o = operands[i];
      if (o.temp || !needs_all(s, s.ops[op], i)) continue;
      const View& view = view_of(call, o);
      const ByteRange bytes = bytes_of(view, o);
      if (is_written(view, bytes)) continue;
      if (!reported_.insert(view.buffer).second) continue;
      problems_.add(ErrorKind::kInput, "rank program " + r_.name + ", " + op_path(p_, r_, call, op) +
                                           ": reads buffer " + r_.buffers[view.buffer].name +
                                           " where nothing wrote it (bytes " + std::to_string(bytes.first) + " to " +
                                           std::to_string(bytes.second) + ")");
    }
    for (const Operand& o : s.ops[op].operands) {
      if (o.temp || o.access == Access::kRead) continue;
      const View& view = view_of(call, o);
      add(view, bytes_of(view, o));
    }
  }
  const View& view_of(std::uint32_t call, const Operand& o) const { return r_.views[r_.calls[call].args[o.index]]; }
  // What an operand accesses of its view; a member's part where it lies at index 0 (see resolve.cc).
  static ByteRange bytes_of(const View& v, const Operand& o) {
    const std::int64_t size = v.type.bytes() / o.parts;
    const std::int64_t begin = v.byte_offset + part_number(o, 0) * size;
    return {begin, begin + size};
  }

  const Program& p_;
  const RankProgram& r_;
  ProblemList& problems_;
  WrittenBytes written_;
  std::set<BufferId> reported_;
};

}  // namespace

void find_unwritten_temps(const Program& p, ProblemList& problems) {
  for (const Segment& s : p.segments) check_temps(s, problems);
}

void find_unwritten_reads(const Program& p, RankProgramId r, ProblemList& problems) {
  ReadCheck(p, p.rank_programs[r], problems).run();
}

}  // namespace stepcast::program
