// Looks up op ids in the Program of a rank.
#include "report/op_labels.h"

#include "base/check.h"

namespace stepcast::report {

std::string_view to_string(program::OpCategory category) {
  switch (category) {
    case program::OpCategory::kMatmul:
      return "matmul";
    case program::OpCategory::kAttention:
      return "attention";
    case program::OpCategory::kMemoryBound:
      return "memory_bound";
    case program::OpCategory::kOptimizer:
      return "optimizer";
    case program::OpCategory::kCollective:
      return "collective";
    case program::OpCategory::kP2p:
      return "p2p";
    case program::OpCategory::kCopy:
      return "copy";
    case program::OpCategory::kSync:
      return "sync";
  }
  CHECK(false, static_cast<int>(category));
}

Labeler labels_of(const program::Program& p) {
  return [&p](std::uint32_t rank, trace::OpId id) {
    const program::RankProgram& r = p.rank_programs[p.ranks[program::RankId(rank)].program];
    CHECK(id.call < r.calls.size(), id.call, r.calls.size());
    const program::Call& call = r.calls[id.call];
    const program::Segment& segment = p.segments[call.segment];
    CHECK(id.op < segment.ops.size(), id.op, segment.ops.size());
    OpLabel label;
    label.name = program::op_path(p, r, id.call, id.op);
    label.category = to_string(program::category_of(segment.ops[id.op].kind));
    label.pass = program::to_string(call.tag.pass);
    label.layer = call.tag.layer;
    label.microbatch = call.tag.microbatch;
    return label;
  };
}

}  // namespace stepcast::report
