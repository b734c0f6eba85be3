// Shape rules of collectives, point-to-point, join and host_read. Sizes against group sizes are program/check's.
#include <algorithm>

#include "base/check.h"
#include "program/ops/operand_rules.h"

namespace stepcast::program {
namespace {

void check_member_counts(OperandRules& r, std::int64_t whole) {
  const std::vector<std::int64_t>& counts = r.op().member_counts;
  if (!r.ok() || counts.empty()) return;
  std::int64_t sum = 0;
  for (const std::int64_t n : counts) {
    r.require(n >= 0 && !__builtin_add_overflow(sum, n, &sum), "member counts must not be negative");
    if (!r.ok()) return;
  }
  r.require(sum == whole, "member counts sum to " + std::to_string(sum) + ", expected " + std::to_string(whole));
}

void check_all_to_all(OperandRules& r) {
  if (!r.count(2, 2)) return;
  r.access(0, "in", Access::kRead);
  r.access(1, "out", Access::kWrite);
  r.has_dtype(1, "out", r.type(0).dtype);
  r.require(r.op().member_counts.empty(), "member counts are for all_gather and reduce_scatter");
  if (r.ok()) r.has_elements(1, "out", r.type(0).shape.elements());
}

// The part of a reduce-scatter that fills one of several blocks of out's columns.
void check_column_block(OperandRules& r) {
  const std::int64_t blocks = column_blocks(r.type(0).shape, r.type(1).shape);
  const std::int64_t block = r.op().attributes.count;
  r.require(block >= 0 && block < blocks, "count (the block of columns) is out of range");
  r.require(blocks == 1 || r.op().member_counts.empty(), "member counts go with all of out's columns");
  r.access(1, "out", block == 0 ? Access::kWrite : Access::kAccumulate);
}

void check_collective(OperandRules& r) {
  const OpKind kind = r.op().kind;
  const bool sums =
      (kind == OpKind::kAllReduce || kind == OpKind::kReduceScatter) && r.op().attributes.reduce == Reduce::kSum;
  if (kind == OpKind::kAllReduce || kind == OpKind::kBroadcast) {
    if (!r.count(1, 1)) return;
    if (sums) r.has_float(0, "buffer");
    r.access(0, "buffer", Access::kAccumulate);
    r.require(r.op().member_counts.empty(), "member counts are for all_gather and reduce_scatter");
    const std::int64_t count = r.op().attributes.count;
    r.require(count >= 0, kind == OpKind::kBroadcast ? "count (the root) must not be negative"
                                                     : "count (the parts) must not be negative");
    if (kind != OpKind::kAllReduce || !r.ok()) return;
    r.require((count == 0) == !r.op().index_role.has_value(), "count (the parts) goes with an index role");
    r.require(count == 0 || r.type(0).shape.elements() % count == 0, "the elements must divide by count (the parts)");
    return;
  }
  if (!r.count(1, 2)) return;
  if (sums) r.has_float(0, r.op().operands.size() == 1 ? "buffer" : "in");
  if (r.op().operands.size() == 1) {  // in place: the own part sits at its position in the whole
    r.access(0, "buffer", Access::kAccumulate);
    return check_member_counts(r, r.type(0).shape.elements());
  }
  r.access(0, "in", Access::kRead);
  r.has_dtype(1, "out", r.type(0).dtype);
  if (kind == OpKind::kAllGather) {
    r.access(1, "out", Access::kWrite);
  } else {
    check_column_block(r);
  }
  const std::size_t whole = kind == OpKind::kAllGather ? 1 : 0;
  check_member_counts(r, r.type(whole).shape.elements());
  if (!r.ok() || !r.op().member_counts.empty()) return;
  const std::int64_t blocks =
      kind == OpKind::kReduceScatter ? column_blocks(r.type(0).shape, r.type(1).shape) : std::int64_t{1};
  const std::int64_t part = r.type(1 - whole).shape.elements() / blocks;
  r.require(r.type(whole).shape.elements() % part == 0,
            "the whole must be a multiple of the part of " + std::to_string(part) + " elements");
}

void check_p2p(OperandRules& r) {
  const Op& op = r.op();
  r.require(op.kind == OpKind::kExchange || op.parts.size() == 1, "expected one part");
  r.require(!op.parts.empty(), "expected at least one part");
  if (!r.count(1, std::max<std::size_t>(1, op.parts.size()))) return;
  std::vector<int> uses(op.operands.size(), 0);
  for (const P2pPart& part : op.parts) {
    r.require(part.operand < op.operands.size(), "a part names an operand that does not exist");
    r.require(op.kind == OpKind::kExchange || part.send == (op.kind == OpKind::kSend),
              op.kind == OpKind::kSend ? "its part receives" : "its part sends");
    if (!r.ok()) return;
    r.access(part.operand, part.send ? "sent" : "received", part.send ? Access::kRead : Access::kWrite);
    ++uses[part.operand];
    r.require(part.send || uses[part.operand] == 1, "two parts receive into one operand");
  }
  r.require(std::find(uses.begin(), uses.end(), 0) == uses.end(), "an operand belongs to no part");
}

}  // namespace

void check_communication(OperandRules& r) {
  const Op& op = r.op();
  if (op.kind == OpKind::kAllToAll) return check_all_to_all(r);
  if (is_collective(op.kind)) return check_collective(r);
  if (is_p2p(op.kind)) return check_p2p(r);
  if (op.kind == OpKind::kJoin) {
    if (r.count(0, 0)) r.require(op.attributes.join_stream != op.stream, "a stream joins itself");
    return;
  }
  CHECK(op.kind == OpKind::kHostRead, to_string(op.kind));
  if (!r.count(1, 1)) return;
  r.access(0, "in", Access::kRead);
  if (op.symbol) r.is(0, "in", Access::kRead, {DType::kI32, {1}});
}

}  // namespace stepcast::program
