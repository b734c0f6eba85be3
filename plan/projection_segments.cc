// Projections of a decoder layer under tensor and sequence parallelism: see decoder_segments.h for slots, order and
// sources. Biases of column-parallel projections are split as their rows; those of row-parallel ones are added behind
// the reduction, to the rank's own tokens, so that their gradient is that of the own tokens as well. Where operands of
// matmuls are quantised, that is done here too: quantised_parts.h.
#include <optional>
#include <string>

#include "plan/quantised_parts.h"
#include "plan/segment_context.h"
#include "plan/tensor_overlap.h"

namespace stepcast::plan {
namespace {

using program::acc;
using program::DType;
using program::in;
using program::MatmulForm;
using program::Op;
using program::OpKind;
using program::out;
using program::Ref;
using program::SegmentBuilder;
using program::SegmentId;
using program::Stream;
using Context = SegmentContext;

void add_rotary(SegmentBuilder& b, const Context& c, OpKind kind, Ref qkv) {
  Op& op = b.op(kind, Stream::kCompute, "rope", {acc(qkv)});
  set_heads(op, c.x);
  const models::Architecture& model = c.scenario.model;
  op.attributes.value = model.rope_theta;
  if (model.rotary_fraction != 1) op.attributes.count = model.rotary_width();
  if (c.x.context > 1) op.index_role = c.roles.cp;
}

void add_qk_norm(SegmentBuilder& b, const Context& c, Ref qkv) {
  const Shapes& x = c.x;
  const Ref q_weight = b.slot("q_weight", x.compute, {x.q_norm});
  const Ref k_weight = b.slot("k_weight", x.compute, {x.k_norm});
  const Ref raw = b.slot("raw", x.compute, {x.tokens, x.qk});
  const Ref rstd = b.slot("qk_rstd", DType::kF32, x.qk_stats());
  Op& op = b.op(OpKind::kQkNormForward, Stream::kCompute, "qk_norm",
                {in(q_weight), in(k_weight), acc(qkv), out(raw), out(rstd)});
  set_heads(op, x);
  op.attributes.value = c.scenario.model.norm_eps;
}

void add_qk_norm_backward(SegmentBuilder& b, const Context& c, Ref dqkv) {
  const Shapes& x = c.x;
  const Ref raw = b.slot("raw", x.compute, {x.tokens, x.qk});
  const Ref rstd = b.slot("qk_rstd", DType::kF32, x.qk_stats());
  const Ref q_weight = b.slot("q_weight", x.compute, {x.q_norm});
  const Ref k_weight = b.slot("k_weight", x.compute, {x.k_norm});
  const Ref dq = b.slot("dq_weight", x.gradients, {x.q_norm});
  const Ref dk = b.slot("dk_weight", x.gradients, {x.k_norm});
  set_heads(b.op(OpKind::kQkNormBackwardWeight, Stream::kCompute, "qk_norm_weight",
                 {in(dqkv), in(raw), in(rstd), acc(dq), acc(dk)}),
            x);
  set_heads(b.op(OpKind::kQkNormBackwardInput, Stream::kCompute, "qk_norm",
                 {in(raw), in(rstd), in(q_weight), in(k_weight), acc(dqkv)}),
            x);
}

void set_group(Op& op, const Context& c) {
  set_heads(op, c.x);
  op.attributes.count = c.x.kv_ranks;
  op.index_role = c.roles.tp;
}

// Megatron-Core (SelfAttention.get_query_key_value_tensors) with fewer key-value heads than tp ranks: the whole
// projection is gathered over tp, and each rank takes its group. Its ranks hold consecutive rows of the groups'
// queries, key and value; here they hold own queries and a part of the group's key and value: as many rows, the same
// messages.
void join_group(SegmentBuilder& b, const Context& c, Ref part, Ref qkv) {
  const Shapes& x = c.x;
  const Ref parts = b.temp("parts", x.compute, {x.tensor_ranks, x.tokens, x.qkv_rows}, kActivations);
  tp_collective(b, c, OpKind::kAllGather, "gather_heads", {in(part), out(parts)});
  set_group(b.op(OpKind::kOwnGroup, Stream::kCompute, "own_group", {in(parts), out(qkv)}), c);
}

// Ranks that share a head sum their gradients of it: each gets those of its part.
void split_group(SegmentBuilder& b, const Context& c, Ref dqkv, Ref dpart) {
  const Shapes& x = c.x;
  const Ref parts = b.temp("dparts", x.compute, {x.tensor_ranks, x.tokens, x.qkv_rows}, kActivations);
  set_group(b.op(OpKind::kOwnGroupBackward, Stream::kCompute, "own_group", {in(dqkv), out(parts)}), c);
  tp_collective(b, c, OpKind::kReduceScatter, "reduce_heads", {in(parts), out(dpart)});
}

SegmentId column_forward(const Context& c, const std::string& label, const std::string& name, std::int64_t width,
                         HeadOps heads, ColumnBias bias, const std::optional<ColumnOverlap>& overlap) {
  const Shapes& x = c.x;
  SegmentBuilder f(label);
  const bool by_norm = c.quantisation != nullptr && norm_quantises(c.scenario);
  const Ref n = f.slot("n", by_norm ? c.quantisation->type : x.compute, {x.local_tokens, x.hidden});
  const std::int64_t rows = heads.shared_kv ? x.qkv_rows : width;
  const Ref w = weight_slot(f, c, rows, x.hidden, true);
  const Ref y = f.slot("y", x.compute, {x.tokens, width});
  const Ref projected = heads.shared_kv ? f.temp("part", x.compute, {x.tokens, rows}, kActivations) : y;
  const Ref own = c.quantisation == nullptr ? n : quantise_column_input(f, c, name, n);
  Ref input = own;
  if (x.sequence_parallel) input = f.temp("gathered", f.type_of(own).dtype, {x.tokens, x.hidden}, kActivations);
  std::optional<Ref> b;
  if (bias == ColumnBias::kInMatmul) b = f.slot("bias", x.compute, {rows});
  if (overlap) {
    add_gather_matmul(f, c, name, {own, input, w, projected, b}, overlap->forward);
  } else {
    if (x.sequence_parallel) tp_collective(f, c, OpKind::kAllGather, "gather", {in(own), out(input)});
    matmul(f, MatmulForm::kNT, name, {in(input), in(w), out(projected)}, b);
  }
  if (heads.shared_kv) join_group(f, c, projected, y);
  if (heads.norm) add_qk_norm(f, c, y);
  if (heads.rotary) add_rotary(f, c, OpKind::kRotaryForward, y);
  return c.store(f);
}

// The input gradient of own rows: the sum over tp of d[T,rows] w.
void reduced_input_grad(SegmentBuilder& i, const Context& c, const std::string& name, Ref d, Ref w, Ref dn,
                        const std::optional<ColumnOverlap>& overlap) {
  const Shapes& x = c.x;
  if (!x.sequence_parallel) {
    matmul(i, input_gradient_form(c), name, {in(d), in(w), out(dn)});
    if (x.tensor_parallel) tp_collective(i, c, OpKind::kAllReduce, "reduce", {acc(dn)});
    return;
  }
  const Ref partial = i.temp("partial", x.compute, {x.tokens, x.hidden}, kActivations);
  Op& product = matmul(i, input_gradient_form(c), name, {in(d), in(w), out(partial)});
  if (overlap) product.attributes.multiprocessors = overlap->input_grad.left_free();
  Op& reduce = tp_collective(i, c, OpKind::kReduceScatter, "reduce", {in(partial), out(dn)});
  if (overlap) reduce.attributes.multiprocessors = overlap->weight_grad.multiprocessors;
}

SegmentId column_input_grad(const Context& c, const std::string& label, const std::string& name, std::int64_t width,
                            HeadOps heads, const std::optional<ColumnOverlap>& overlap) {
  const Shapes& x = c.x;
  SegmentBuilder i(label);
  const std::int64_t rows = heads.shared_kv ? x.qkv_rows : width;
  const Ref dy = i.slot("dy", x.compute, {x.tokens, width});
  const Ref w = weight_slot(i, c, rows, x.hidden, false);
  const Ref dn = i.slot("dn", x.compute, {x.local_tokens, x.hidden});
  if (x.sequence_parallel) {
    const program::DType kept = c.quantisation == nullptr ? x.compute : c.quantisation->type;
    const Ref n = i.slot("n", kept, {x.local_tokens, x.hidden});
    std::optional<UserBuffer> bulk;
    if (overlap) bulk = overlap->input_grad;
    gather_kept_input(i, c, n, weight_gradient_slot(i, c, "gathered", x.hidden), bulk);
  }
  std::optional<Ref> other;
  if (c.quantisation != nullptr) other = weight_gradient_slot(i, c, "d", rows);
  if (heads.rotary) add_rotary(i, c, OpKind::kRotaryBackward, dy);
  if (heads.norm) add_qk_norm_backward(i, c, dy);
  Ref projected = dy;
  if (heads.shared_kv) {
    projected = i.slot("dpart", x.compute, {x.tokens, rows});
    split_group(i, c, dy, projected);
  }
  const Ref d = other ? quantise_gradient(i, c, name, projected, *other, rows) : projected;
  reduced_input_grad(i, c, name, d, w, dn, overlap);
  if (x.tensor_parallel && !c.scenario.plan.overlap_tp_input_grad) {
    i.op(OpKind::kJoin, Stream::kCompute, "wait", {}).attributes.join_stream = Stream::kTp;
  }
  return c.store(i);
}

// dw[rows,cols] += left[T,rows]^T right[T,cols]; with a bias, dbias[rows] += the sum of the `biased` rows of its own
// output's gradient. `left_free`: multiprocessors that the matmul leaves to communication, or below zero.
SegmentId weight_grad(const Context& c, const std::string& label, const std::string& name, std::int64_t rows,
                      std::int64_t cols, std::optional<std::int64_t> biased, std::int32_t left_free) {
  SegmentBuilder w(label);
  const Ref left = weight_gradient_slot(w, c, "left", rows);
  const Ref right = weight_gradient_slot(w, c, "right", cols);
  const Ref dw = w.slot("dw", c.x.gradients, {rows, cols});
  if (c.scenario.accumulation == GradientAccumulation::kFused) {
    matmul(w, weight_gradient_form(c), name, {in(left), in(right), acc(dw)}).attributes.multiprocessors = left_free;
  } else {
    const Ref fresh = w.temp("fresh", c.x.compute, {rows, cols}, program::MemoryClass::kGradients);
    matmul(w, weight_gradient_form(c), name, {in(left), in(right), out(fresh)}).attributes.multiprocessors = left_free;
    w.op(OpKind::kAccumulate, Stream::kCompute, name + "_accumulate", {in(fresh), acc(dw)});
  }
  if (biased) {
    const Ref d = w.slot("d", c.x.compute, {*biased, rows});
    const Ref dbias = w.slot("dbias", c.x.gradients, {rows});
    w.op(OpKind::kBiasBackward, Stream::kCompute, name + "_bias", {in(d), acc(dbias)});
  }
  return c.store(w);
}

// How a projection's output meets the residual stream: with bias and dropout in one op, as Megatron's
// bias_dropout_add fuses them; a dropout without bias is an op of its own.
void add_to_residual(SegmentBuilder& f, const Context& c, Ref sum, Ref residual, Ref y, ResidualSum to) {
  const Shapes& x = c.x;
  if (!to.bias && !c.drops()) {
    f.op(OpKind::kAdd, Stream::kCompute, "residual", {in(residual), in(sum), out(y)});
    return;
  }
  if (to.bias) {
    const Ref bias = f.slot("bias", x.compute, {x.hidden});
    Op& op = f.op(OpKind::kBiasDropoutAdd, Stream::kCompute, "residual", {in(sum), in(bias), in(residual), out(y)});
    if (!c.drops()) return;
    set_dropout(op, c, to.site);
    op.operands.push_back(out(f.slot("mask", DType::kU8, {x.local_tokens, x.hidden})));
    return;
  }
  const Ref mask = f.slot("mask", DType::kU8, {x.local_tokens, x.hidden});
  const Ref dropped = f.temp("dropped", x.compute, {x.local_tokens, x.hidden}, kActivations);
  set_dropout(f.op(OpKind::kDropoutForward, Stream::kCompute, "dropout", {in(sum), out(dropped), out(mask)}), c,
              to.site);
  f.op(OpKind::kAdd, Stream::kCompute, "residual", {in(residual), in(dropped), out(y)});
}

// The product of a[T,in] and w^T summed over tp, the rank's own rows of it under sequence parallelism.
struct RowProduct {
  Ref a, w, y;
  bool makes_y = false;  // it is y, else a temp
};

Ref reduced_product(SegmentBuilder& f, const Context& c, const std::string& name, const RowProduct& p) {
  const Shapes& x = c.x;
  const bool in_y = p.makes_y && !x.sequence_parallel;
  const Ref o = in_y ? p.y : f.temp("o", x.compute, {x.tokens, x.hidden}, kActivations);
  matmul(f, MatmulForm::kNT, name, {in(p.a), in(p.w), out(o)});
  if (!x.sequence_parallel) {
    if (x.tensor_parallel) tp_collective(f, c, OpKind::kAllReduce, "reduce", {acc(o)});
    return o;
  }
  const Ref sum = p.makes_y ? p.y : f.temp("sum", x.compute, {x.local_tokens, x.hidden}, kActivations);
  tp_collective(f, c, OpKind::kReduceScatter, "reduce", {in(o), out(sum)});
  return sum;
}

SegmentId row_forward(const Context& c, const std::string& label, const std::string& name, std::int64_t width,
                      ResidualSum to, const std::optional<RowOverlap>& overlap) {
  const Shapes& x = c.x;
  SegmentBuilder f(label);
  const Ref a = f.slot("a", x.compute, {x.tokens, width});
  const Ref w = weight_slot(f, c, x.hidden, width, true);
  const Ref input = c.quantisation == nullptr ? a : quantise_row_input(f, c, name, a, width);
  std::optional<Ref> residual;
  if (!to.norm_between) residual = f.slot("x", x.compute, {x.local_tokens, x.hidden});
  const Ref y = f.slot("y", x.compute, {x.local_tokens, x.hidden});
  Ref sum = y;
  if (overlap) {
    if (residual) sum = f.temp("sum", x.compute, {x.local_tokens, x.hidden}, kActivations);
    add_matmul_scatter(f, c, name, {input, w, sum, x.hidden}, overlap->forward);
  } else {
    sum = reduced_product(f, c, name, {input, w, y, to.norm_between});
  }
  if (residual) add_to_residual(f, c, sum, *residual, y, to);
  return c.store(f);
}

SegmentId row_input_grad(const Context& c, const std::string& label, const std::string& name, std::int64_t width,
                         const std::optional<RowOverlap>& overlap) {
  const Shapes& x = c.x;
  SegmentBuilder i(label);
  const Ref dy = i.slot("dy", x.compute, {x.local_tokens, x.hidden});
  const Ref w = weight_slot(i, c, x.hidden, width, false);
  const Ref da = i.slot("da", x.compute, {x.tokens, width});
  Ref full = dy;
  std::optional<Ref> gathered;
  if (x.sequence_parallel || c.quantisation != nullptr) gathered = weight_gradient_slot(i, c, "gathered", x.hidden);
  if (c.drops()) {
    const Ref mask = i.slot("mask", DType::kU8, {x.local_tokens, x.hidden});
    full = i.slot("d", x.compute, {x.local_tokens, x.hidden});
    i.op(OpKind::kDropoutBackward, Stream::kCompute, "dropout", {in(dy), in(mask), out(full)}).attributes.value =
        c.scenario.training.dropout;
  }
  if (overlap) {
    RowGradient g{full, *gathered, std::nullopt};
    if (c.quantisation != nullptr) g = quantise_own_rows(i, c, name, full, *gathered);
    add_gather_matmul(i, c, name, {g.own, g.rows, w, da, std::nullopt, input_gradient_form(c)}, overlap->input_grad);
    if (c.quantisation != nullptr) complete_row_gradient(i, c, name, g, *gathered);
    return c.store(i);
  }
  if (c.quantisation != nullptr) {
    full = quantise_row_gradient(i, c, name, full, *gathered);
  } else if (gathered) {
    tp_collective(i, c, OpKind::kAllGather, "gather", {in(full), out(*gathered)});
    full = *gathered;
  }
  matmul(i, input_gradient_form(c), name, {in(full), in(w), out(da)});
  return c.store(i);
}

}  // namespace

DecoderSegments::Projection build_column(const Context& c, const std::string& label, const std::string& name,
                                         std::int64_t width, HeadOps heads, ColumnBias bias,
                                         const std::optional<ColumnOverlap>& overlap) {
  DecoderSegments::Projection p;
  p.quantised = c.quantisation != nullptr;
  p.forward = column_forward(c, label, name, width, heads, bias, overlap);
  p.input_grad = column_input_grad(c, label, name, width, heads, overlap);
  const bool biased = bias != ColumnBias::kNone;
  const std::int64_t rows = heads.shared_kv ? c.x.qkv_rows : width;
  p.weight_grad = weight_grad(c, label, name, rows, c.x.hidden, biased ? std::optional(c.x.tokens) : std::nullopt,
                              overlap ? overlap->weight_grad.left_free() : -1);
  return p;
}

DecoderSegments::Projection build_row(const Context& c, const std::string& label, const std::string& name,
                                      std::int64_t width, ResidualSum to, const std::optional<RowOverlap>& overlap) {
  DecoderSegments::Projection p;
  p.quantised = c.quantisation != nullptr;
  p.forward = row_forward(c, label, name, width, to, overlap);
  p.input_grad = row_input_grad(c, label, name, width, overlap);
  p.weight_grad =
      weight_grad(c, label, name, c.x.hidden, width, to.bias ? std::optional(c.x.local_tokens) : std::nullopt, -1);
  return p;
}

}  // namespace stepcast::plan
