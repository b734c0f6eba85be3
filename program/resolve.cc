// Derives dependences. Every buffer is a sorted tree of byte ranges, split on demand at the ends of views and merged
// when one op writes across several; a range knows its last writer and the last reader on each stream since that write.
// Most buffers are only ever accessed whole: their one range is kept in a flat table, and only the others have a tree.
//
// An edge that an earlier op of the same stream already waits for (the same or a later op of the other stream) is left
// out: a stream runs in order, so it cannot bind.
//
// A member's part of a tensor (ops/op.h) is taken for the bytes it has at the member of index 0. Which parts of a ring
// overlap is the same at every index, and check_row_parts.cc refuses other accesses in between.
#include "program/resolve.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <map>

#include "base/check.h"

namespace stepcast::program {
namespace {

// Flat op numbers are stored plus one, so that zero is "none".
using OpPlusOne = std::uint32_t;

struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  OpPlusOne writer = 0;
  std::uint8_t writer_stream = 0;
  std::uint16_t reader_mask = 0;  // streams whose entry of `readers` counts
  std::array<OpPlusOne, kStreamCount> readers;
};
static_assert(kStreamCount <= 16);

// The latest predecessor per stream of the op under way; those on its own stream are not asked for.
class Predecessors {
 public:
  explicit Predecessors(std::size_t own_stream) : others_(~(1U << own_stream)) {}

  void add(OpPlusOne op, std::size_t stream) {
    const unsigned bit = 1U << stream;
    if (op == 0 || (others_ & bit) == 0) return;
    if ((streams_ & bit) == 0 || op > latest_[stream]) latest_[stream] = op;
    streams_ |= bit;
  }
  void add_all(const Range& range, bool writes) {
    add(range.writer, range.writer_stream);
    if (!writes) return;
    for (unsigned mask = range.reader_mask & others_; mask != 0; mask &= mask - 1) {
      const auto stream = static_cast<std::size_t>(__builtin_ctz(mask));
      add(range.readers[stream], stream);
    }
  }
  // A bit for each stream with a predecessor.
  unsigned streams() const { return streams_; }
  OpPlusOne latest(std::size_t stream) const { return latest_[stream]; }

 private:
  unsigned others_;
  unsigned streams_ = 0;
  std::array<OpPlusOne, kStreamCount> latest_;  // where streams_ has the bit
};

void record(Range& range, OpPlusOne op, std::size_t stream, bool writes) {
  if (writes) {
    range.writer = op;
    range.writer_stream = static_cast<std::uint8_t>(stream);
    range.reader_mask = 0;
  } else {
    range.reader_mask = static_cast<std::uint16_t>(range.reader_mask | (1U << stream));
    range.readers[stream] = op;
  }
}

// Ranges of a buffer that is accessed in parts. A tree, not a list: the parts of a flat buffer are first accessed in
// the order of the backward pass, each in front of all others.
class RangeTree {
 public:
  explicit RangeTree(const Range& only) { ranges_.emplace(only.begin, only); }

  // Bytes [begin, end) of the buffer are accessed by `op`.
  void access(std::int64_t begin, std::int64_t end, OpPlusOne op, std::size_t stream, bool writes,
              Predecessors& found) {
    const auto first = split(begin, end);
    auto last = first;
    for (; last != ranges_.end() && last->first < end; ++last) {
      found.add_all(last->second, writes);
      record(last->second, op, stream, writes);
    }
    const auto second = std::next(first);
    if (!writes || second == last) return;
    first->second.end = end;
    ranges_.erase(second, last);
  }

 private:
  using Ranges = std::map<std::int64_t, Range>;  // by their begin

  void cut(std::int64_t at) {
    const auto behind = ranges_.upper_bound(at);
    if (behind == ranges_.begin()) return;
    Range& range = std::prev(behind)->second;
    if (range.begin == at || range.end <= at) return;
    Range right = range;
    right.begin = at;
    range.end = at;
    ranges_.emplace_hint(behind, at, right);
  }
  // Makes ranges that tile [begin, end) exactly and returns the first.
  Ranges::iterator split(std::int64_t begin, std::int64_t end) {
    const auto known = ranges_.find(begin);
    if (known != ranges_.end() && known->second.end == end) return known;
    cut(begin);
    cut(end);
    auto next = ranges_.lower_bound(begin);
    for (std::int64_t covered = begin; covered < end; ++next) {
      if (next == ranges_.end() || next->first > covered) {
        Range gap;
        gap.begin = covered;
        gap.end = next == ranges_.end() ? end : std::min(end, next->first);
        next = ranges_.emplace_hint(next, covered, gap);
      }
      covered = next->second.end;
    }
    return ranges_.find(begin);
  }

  Ranges ranges_;
};

// Of buffers, or of the temps of one call.
class BlockStates {
 public:
  void reset(std::size_t blocks) {
    first_.assign(blocks, Range{});
    trees_.clear();
  }

  // Bytes [begin, end) of the block are accessed by `op`.
  void access(std::size_t block, std::int64_t begin, std::int64_t end, OpPlusOne op, std::size_t stream, bool writes,
              Predecessors& found) {
    CHECK(block < first_.size(), block);
    Range& range = first_[block];
    if (range.begin == begin && range.end == end) {
      found.add_all(range, writes);
      record(range, op, stream, writes);
    } else if (range.end == 0) {  // not accessed yet: a view has at least one byte
      range.begin = begin;
      range.end = end;
      record(range, op, stream, writes);
    } else {
      tree_of(range).access(begin, end, op, stream, writes, found);
    }
  }

 private:
  static constexpr std::int64_t kInTree = -1;

  RangeTree& tree_of(Range& range) {
    if (range.end != kInTree) {
      trees_.emplace_back(range);
      range.begin = static_cast<std::int64_t>(trees_.size() - 1);
      range.end = kInTree;
    }
    return trees_[static_cast<std::size_t>(range.begin)];
  }

  std::vector<Range> first_;  // with the end kInTree, `begin` is the place in trees_
  std::vector<RangeTree> trees_;
};

class Resolver {
 public:
  Resolver(const Program& p, const RankProgram& r) : program_(p), rank_program_(r) {
    buffers_.reset(r.buffers.size());
    views_.reserve(r.views.size());
    for (const View& v : r.views) views_.push_back({v.buffer, {v.byte_offset, v.byte_offset + v.type.bytes()}});
  }

  Resolution run() {
    count_ops();
    const std::vector<Segment>& segments = program_.segments.items();
    for (std::uint32_t call = 0; call < rank_program_.calls.size(); ++call) {
      const Segment& segment = segments[rank_program_.calls[call].segment.value];
      temps_.reset(segment.temps.size());
      for (std::uint32_t i = 0; i < segment.ops.size(); ++i) {
        resolve_op(segment, rank_program_.calls[call], segment.ops[i], result_.first_op[call] + i);
      }
    }
    result_.edge_begin.push_back(static_cast<std::uint32_t>(result_.edges.size()));
    return std::move(result_);
  }

 private:
  void count_ops() {
    std::uint64_t count = 0;
    for (const Call& call : rank_program_.calls) {
      result_.first_op.push_back(static_cast<std::uint32_t>(count));
      count += program_.segments[call.segment].ops.size();
      CHECK(count < std::numeric_limits<std::uint32_t>::max(), count);
    }
    result_.first_op.push_back(static_cast<std::uint32_t>(count));
    result_.call_of.reserve(count);
    for (std::uint32_t call = 0; call < rank_program_.calls.size(); ++call) {
      result_.call_of.insert(result_.call_of.end(), result_.first_op[call + 1] - result_.first_op[call], call);
    }
    result_.edge_begin.reserve(count + 1);
    result_.edges.reserve(count);
  }

  void resolve_op(const Segment& segment, const Call& call, const Op& op, std::uint32_t flat) {
    const auto stream = static_cast<std::size_t>(op.stream);
    Predecessors found(stream);
    for (const Operand& operand : op.operands) {
      const bool writes = operand.access != Access::kRead;
      if (operand.temp) {
        CHECK(operand.index < segment.temps.size(), operand.index);
        const Bounds bytes = accessed({0, segment.temps[operand.index].type.bytes()}, operand);
        temps_.access(operand.index, bytes.begin, bytes.end, flat + 1, stream, writes, found);
      } else {
        CHECK(operand.index < call.args.size(), operand.index, call.args.size());
        const ViewId id = call.args[operand.index];
        CHECK(id.value < views_.size(), id.value, views_.size());
        const Bounds bytes = accessed(views_[id.value].bytes, operand);
        buffers_.access(views_[id.value].buffer.value, bytes.begin, bytes.end, flat + 1, stream, writes, found);
      }
    }
    if (op.kind == OpKind::kJoin) {
      const auto joined = static_cast<std::size_t>(op.attributes.join_stream);
      found.add(tail_[joined], joined);
    }
    emit(found, stream);
    tail_[stream] = flat + 1;
  }

  void emit(const Predecessors& found, std::size_t stream) {
    result_.edge_begin.push_back(static_cast<std::uint32_t>(result_.edges.size()));
    const std::size_t first = result_.edges.size();
    for (unsigned mask = found.streams(); mask != 0; mask &= mask - 1) {
      const auto other = static_cast<std::size_t>(__builtin_ctz(mask));
      const OpPlusOne op = found.latest(other);
      if (op <= waited_[stream][other]) continue;
      waited_[stream][other] = op;
      result_.edges.push_back(op - 1);
    }
    if (result_.edges.size() - first > 1) {
      std::sort(result_.edges.begin() + static_cast<std::ptrdiff_t>(first), result_.edges.end());
    }
  }

  struct Bounds {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  struct ViewBounds {
    BufferId buffer;
    Bounds bytes;
  };

  static Bounds accessed(Bounds whole, const Operand& operand) {
    if (!operand.is_part()) return whole;
    const std::int64_t size = (whole.end - whole.begin) / operand.parts;
    const std::int64_t begin = whole.begin + part_number(operand, 0) * size;
    return {begin, begin + size};
  }

  const Program& program_;
  const RankProgram& rank_program_;
  std::vector<ViewBounds> views_;  // by ViewId
  BlockStates buffers_;            // by BufferId
  BlockStates temps_;              // of the call under way
  std::array<OpPlusOne, kStreamCount> tail_{};
  std::array<std::array<OpPlusOne, kStreamCount>, kStreamCount> waited_{};  // [waiting stream][other stream]
  Resolution result_;
};

}  // namespace

Resolution resolve(const Program& p, const RankProgram& r) { return Resolver(p, r).run(); }

}  // namespace stepcast::program
