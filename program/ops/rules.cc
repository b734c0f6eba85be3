// Shape rules: what every op has in common, elementwise and optimizer kinds.
// Operand orders and shapes are those of op.h.
#include "program/ops/rules.h"

#include <cmath>

#include "base/check.h"
#include "program/ops/operand_rules.h"

namespace stepcast::program {
namespace {

// Operands that are parts of the rows: of kinds to which the index means nothing else.
void check_parts(OperandRules& r) {
  const Op& op = r.op();
  std::uint16_t parts = 1;
  for (const Operand& o : op.operands) {
    if (!o.is_part()) continue;
    r.require(parts == 1 || parts == o.parts, "its operands are parts of different numbers of parts");
    parts = o.parts;
  }
  if (parts == 1) return;
  r.require(op.kind == OpKind::kMatmul || op.kind == OpKind::kCopy || is_p2p(op.kind),
            "an operand is a part of the rows, which is for matmul, copy, send, receive and exchange");
}

void check_multiprocessors(OperandRules& r) {
  const Op& op = r.op();
  const std::int32_t given = op.attributes.multiprocessors;
  r.require(given >= -1, "multiprocessors below -1, which says nothing of them");
  r.require(given < 0 || op.kind == OpKind::kMatmul || is_communication(op.kind),
            "has multiprocessors, which are for matmuls and communication");
  r.require(given != 0 || !is_collective(op.kind), "0 multiprocessors, which is for messages: on copy engines");
}

void check_common(OperandRules& r, std::span<const TensorType> types) {
  const Op& op = r.op();
  for (std::size_t i = 0; i < types.size(); ++i) {
    r.require(has_sound_size(types[i]), "operand " + std::to_string(i) + " is " + describe(types[i]) +
                                            ", expected extents of at least 1 and fewer than 2^62 bytes");
  }
  r.require(op.group.has_value() == is_collective(op.kind),
            is_collective(op.kind) ? "no group role, expected one" : "has a group role, which is for collectives");
  r.require(is_collective(op.kind) || op.member_counts.empty(), "has member counts, which are for collectives");
  r.require(is_p2p(op.kind) || op.parts.empty(), "has parts, which are for send, receive and exchange");
  r.require(op.kind == OpKind::kHostRead || !op.symbol, "sets a symbol, which only host_read may");
  r.require(!op.timing_index || op.index_role, "timing index without an index role");
  check_parts(r);
  check_multiprocessors(r);
  const bool drops = op.kind == OpKind::kDropoutForward || op.kind == OpKind::kBiasDropoutAdd ||
                     op.kind == OpKind::kAttentionForward || op.kind == OpKind::kAttentionBackward;
  r.require(drops || !op.sample_role, "has a sample role, which is for dropout");
}

// Where the two tensors of a copy-like op must agree.
void check_in_out(OperandRules& r, Access out, bool same_dtype) {
  if (!r.count(2, 2)) return;
  r.access(0, "in", Access::kRead);
  r.access(1, "out", out);
  if (same_dtype) {
    r.has_dtype(1, "out", r.type(0).dtype);
  } else {
    r.has_float(0, "in");
    r.has_float(1, "out");
  }
  if (r.ok()) r.has_elements(1, "out", r.type(0).shape.elements());
}

bool is_multiple_of_rows(const Shape& whole, Shape part) {
  if (whole.rank == 0 || whole.rank != part.rank) return false;
  if (whole.extent(0) % part.extent(0) != 0) return false;
  part.dims[0] = whole.dims[0];
  return whole == part;
}

}  // namespace

void check_elementwise(OperandRules& r) {
  switch (r.op().kind) {
    case OpKind::kZeroFill:
      if (r.count(1, 1)) r.access(0, "out", Access::kWrite);
      return;
    case OpKind::kCopy:
      return check_in_out(r, Access::kWrite, true);
    case OpKind::kCast:
      return check_in_out(r, Access::kWrite, false);
    case OpKind::kAccumulate:
      return check_in_out(r, Access::kAccumulate, false);
    case OpKind::kSumParts:
      if (!r.count(2, 2)) return;
      r.access(0, "in", Access::kRead);
      r.has_float(0, "in");
      r.access(1, "out", Access::kWrite);
      r.has_dtype(1, "out", r.type(0).dtype);
      return r.require(is_multiple_of_rows(r.type(0).shape, r.type(1).shape),
                       "in must have the extents of out, and a multiple of its rows");
    case OpKind::kAdd:
      if (!r.count(3, 3)) return;
      r.has_float(0, "a");
      r.access(0, "a", Access::kRead);
      r.is(1, "b", Access::kRead, r.type(0));
      return r.is(2, "out", Access::kWrite, r.type(0));
    default:
      CHECK(false, to_string(r.op().kind));
  }
}

void check_optimizer(OperandRules& r) {
  const TensorType one{DType::kF32, {1}};
  const Attributes& a = r.op().attributes;
  switch (r.op().kind) {
    case OpKind::kSumSquares:
      if (!r.count(2, 2)) return;
      r.access(0, "in", Access::kRead);
      r.has_float(0, "in");
      r.require(a.count >= 0 && (a.count == 0) == !r.op().index_role.has_value(),
                "count (the parts) goes with an index role");
      r.require(a.count == 0 || r.type(0).shape.elements() % a.count == 0,
                "the elements must divide by count (the parts)");
      return r.is(1, "out", Access::kAccumulate, {statistics_type(r.type(0).dtype), {1}});
    case OpKind::kClipFactor:
      if (!r.count(2, 2)) return;
      r.is(0, "sumsq", Access::kRead, one);
      r.is(1, "factor", Access::kWrite, one);
      return r.require(a.value > 0 && std::isfinite(a.value), "value (the maximum norm) must be above 0");
    case OpKind::kAdam:
      break;
    default:
      CHECK(false, to_string(r.op().kind));
  }
  if (!r.count(5, 6)) return;
  constexpr const char* kNames[] = {"grad", "factor", "m", "v", "master", "weight"};
  r.is(1, "factor", Access::kRead, one);
  const std::int64_t part = r.type(2).shape.elements();
  std::int64_t whole = part;
  for (const std::size_t i : {2U, 3U, 0U, 4U, 5U}) {
    if (i >= r.op().operands.size()) break;
    if (i == 5) {
      r.require(r.op().operands[i].access != Access::kRead,
                "weight (operand 5) has access read, expected write or accumulate");
      r.has_float(i, kNames[i]);
    } else {
      r.access(i, kNames[i], i == 0 ? Access::kRead : Access::kAccumulate);
      if (i == 0 || i == 2) r.has_float(i, kNames[i]);
      if (i == 3) r.has_dtype(i, kNames[i], r.type(2).dtype);
      if (i == 4) r.has_dtype(i, kNames[i], DType::kF32);
    }
    if (!r.ok()) return;
    const std::int64_t elements = r.type(i).shape.elements();
    // With an index role the tensors may hold all members' parts, of which the op uses one; they must agree how many.
    const bool holds_all_parts =
        i != 3 && r.op().index_role && elements % part == 0 && (whole == part || whole == elements);
    if (elements == part) continue;
    r.require(holds_all_parts, std::string(kNames[i]) + " has " + std::to_string(elements) + " elements, expected " +
                                   std::to_string(part) + " as m, or with an index role a multiple");
    whole = elements;
  }
}

namespace {

void check_kind(OperandRules& r) {
  switch (r.op().kind) {
    case OpKind::kZeroFill:
    case OpKind::kCopy:
    case OpKind::kCast:
    case OpKind::kAdd:
    case OpKind::kAccumulate:
    case OpKind::kSumParts:
      return check_elementwise(r);
    case OpKind::kCrossEntropyMax:
    case OpKind::kCrossEntropySum:
    case OpKind::kCrossEntropyLoss:
    case OpKind::kCrossEntropyBackward:
      return check_loss(r);
    case OpKind::kOwnRows:
    case OpKind::kKvExtract:
    case OpKind::kKvAccumulate:
    case OpKind::kShareAttentionForward:
    case OpKind::kShareAttentionBackward:
    case OpKind::kHeadsSplit:
    case OpKind::kHeadsJoin:
    case OpKind::kSharesJoin:
    case OpKind::kSharesSplit:
    case OpKind::kOwnGroup:
    case OpKind::kOwnGroupBackward:
      return check_context_parallel(r);
    case OpKind::kSumSquares:
    case OpKind::kClipFactor:
    case OpKind::kAdam:
      return check_optimizer(r);
    case OpKind::kQuantise:
    case OpKind::kAbsMax:
    case OpKind::kTranspose:
    case OpKind::kUnscale:
      return check_quantisation(r);
    case OpKind::kAllReduce:
    case OpKind::kAllGather:
    case OpKind::kReduceScatter:
    case OpKind::kBroadcast:
    case OpKind::kAllToAll:
    case OpKind::kSend:
    case OpKind::kReceive:
    case OpKind::kExchange:
    case OpKind::kJoin:
    case OpKind::kHostRead:
      return check_communication(r);
    default:
      return check_layer(r);
  }
}

}  // namespace

std::string check_operands(const Op& op, std::span<const TensorType> operands) {
  CHECK(op.operands.size() == operands.size(), op.operands.size(), operands.size());
  OperandRules r(op, operands);
  check_common(r, operands);
  if (r.ok()) check_kind(r);
  if (r.ok()) return {};
  return std::string(to_string(op.kind)) + ": " + r.take();
}

}  // namespace stepcast::program
