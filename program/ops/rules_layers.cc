// Shape rules of the decoder's layers and of the vocabulary-parallel loss. T is the number of token rows.
#include <cmath>

#include "base/check.h"
#include "program/ops/operand_rules.h"

namespace stepcast::program {
namespace {

// Tokens of different samples are drawn 2^20 positions apart, one more position than tokens being read.
constexpr std::int64_t kMostPositions = std::int64_t{1} << 20;

void check_token_load(OperandRules& r) {
  if (!r.count(2, 2)) return;
  const Attributes& a = r.op().attributes;
  r.has_rank(0, "tokens", 1);
  r.is(0, "tokens", Access::kWrite, {DType::kI32, {r.dim(0, 0)}});
  r.is(1, "targets", Access::kWrite, r.type(0));
  r.require(a.batch > 0 && r.dim(0, 0).bound % a.batch == 0, "batch must divide the token rows");
  r.require(a.batch > 0 && r.dim(0, 0).bound / a.batch < kMostPositions, "a sequence must be shorter than 2^20 tokens");
  r.require(a.microbatches > 0 && a.count >= 0 && a.count < a.microbatches, "count must be below microbatches");
  r.require(a.vocab > 0, "vocab must be above 0");
}

void check_embedding(OperandRules& r) {
  if (!r.count(3, 3)) return;
  const bool forward = r.op().kind == OpKind::kEmbeddingForward;
  const std::size_t table = forward ? 1 : 2;
  const std::size_t rows = forward ? 2 : 1;
  r.has_rank(0, "tokens", 1);
  r.is(0, "tokens", Access::kRead, {DType::kI32, {r.dim(0, 0)}});
  r.has_rank(table, forward ? "table" : "dtable", 2);
  r.has_float(rows, forward ? "out" : "dout");
  r.access(table, forward ? "table" : "dtable", forward ? Access::kRead : Access::kAccumulate);
  r.access(rows, forward ? "out" : "dout", forward ? Access::kWrite : Access::kRead);
  r.has_shape(rows, forward ? "out" : "dout", {r.dim(0, 0), r.dim(table, 1)});
  if (forward) {
    r.has_dtype(table, "table", r.type(rows).dtype);
  } else {
    r.has_float_like(table, "dtable", r.type(rows).dtype);
  }
}

void check_rmsnorm_forward(OperandRules& r) {
  if (!r.count(4, 4)) return;
  const DType compute = r.type(0).dtype;
  r.has_float(0, "x");
  r.has_rank(0, "x", 2);
  r.access(0, "x", Access::kRead);
  r.is(1, "weight", Access::kRead, {compute, {r.dim(0, 1)}});
  r.is_like_or_quantised(2, "y", r.type(0));
  r.is(3, "rstd", Access::kWrite, {statistics_type(compute), {r.dim(0, 0)}});
  const double eps = r.op().attributes.value;
  r.require(eps > 0 && std::isfinite(eps), "value (eps) must be above 0");
}

void check_rmsnorm_backward(OperandRules& r) {
  const bool input = r.op().kind == OpKind::kRmsNormBackwardInput;
  if (!r.count(input ? 5 : 4, input ? 6 : 4)) return;
  const DType compute = r.type(0).dtype;
  r.has_float(0, "dy");
  r.has_rank(0, "dy", 2);
  r.access(0, "dy", Access::kRead);
  r.is(1, "x", Access::kRead, r.type(0));
  r.is(2, "rstd", Access::kRead, {statistics_type(compute), {r.dim(0, 0)}});
  if (!input) {
    r.access(3, "dweight", Access::kAccumulate);
    r.has_float_like(3, "dweight", compute);
    return r.has_shape(3, "dweight", {r.dim(0, 1)});
  }
  r.is(3, "weight", Access::kRead, {compute, {r.dim(0, 1)}});
  r.is(4, "dx", Access::kWrite, r.type(0));
  if (r.op().operands.size() == 6) r.is(5, "residual", Access::kRead, r.type(0));
}

void check_matmul(OperandRules& r) {
  if (!r.count(3, 4)) return;
  const MatmulForm form = r.op().attributes.form;
  for (const std::size_t i : {0U, 1U}) {
    r.access(i, i == 0 ? "a" : "b", Access::kRead);
    r.has_rank(i, i == 0 ? "a" : "b", 2);
  }
  const DType compute = is_quantised(r.type(0).dtype) ? DType::kBf16 : r.type(0).dtype;
  if (compute == r.type(0).dtype) r.has_float(0, "a");
  r.has_dtype(1, "b", r.type(0).dtype);
  r.has_float_like(2, "c", compute);
  r.require(r.op().operands[2].access != Access::kRead, "c (operand 2) has access read, expected write or accumulate");
  const Dim m = r.dim(0, form == MatmulForm::kTN ? 1 : 0);
  const Dim k = r.dim(0, form == MatmulForm::kTN ? 0 : 1);
  const Dim n = r.dim(1, form == MatmulForm::kNT ? 0 : 1);
  r.has_shape(1, "b", form == MatmulForm::kNT ? Shape{n, k} : Shape{k, n});
  r.has_shape(2, "c", {m, n});
  if (r.op().operands.size() < 4) return;
  r.is(3, "bias", Access::kRead, {compute, {n}});
  r.require(r.op().operands[2].access == Access::kWrite, "a bias goes with a result that is written");
}

void check_rotary(OperandRules& r) {
  if (!r.count(1, 1)) return;
  const Attributes& a = r.op().attributes;
  r.access(0, "qkv", Access::kAccumulate);
  check_heads(r, 0);
  r.require(a.head_dim % 2 == 0, "head_dim must be even: rotary turns pairs");
  r.require(a.count >= 0 && a.count % 2 == 0 && a.count <= a.head_dim,
            "count (turned columns of a head) must be even and at most head_dim");
  r.require(a.value > 0 && std::isfinite(a.value), "value (theta) must be above 0");
  r.require(!r.op().index_role || r.dim(0, 0).bound % (2 * a.batch) == 0, "2 * batch must divide the rows of a share");
}

// Where the operands of a norm of queries and keys stand.
struct QkNormOperands {
  std::size_t q_weight, k_weight, qkv, raw, rstd;
};

QkNormOperands qk_norm_operands(OpKind kind) {
  if (kind == OpKind::kQkNormForward) return {0, 1, 2, 3, 4};
  if (kind == OpKind::kQkNormBackwardInput) return {2, 3, 4, 0, 1};
  return {3, 4, 0, 1, 2};
}

void check_qk_norm(OperandRules& r) {
  if (!r.count(5, 5)) return;
  const OpKind kind = r.op().kind;
  const bool forward = kind == OpKind::kQkNormForward;
  const bool weight = kind == OpKind::kQkNormBackwardWeight;
  const QkNormOperands at = qk_norm_operands(kind);
  const Attributes& a = r.op().attributes;
  check_heads(r, at.qkv);
  r.access(at.qkv, "qkv", weight ? Access::kRead : Access::kAccumulate);
  r.has_rank(at.q_weight, "q_weight", 1);
  r.has_rank(at.k_weight, "k_weight", 1);
  if (!r.ok()) return;
  const std::int64_t q = std::int64_t{a.heads} * a.head_dim;
  const std::int64_t k = std::int64_t{a.kv_heads} * a.head_dim;
  const std::int64_t q_weight = r.dim(at.q_weight, 0).bound;
  const std::int64_t k_weight = r.dim(at.k_weight, 0).bound;
  const bool per_head = q_weight == a.head_dim && k_weight == a.head_dim;
  r.require(per_head || (q_weight == q && k_weight == k), "weights must be of one head, or as wide as q and as k");
  const DType compute = r.type(at.qkv).dtype;
  for (const std::size_t i : {at.q_weight, at.k_weight}) {
    r.access(i, "weight", weight ? Access::kAccumulate : Access::kRead);
    if (weight) {
      r.has_float_like(i, "weight", compute);
    } else {
      r.has_dtype(i, "weight", compute);
    }
  }
  const Access kept = forward ? Access::kWrite : Access::kRead;
  const std::int64_t norms = per_head ? std::int64_t{a.heads} + a.kv_heads : 2;
  r.is(at.raw, "raw", kept, {compute, {r.dim(at.qkv, 0), q + k}});
  r.is(at.rstd, "rstd", kept, {statistics_type(compute), {r.dim(at.qkv, 0), norms}});
  r.require(!forward || (a.value > 0 && std::isfinite(a.value)), "value (eps) must be above 0");
}

void check_attention(OperandRules& r) {
  const bool forward = r.op().kind == OpKind::kAttentionForward;
  if (!r.count(forward ? 3 : 5, forward ? 3 : 5)) return;
  const std::size_t qkv = forward ? 0 : 1;
  const std::size_t out = forward ? 1 : 2;
  const std::size_t lse = forward ? 2 : 3;
  const Access made = forward ? Access::kWrite : Access::kRead;
  check_heads(r, qkv);
  if (!r.ok()) return;
  const Attributes& a = r.op().attributes;
  check_dropout(r);
  r.require(a.count >= 0, "count (heads with ALiBi) must not be negative");
  const DType compute = r.type(qkv).dtype;
  const TensorType out_type{compute, {r.dim(qkv, 0), std::int64_t{a.heads} * a.head_dim}};
  r.access(qkv, "qkv", Access::kRead);
  r.is(out, "out", made, out_type);
  r.is(lse, "lse", made, {statistics_type(compute), {r.dim(qkv, 0), std::int64_t{a.heads}}});
  if (forward) return;
  r.is(0, "dout", Access::kRead, out_type);
  r.is(4, "dqkv", Access::kWrite, r.type(qkv));
}

void check_swiglu(OperandRules& r) {
  const bool forward = r.op().kind == OpKind::kSwiGluForward;
  if (!r.count(forward ? 2 : 3, forward ? 2 : 3)) return;
  const std::size_t gate_up = forward ? 0 : 1;
  r.has_float(gate_up, "gate_up");
  r.has_rank(gate_up, "gate_up", 2);
  r.access(gate_up, "gate_up", Access::kRead);
  r.require(r.dim(gate_up, 1).bound % 2 == 0, "gate_up must have an even number of columns");
  const TensorType half{r.type(gate_up).dtype, {r.dim(gate_up, 0), r.dim(gate_up, 1).bound / 2}};
  if (forward) return r.is(1, "out", Access::kWrite, half);
  r.is(0, "dout", Access::kRead, half);
  r.is(2, "dgate_up", Access::kWrite, r.type(gate_up));
}

}  // namespace

void check_layer(OperandRules& r) {
  switch (r.op().kind) {
    case OpKind::kTokenLoad:
      return check_token_load(r);
    case OpKind::kEmbeddingForward:
    case OpKind::kEmbeddingBackward:
      return check_embedding(r);
    case OpKind::kRmsNormForward:
      return check_rmsnorm_forward(r);
    case OpKind::kRmsNormBackwardInput:
    case OpKind::kRmsNormBackwardWeight:
      return check_rmsnorm_backward(r);
    case OpKind::kMatmul:
      return check_matmul(r);
    case OpKind::kRotaryForward:
    case OpKind::kRotaryBackward:
      return check_rotary(r);
    case OpKind::kQkNormForward:
    case OpKind::kQkNormBackwardInput:
    case OpKind::kQkNormBackwardWeight:
      return check_qk_norm(r);
    case OpKind::kAttentionForward:
    case OpKind::kAttentionBackward:
      return check_attention(r);
    case OpKind::kSwiGluForward:
    case OpKind::kSwiGluBackward:
      return check_swiglu(r);
    default:
      return check_gpt_layer(r);
  }
}

void check_loss(OperandRules& r) {
  const OpKind kind = r.op().kind;
  const std::size_t counts[] = {2, 4, 3, 4};
  const std::size_t n = counts[static_cast<std::size_t>(kind) - static_cast<std::size_t>(OpKind::kCrossEntropyMax)];
  if (!r.count(n, n)) return;
  const bool has_logits = kind != OpKind::kCrossEntropyLoss;
  const std::size_t logits = kind == OpKind::kCrossEntropyBackward ? 3 : 0;
  const std::size_t max = kind == OpKind::kCrossEntropyMax || kind == OpKind::kCrossEntropySum ? 1 : 0;
  if (has_logits) {
    r.has_float(logits, "logits");
    r.has_rank(logits, "logits", 2);
    r.access(logits, "logits", kind == OpKind::kCrossEntropyBackward ? Access::kAccumulate : Access::kRead);
  } else {
    r.has_float(max, "max");
    r.has_rank(max, "max", 1);
  }
  const Dim tokens = has_logits ? r.dim(logits, 0) : r.dim(max, 0);
  const DType statistics = statistics_type(r.type(has_logits ? logits : max).dtype);
  r.is(max, "max", kind == OpKind::kCrossEntropyMax ? Access::kWrite : Access::kRead, {statistics, {tokens}});
  if (kind == OpKind::kCrossEntropyMax) return;
  const std::size_t sums = kind == OpKind::kCrossEntropySum ? 3 : 1;
  r.is(sums, "sums", kind == OpKind::kCrossEntropySum ? Access::kWrite : Access::kRead, {statistics, {2, tokens}});
  if (kind == OpKind::kCrossEntropyLoss) {
    r.is(2, "loss", Access::kAccumulate, {statistics, {1}});
  } else {
    r.is(2, "targets", Access::kRead, {DType::kI32, {tokens}});
  }
  const double scale = r.op().attributes.value;
  if (kind != OpKind::kCrossEntropySum)
    r.require(scale > 0 && std::isfinite(scale), "value (the scale) must be above 0");
}

}  // namespace stepcast::program
