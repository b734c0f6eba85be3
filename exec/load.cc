// See load.h. One pass over the ops in issue order.
#include "exec/load.h"

#include <array>

#include "base/check.h"

namespace stepcast::exec {
namespace {

// Folds accesses, in issue order, into a BlockUse.
class UseCounter {
 public:
  void add(program::Stream stream, bool writes_all) {
    if (use_.accesses == 0) {
      use_.home = stream;
      first_writes_all_ = writes_all;
    }
    one_stream_ = one_stream_ && stream == use_.home;
    ++use_.accesses;
  }
  BlockUse use() const {
    BlockUse result = use_;
    result.anchored = one_stream_ || first_writes_all_;
    return result;
  }

 private:
  BlockUse use_;
  bool one_stream_ = true;
  bool first_writes_all_ = false;
};

std::vector<BlockUse> uses_of(const std::vector<UseCounter>& counters) {
  std::vector<BlockUse> uses;
  uses.reserve(counters.size());
  for (const UseCounter& counter : counters) uses.push_back(counter.use());
  return uses;
}

bool writes_all(const program::Operand& o) { return o.access == program::Access::kWrite && !o.is_part(); }

std::vector<BlockUse> temp_uses(const program::Segment& segment) {
  std::vector<UseCounter> counters(segment.temps.size());
  for (const program::Op& op : segment.ops) {
    for (const program::Operand& operand : op.operands) {
      if (operand.temp) counters[operand.index].add(op.stream, writes_all(operand));
    }
  }
  return uses_of(counters);
}

void count_buffers(const program::RankProgram& r, const program::Call& call, const program::Op& op,
                   std::vector<UseCounter>& counters) {
  for (const program::Operand& operand : op.operands) {
    if (operand.temp) continue;
    const program::View& view = r.views[call.args[operand.index]];
    const bool whole = view.byte_offset == 0 && view.type.bytes() == r.buffers[view.buffer].bytes;
    counters[view.buffer.value].add(op.stream, whole && writes_all(operand));
  }
}

}  // namespace

LoadedProgram load(const program::Program& p, const program::RankProgram& r, const program::Resolution& res) {
  LoadedProgram loaded;
  loaded.position.reserve(res.op_count());
  loaded.temps.resize(p.segments.size());
  std::array<std::uint32_t, program::kStreamCount> ops_on{};
  std::vector<UseCounter> counters(r.buffers.size());
  for (const program::Call& call : r.calls) {
    const program::Segment& segment = p.segments[call.segment];
    if (loaded.temps[call.segment.value].empty()) loaded.temps[call.segment.value] = temp_uses(segment);
    for (const program::Op& op : segment.ops) {
      loaded.position.push_back(ops_on[static_cast<std::size_t>(op.stream)]++);
      count_buffers(r, call, op, counters);
    }
  }
  CHECK(loaded.position.size() == res.op_count(), loaded.position.size(), res.op_count());
  for (std::size_t s = 0; s < ops_on.size(); ++s) {
    if (ops_on[s] > 0) loaded.streams.push_back(static_cast<program::Stream>(s));
  }
  loaded.buffers = uses_of(counters);
  return loaded;
}

}  // namespace stepcast::exec
