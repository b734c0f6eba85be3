// See graph_ranges.h.
#include "exec/device/graph_ranges.h"

#include <algorithm>
#include <set>

namespace stepcast::exec {
namespace {

bool belongs_in_graph(const program::RankProgram& r, const program::Call& call, const program::Op& op) {
  if (op.kind == program::OpKind::kHostRead || program::is_p2p(op.kind)) return false;
  return std::none_of(op.operands.begin(), op.operands.end(), [&](const program::Operand& o) {
    return !o.temp && r.buffers[r.views[call.args[o.index]].buffer].space == program::Space::kHost;
  });
}

}  // namespace

std::vector<GraphRange> graph_ranges(const program::Program& p, const program::RankProgram& r,
                                     const program::Resolution& res) {
  std::vector<GraphRange> ranges;
  for (std::size_t i = 0; i < r.graphs.size(); ++i) {
    GraphRange range;
    range.number = static_cast<std::uint32_t>(i);
    range.begin = res.first_op[r.graphs[i].begin];
    range.end = res.first_op[r.graphs[i].end];
    bool possible = range.begin < range.end;
    std::set<program::Stream> streams;
    for (std::uint32_t op = range.begin; op < range.end; ++op) {
      const program::Op& what = program::op_at(p, r, res, op);
      streams.insert(what.stream);
      possible = possible && belongs_in_graph(r, r.calls[res.call_of[op]], what);
    }
    range.streams.assign(streams.begin(), streams.end());
    if (possible) ranges.push_back(std::move(range));
  }
  return ranges;
}

}  // namespace stepcast::exec
