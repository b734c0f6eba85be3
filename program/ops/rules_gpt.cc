// Shape rules of what GPT-style decoders add: layer norms, biases, plain activations, dropout, positions, and attention
// whose scores are materialised. T is the number of token rows, s the tokens of a sequence.
#include <cmath>

#include "base/check.h"
#include "program/ops/operand_rules.h"

namespace stepcast::program {
namespace {

TensorType stats_of(const OperandRules& r, std::size_t x) {
  return {statistics_type(r.type(x).dtype), {2, r.dim(x, 0)}};
}

// The operand that decides the others: a float of two extents, read.
bool leads(OperandRules& r, std::size_t i, std::string_view name) {
  r.has_float(i, name);
  r.has_rank(i, name, 2);
  r.access(i, name, Access::kRead);
  return r.ok();
}

void check_layernorm_forward(OperandRules& r) {
  if (!r.count(5, 5) || !leads(r, 0, "x")) return;
  const TensorType vector{r.type(0).dtype, {r.dim(0, 1)}};
  r.is(1, "weight", Access::kRead, vector);
  r.is(2, "bias", Access::kRead, vector);
  r.is_like_or_quantised(3, "y", r.type(0));
  r.is(4, "stats", Access::kWrite, stats_of(r, 0));
  const double eps = r.op().attributes.value;
  r.require(eps > 0 && std::isfinite(eps), "value (eps) must be above 0");
}

void check_layernorm_backward(OperandRules& r) {
  const bool input = r.op().kind == OpKind::kLayerNormBackwardInput;
  if (!r.count(5, input ? 6 : 5) || !leads(r, 0, "dy")) return;
  r.is(1, "x", Access::kRead, r.type(0));
  r.is(2, "stats", Access::kRead, stats_of(r, 0));
  if (input) {
    r.is(3, "weight", Access::kRead, {r.type(0).dtype, {r.dim(0, 1)}});
    r.is(4, "dx", Access::kWrite, r.type(0));
    if (r.op().operands.size() == 6) r.is(5, "residual", Access::kRead, r.type(0));
    return;
  }
  for (const std::size_t i : {3U, 4U}) {
    const std::string_view name = i == 3 ? "dweight" : "dbias";
    r.access(i, name, Access::kAccumulate);
    r.has_float_like(i, name, r.type(0).dtype);
    r.has_shape(i, name, {r.dim(0, 1)});
  }
}

void check_bias_backward(OperandRules& r) {
  if (!r.count(2, 2) || !leads(r, 0, "dout")) return;
  r.access(1, "dbias", Access::kAccumulate);
  r.has_float_like(1, "dbias", r.type(0).dtype);
  r.has_shape(1, "dbias", {r.dim(0, 1)});
}

// Activations of one matrix; the bias of the projection before them comes last.
void check_activation(OperandRules& r) {
  const bool forward = r.op().kind == OpKind::kGeluForward || r.op().kind == OpKind::kSquaredReluForward;
  const std::size_t bias = forward ? 2 : 3;
  if (!r.count(bias, bias + 1) || !leads(r, 0, forward ? "in" : "dout")) return;
  if (forward) {
    r.is(1, "out", Access::kWrite, r.type(0));
  } else {
    r.is(1, "in", Access::kRead, r.type(0));
    r.is(2, "din", Access::kWrite, r.type(0));
  }
  if (r.op().operands.size() > bias) r.is(bias, "bias", Access::kRead, {r.type(0).dtype, {r.dim(0, 1)}});
}

void check_bias_dropout_add(OperandRules& r) {
  if (!r.count(4, 5) || !leads(r, 0, "in")) return;
  r.is(1, "bias", Access::kRead, {r.type(0).dtype, {r.dim(0, 1)}});
  r.is(2, "residual", Access::kRead, r.type(0));
  r.is(3, "out", Access::kWrite, r.type(0));
  check_dropout(r);
  const bool has_mask = r.op().operands.size() == 5;
  r.require(has_mask == (r.op().attributes.value > 0), "a mask goes with value (the dropout probability) above 0");
  if (has_mask) r.is(4, "mask", Access::kWrite, {DType::kU8, r.type(0).shape});
}

void check_dropout_op(OperandRules& r) {
  if (!r.count(3, 3)) return;
  const bool forward = r.op().kind == OpKind::kDropoutForward;
  const std::size_t mask = forward ? 2 : 1;
  const std::size_t out = forward ? 1 : 2;
  r.has_float(0, forward ? "in" : "dout");
  r.access(0, forward ? "in" : "dout", Access::kRead);
  r.is(mask, "mask", forward ? Access::kWrite : Access::kRead, {DType::kU8, r.type(0).shape});
  r.is(out, forward ? "out" : "din", Access::kWrite, r.type(0));
  const Attributes& a = r.op().attributes;
  if (!forward)
    return r.require(a.value > 0 && a.value < 1, "value (the dropout probability) must be above 0, below 1");
  const bool scores = r.type(0).shape.rank == 3;
  r.require(scores || r.type(0).shape.rank == 2, "expected rows of tokens, or scores of batch * heads");
  check_dropout(r);
  r.require(!scores || (a.heads > 0 && r.dim(0, 0).bound == a.heads * a.batch), "scores are of batch * heads");
}

void check_position(OperandRules& r) {
  if (!r.count(2, 2)) return;
  const bool forward = r.op().kind == OpKind::kPositionForward;
  const std::size_t table = forward ? 0 : 1;
  const std::size_t x = 1 - table;
  r.has_float(x, forward ? "x" : "dx");
  r.has_rank(x, forward ? "x" : "dx", 2);
  r.access(x, forward ? "x" : "dx", forward ? Access::kAccumulate : Access::kRead);
  r.access(table, forward ? "table" : "dtable", forward ? Access::kRead : Access::kAccumulate);
  r.has_rank(table, forward ? "table" : "dtable", 2);
  if (!r.ok()) return;
  if (forward) {
    r.has_dtype(table, "table", r.type(x).dtype);
  } else {
    r.has_float_like(table, "dtable", r.type(x).dtype);
  }
  r.has_shape(table, forward ? "table" : "dtable", {r.dim(table, 0), r.dim(x, 1)});
  r.require(r.op().attributes.batch > 0, "batch must be above 0");
}

// [batch * heads, s, s] beside the qkv operand.
TensorType scores_type(const OperandRules& r, std::size_t qkv) {
  const Attributes& a = r.op().attributes;
  const std::int64_t sequence = r.dim(qkv, 0).bound / a.batch;
  return {r.type(qkv).dtype, {a.batch * a.heads, sequence, sequence}};
}

void check_scores(OperandRules& r) {
  const bool forward = r.op().kind == OpKind::kAttentionScoresForward;
  if (!r.count(forward ? 2 : 3, forward ? 2 : 3)) return;
  const std::size_t qkv = forward ? 0 : 1;
  check_heads(r, qkv);
  if (!r.ok()) return;
  r.access(qkv, "qkv", Access::kRead);
  r.is(1 - qkv, forward ? "scores" : "dscores", forward ? Access::kWrite : Access::kRead, scores_type(r, qkv));
  if (!forward) r.is(2, "dqkv", Access::kAccumulate, r.type(qkv));
}

void check_context(OperandRules& r) {
  const bool forward = r.op().kind == OpKind::kAttentionContextForward;
  if (!r.count(forward ? 3 : 5, forward ? 3 : 5)) return;
  const std::size_t qkv = forward ? 1 : 2;
  check_heads(r, qkv);
  if (!r.ok()) return;
  const Attributes& a = r.op().attributes;
  const TensorType out{r.type(qkv).dtype, {r.dim(qkv, 0), std::int64_t{a.heads} * a.head_dim}};
  r.access(qkv, "qkv", Access::kRead);
  r.is(qkv - 1, "probabilities", Access::kRead, scores_type(r, qkv));
  r.is(forward ? 2 : 0, forward ? "out" : "dout", forward ? Access::kWrite : Access::kRead, out);
  if (forward) return;
  r.is(3, "dprobabilities", Access::kWrite, scores_type(r, qkv));
  r.is(4, "dqkv", Access::kWrite, r.type(qkv));
}

void check_softmax(OperandRules& r) {
  if (!r.count(2, 2)) return;
  const bool forward = r.op().kind == OpKind::kSoftmaxForward;
  r.has_float(0, forward ? "scores" : "probabilities");
  r.has_rank(0, forward ? "scores" : "probabilities", 3);
  r.access(0, forward ? "scores" : "probabilities", Access::kRead);
  r.is(1, forward ? "probabilities" : "gradient", forward ? Access::kWrite : Access::kAccumulate, r.type(0));
  r.require(r.dim(0, 1) == r.dim(0, 2), "scores must be square");
  const Attributes& a = r.op().attributes;
  r.require(a.count >= 0, "count (heads with ALiBi) must not be negative");
  r.require(a.count == 0 || (a.heads > 0 && r.dim(0, 0).bound % a.heads == 0), "ALiBi needs the heads of the scores");
}

}  // namespace

void check_gpt_layer(OperandRules& r) {
  switch (r.op().kind) {
    case OpKind::kLayerNormForward:
      return check_layernorm_forward(r);
    case OpKind::kLayerNormBackwardInput:
    case OpKind::kLayerNormBackwardWeight:
      return check_layernorm_backward(r);
    case OpKind::kBiasBackward:
      return check_bias_backward(r);
    case OpKind::kGeluForward:
    case OpKind::kGeluBackward:
    case OpKind::kSquaredReluForward:
    case OpKind::kSquaredReluBackward:
      return check_activation(r);
    case OpKind::kBiasDropoutAdd:
      return check_bias_dropout_add(r);
    case OpKind::kDropoutForward:
    case OpKind::kDropoutBackward:
      return check_dropout_op(r);
    case OpKind::kPositionForward:
    case OpKind::kPositionBackward:
      return check_position(r);
    case OpKind::kAttentionScoresForward:
    case OpKind::kAttentionScoresBackward:
      return check_scores(r);
    case OpKind::kSoftmaxForward:
    case OpKind::kSoftmaxBackward:
      return check_softmax(r);
    case OpKind::kAttentionContextForward:
    case OpKind::kAttentionContextBackward:
      return check_context(r);
    default:
      CHECK(false, to_string(r.op().kind));
  }
}

}  // namespace stepcast::program
