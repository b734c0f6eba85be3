// Shape rules of what context parallelism adds: rows of the own share, keys and values that travel, attention to them;
// heads that are exchanged for rows, and those that tensor-parallel ranks share.
#include "base/check.h"
#include "program/ops/operand_rules.h"

namespace stepcast::program {
namespace {

// A share is two of 2n equal parts of a sequence.
void check_share(OperandRules& r, std::size_t rows) {
  const std::int64_t batch = r.op().attributes.batch;
  r.require(r.op().index_role.has_value(), "no index role, expected the one whose members share a sequence");
  r.require(batch > 0 && r.dim(rows, 0).bound % (2 * batch) == 0, "2 * batch must divide the token rows");
}

void check_own_rows(OperandRules& r) {
  if (!r.count(2, 2)) return;
  r.access(0, "in", Access::kRead);
  r.access(1, "out", Access::kWrite);
  r.has_dtype(1, "out", r.type(0).dtype);
  r.require(r.type(0).shape.rank > 0 && r.type(0).shape.rank == r.type(1).shape.rank, "in and out differ in rank");
  if (!r.ok()) return;
  check_share(r, 1);
  r.require(r.dim(0, 0).bound % r.dim(1, 0).bound == 0, "in must have a multiple of out's rows");
  Shape part = r.type(0).shape;
  part.dims[0] = r.dim(1, 0);
  r.has_shape(1, "out", part);
}

Shape kv_shape(const OperandRules& r, Dim rows) {
  const Attributes& a = r.op().attributes;
  return {rows, 2 * std::int64_t{a.kv_heads} * a.head_dim};
}

void check_kv_columns(OperandRules& r) {
  if (!r.count(2, 2)) return;
  const bool extracts = r.op().kind == OpKind::kKvExtract;
  const std::size_t qkv = extracts ? 0 : 1;
  check_heads(r, qkv);
  if (!r.ok()) return;
  const TensorType kv{r.type(qkv).dtype, kv_shape(r, r.dim(qkv, 0))};
  r.access(qkv, "qkv", extracts ? Access::kRead : Access::kAccumulate);
  r.is(1 - qkv, "kv", extracts ? Access::kWrite : Access::kRead, kv);
}

void check_written(OperandRules& r, std::size_t i, const char* name, const TensorType& type) {
  const Access access = r.op().operands[i].access;
  r.require(access != Access::kRead, std::string(name) + " has access read, expected write or accumulate");
  r.is(i, name, access, type);
}

void check_share_attention(OperandRules& r) {
  const bool forward = r.op().kind == OpKind::kShareAttentionForward;
  if (!r.count(forward ? 4 : 7, forward ? 4 : 7)) return;
  const std::size_t qkv = forward ? 0 : 1;
  const std::size_t kv = qkv + 1;
  const std::size_t out = qkv + 2;
  const std::size_t lse = qkv + 3;
  check_heads(r, qkv);
  if (!r.ok()) return;
  check_share(r, qkv);
  const Attributes& a = r.op().attributes;
  const DType compute = r.type(qkv).dtype;
  const Dim rows = r.dim(qkv, 0);
  const TensorType out_type{compute, {rows, std::int64_t{a.heads} * a.head_dim}};
  const TensorType lse_type{statistics_type(compute), {rows, std::int64_t{a.heads}}};
  r.require(a.count >= 0, "count (steps back) must not be negative");
  r.access(qkv, "qkv", Access::kRead);
  r.has_rank(kv, "kv", 2);
  if (!r.ok()) return;
  r.require(r.dim(kv, 0).bound % rows.bound == 0, "kv must have a multiple of qkv's rows");
  r.is(kv, "kv", Access::kRead, {compute, kv_shape(r, r.dim(kv, 0))});
  if (forward) {
    check_written(r, out, "out", out_type);
    check_written(r, lse, "lse", lse_type);
    r.require(r.op().operands[out].access == r.op().operands[lse].access, "out and lse differ in access");
    return;
  }
  r.is(0, "dout", Access::kRead, out_type);
  r.is(out, "out", Access::kRead, out_type);
  r.is(lse, "lse", Access::kRead, lse_type);
  check_written(r, 5, "dqkv", r.type(qkv));
  r.is(6, "dkv", Access::kWrite, r.type(kv));
}

// Parts [n,T,W] of heads or of shares, and the whole they make: one part, or three of q, k and v.
void check_exchanged_parts(OperandRules& r) {
  const OpKind kind = r.op().kind;
  if (!r.count(2, 4)) return;
  const std::size_t operands = r.op().operands.size();
  r.require(operands != 3, "two parts, expected one, or three of q, k and v");
  const bool splits = kind == OpKind::kHeadsSplit || kind == OpKind::kSharesSplit;
  const bool heads = kind == OpKind::kHeadsSplit || kind == OpKind::kHeadsJoin;
  const std::size_t whole = splits ? 0 : operands - 1;
  const std::size_t first = splits ? 1 : 0;
  r.access(whole, "whole", splits ? Access::kRead : Access::kWrite);
  r.has_rank(whole, "whole", 2);
  std::int64_t width = 0;
  for (std::size_t i = first; i < first + operands - 1; ++i) {
    r.access(i, "part", splits ? Access::kWrite : Access::kRead);
    r.has_dtype(i, "part", r.type(whole).dtype);
    r.has_rank(i, "part", 3);
    if (!r.ok()) return;
    r.require(r.dim(i, 0) == r.dim(first, 0) && r.dim(i, 1) == r.dim(first, 1), "parts differ in members or rows");
    width += r.dim(i, 2).bound;
  }
  const std::int64_t members = r.dim(first, 0).bound;
  const std::int64_t rows = r.dim(first, 1).bound;
  r.has_shape(whole, "whole", {heads ? rows : members * rows, heads ? members * width : width});
  const std::int64_t batch = r.op().attributes.batch;
  r.require(heads || (batch > 0 && rows % (2 * batch) == 0), "2 * batch must divide the token rows");
}

// A key and a value head put together from the parts of the `count` members that share them.
void check_own_group(OperandRules& r) {
  if (!r.count(2, 2)) return;
  const bool forward = r.op().kind == OpKind::kOwnGroup;
  const std::size_t parts = forward ? 0 : 1;
  const std::size_t qkv = 1 - parts;
  check_heads(r, qkv);
  if (!r.ok()) return;
  const Attributes& a = r.op().attributes;
  r.require(r.op().index_role.has_value(), "no index role, expected the one whose members have the parts");
  r.require(a.kv_heads == 1, "kv_heads must be 1: a head that members share");
  r.require(a.count > 0 && a.head_dim % a.count == 0, "count (members that share a head) must divide head_dim");
  r.has_rank(parts, "parts", 3);
  if (!r.ok()) return;
  r.require(r.dim(parts, 0).bound % a.count == 0, "count (members that share a head) must divide the parts");
  const std::int64_t width = std::int64_t{a.heads} * a.head_dim + 2 * (a.head_dim / a.count);
  r.is(parts, "parts", forward ? Access::kRead : Access::kWrite,
       {r.type(qkv).dtype, {r.dim(parts, 0), r.dim(qkv, 0), width}});
  r.access(qkv, "qkv", forward ? Access::kWrite : Access::kRead);
}

}  // namespace

void check_context_parallel(OperandRules& r) {
  switch (r.op().kind) {
    case OpKind::kOwnRows:
      return check_own_rows(r);
    case OpKind::kKvExtract:
    case OpKind::kKvAccumulate:
      return check_kv_columns(r);
    case OpKind::kShareAttentionForward:
    case OpKind::kShareAttentionBackward:
      return check_share_attention(r);
    case OpKind::kHeadsSplit:
    case OpKind::kHeadsJoin:
    case OpKind::kSharesJoin:
    case OpKind::kSharesSplit:
      return check_exchanged_parts(r);
    case OpKind::kOwnGroup:
    case OpKind::kOwnGroupBackward:
      return check_own_group(r);
    default:
      CHECK(false, to_string(r.op().kind));
  }
}

}  // namespace stepcast::program
