// Lifetimes in issue order and the peak that follows. One pass over the operands finds first and last accesses; one
// pass over op positions adds what is allocated there and subtracts what was freed before.
#include "program/lifetimes.h"

#include <algorithm>
#include <optional>

#include "base/check.h"

namespace stepcast::program {
namespace {

struct Span {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  bool touched = false;

  void touch(std::uint32_t op) {
    if (!touched) first = op;
    touched = true;
    last = op;
  }
};

// First and last access of each temp, as op numbers within the segment.
std::vector<Span> temp_spans(const Segment& s) {
  std::vector<Span> spans(s.temps.size());
  for (std::uint32_t op = 0; op < s.ops.size(); ++op) {
    for (const Operand& operand : s.ops[op].operands) {
      if (operand.temp) spans[operand.index].touch(op);
    }
  }
  return spans;
}

std::vector<Span> buffer_spans(const Program& p, const RankProgram& r, const Resolution& res) {
  std::vector<Span> spans(r.buffers.size());
  for (std::uint32_t c = 0; c < r.calls.size(); ++c) {
    const Call& call = r.calls[c];
    std::uint32_t flat = res.first_op[c];
    for (const Op& op : p.segments[call.segment].ops) {
      for (const Operand& operand : op.operands) {
        if (!operand.temp) spans[r.views[call.args[operand.index]].buffer.value].touch(flat);
      }
      ++flat;
    }
  }
  return spans;
}

void add_buffers(Lifetimes& l, const RankProgram& r, const std::vector<Span>& spans, std::uint32_t op_count) {
  for (std::size_t b = 0; b < spans.size(); ++b) {
    const Buffer& buffer = r.buffers[BufferId(b)];
    if (buffer.space != Space::kDevice || (!buffer.persistent && !spans[b].touched)) continue;
    Lifetime block;
    block.buffer = BufferId(b);
    block.memory_class = buffer.memory_class;
    block.bytes = buffer.bytes;
    block.persistent = buffer.persistent;
    block.first_op = buffer.persistent ? 0 : spans[b].first;
    block.last_op = buffer.persistent ? (op_count == 0 ? 0 : op_count - 1) : spans[b].last;
    if (buffer.persistent) l.persistent[static_cast<std::size_t>(buffer.memory_class)] += buffer.bytes;
    l.blocks.push_back(block);
  }
}

void add_temps(Lifetimes& l, const Program& p, const RankProgram& r, const Resolution& res) {
  std::vector<std::optional<std::vector<Span>>> known(p.segments.size());
  for (std::uint32_t c = 0; c < r.calls.size(); ++c) {
    const SegmentId id = r.calls[c].segment;
    const Segment& segment = p.segments[id];
    if (!known[id.value]) known[id.value] = temp_spans(segment);
    const std::vector<Span>& spans = *known[id.value];
    for (std::size_t t = 0; t < spans.size(); ++t) {
      if (!spans[t].touched) continue;
      Lifetime block;
      block.is_temp = true;
      block.call = c;
      block.temp = static_cast<std::uint16_t>(t);
      block.memory_class = segment.temps[t].memory_class;
      block.bytes = segment.temps[t].type.bytes();
      block.first_op = res.first_op[c] + spans[t].first;
      block.last_op = res.first_op[c] + spans[t].last;
      l.blocks.push_back(block);
    }
  }
}

void find_peaks(Lifetimes& l, std::uint32_t op_count) {
  l.class_peak = l.persistent;
  l.at_peak = l.persistent;
  for (const std::int64_t bytes : l.persistent) l.peak += bytes;
  const std::vector<ClassBytes> allocated = allocated_over_time(l, op_count);
  for (std::uint32_t op = 0; op < op_count; ++op) {
    std::int64_t sum = 0;
    for (std::size_t c = 0; c < kMemoryClassCount; ++c) {
      sum += allocated[op][c];
      l.class_peak[c] = std::max(l.class_peak[c], allocated[op][c]);
    }
    if (sum <= l.peak) continue;
    l.peak = sum;
    l.peak_op = op;
    l.at_peak = allocated[op];
  }
}

}  // namespace

Lifetimes derive_lifetimes(const Program& p, const RankProgram& r, const Resolution& res) {
  CHECK(res.first_op.size() == r.calls.size() + 1, res.first_op.size(), r.calls.size());
  Lifetimes l;
  add_buffers(l, r, buffer_spans(p, r, res), res.op_count());
  add_temps(l, p, r, res);
  find_peaks(l, res.op_count());
  return l;
}

std::vector<ClassBytes> allocated_over_time(const Lifetimes& l, std::uint32_t op_count) {
  std::vector<ClassBytes> bytes(op_count, ClassBytes{});
  if (op_count == 0) return bytes;
  bytes[0] = l.persistent;
  for (const Lifetime& block : l.blocks) {
    if (block.persistent) continue;
    CHECK(block.first_op <= block.last_op && block.last_op < op_count, block.first_op, block.last_op, op_count);
    const auto c = static_cast<std::size_t>(block.memory_class);
    bytes[block.first_op][c] += block.bytes;
    if (block.last_op + 1 < op_count) bytes[block.last_op + 1][c] -= block.bytes;
  }
  for (std::size_t op = 1; op < op_count; ++op) {
    for (std::size_t c = 0; c < kMemoryClassCount; ++c) bytes[op][c] += bytes[op - 1][c];
  }
  return bytes;
}

}  // namespace stepcast::program
