// Adds the ops. `rows` is the copy read along its rows, `other` the one read along its columns.
#include "plan/quantised_parts.h"

#include <vector>

#include "plan/tensor_overlap.h"

namespace stepcast::plan {
namespace {

using program::acc;
using program::DType;
using program::in;
using program::MatmulForm;
using program::Op;
using program::Operand;
using program::OpKind;
using program::out;
using program::ProgramBuilder;
using program::Ref;
using program::SegmentBuilder;
using program::SegmentId;
using program::Shape;
using program::Stream;
using Context = SegmentContext;

// The largest magnitude of a tensor that is to be quantised, where its scale needs it. Ranks of a tp group that hold
// parts of one tensor agree on it.
std::optional<Ref> largest_magnitude(SegmentBuilder& b, const Quantisation& q, Ref tensor, const std::string& suffix,
                                     const Context* over_tp) {
  if (!q.measures) return std::nullopt;
  const Ref amax = b.temp("amax" + suffix, DType::kF32, {1}, kActivations);
  b.op(OpKind::kAbsMax, Stream::kCompute, "amax" + suffix, {in(tensor), out(amax)});
  if (over_tp != nullptr && over_tp->x.sequence_parallel) {
    Op& op = b.op(OpKind::kAllReduce, Stream::kTp, "reduce_amax" + suffix, {acc(amax)});
    op.group = over_tp->roles.tp;
    op.attributes.reduce = program::Reduce::kMax;
  }
  return amax;
}

void quantise(SegmentBuilder& b, const std::string& suffix, Ref tensor, const std::vector<Operand>& copies,
              std::optional<Ref> amax) {
  Op& op = b.op(OpKind::kQuantise, Stream::kCompute, "quantise" + suffix, {in(tensor)});
  op.operands.insert(op.operands.end(), copies.begin(), copies.end());
  if (amax) op.operands.push_back(in(*amax));
}

Ref temp(SegmentBuilder& b, const Context& c, const std::string& name, std::int64_t rows, std::int64_t columns) {
  return b.temp(name, c.quantisation->type, {rows, columns}, kActivations);
}

void transpose(SegmentBuilder& b, const std::string& name, Ref from, Ref to) {
  b.op(OpKind::kTranspose, Stream::kCompute, name, {in(from), out(to)});
}

// Both copies, or the one there is, of a whole tensor [rows, columns]: `other` is the slot that a backward pass reads.
Ref quantise_whole(SegmentBuilder& b, const Context& c, const std::string& name, Ref tensor, Ref other,
                   std::int64_t rows, std::int64_t columns) {
  const Quantisation& q = *c.quantisation;
  const std::optional<Ref> amax = largest_magnitude(b, q, tensor, "_" + name, nullptr);
  if (!q.two_copies()) {
    quantise(b, "_" + name, tensor, {out(other)}, amax);
    return other;
  }
  const Ref read = temp(b, c, "rows", rows, columns);
  quantise(b, "_" + name, tensor, {out(read), out(other)}, amax);
  return read;
}

}  // namespace

bool norm_quantises(const Scenario& s) {
  const bool before = s.model.norm_placement == models::NormPlacement::kBefore;
  return before && s.training.recipe == MatmulRecipe::kDelayed;
}

std::optional<KeptInput> kept_column_input(const Shapes& x, const Quantisation& q, bool quantised_by_norm) {
  // What is gathered again is kept as it was gathered; a transpose is made of the whole.
  if (quantised_by_norm && (x.sequence_parallel || !q.transposed)) return std::nullopt;
  if (x.sequence_parallel) return KeptInput{q.type, Shape{x.local_tokens, x.hidden}};
  return KeptInput{q.type, q.other_direction(x.tokens, x.hidden)};
}

KeptInput kept_row_input(const Shapes& x, const Quantisation& q, std::int64_t width) {
  return {q.type, q.other_direction(x.tokens, width)};
}

Ref quantise_column_input(SegmentBuilder& b, const Context& c, const std::string& name, Ref n) {
  const Shapes& x = c.x;
  const Quantisation& q = *c.quantisation;
  const bool by_norm = norm_quantises(c.scenario);
  const std::optional<KeptInput> keeps = kept_column_input(x, q, by_norm);
  if (!keeps) return n;
  const Ref kept = b.slot("kept", keeps->type, keeps->shape);
  if (by_norm) {
    transpose(b, "transpose_" + name, n, kept);
    return n;
  }
  if (!x.sequence_parallel) return quantise_whole(b, c, name, n, kept, x.tokens, x.hidden);
  const std::optional<Ref> amax = largest_magnitude(b, q, n, "_" + name, &c);
  if (!q.by_direction) {
    quantise(b, "_" + name, n, {out(kept)}, amax);
    return kept;
  }
  const Ref rows = temp(b, c, "rows", x.local_tokens, x.hidden);
  quantise(b, "_" + name, n, {out(rows), out(kept)}, amax);
  return rows;
}

Ref quantise_row_input(SegmentBuilder& b, const Context& c, const std::string& name, Ref a, std::int64_t width) {
  const KeptInput keeps = kept_row_input(c.x, *c.quantisation, width);
  return quantise_whole(b, c, name, a, b.slot("kept", keeps.type, keeps.shape), c.x.tokens, width);
}

void gather_kept_input(SegmentBuilder& b, const Context& c, Ref kept, Ref gathered,
                       const std::optional<UserBuffer>& overlap) {
  const bool turns = c.quantisation != nullptr && c.quantisation->transposed;
  const Ref whole = turns ? temp(b, c, "whole", c.x.tokens, c.x.hidden) : gathered;
  if (overlap) {
    gather_by_user_buffers(b, c, "gather_input", kept, whole, *overlap);
  } else {
    tp_collective(b, c, OpKind::kAllGather, "gather_input", {in(kept), out(whole)});
  }
  if (turns) transpose(b, "transpose_input", whole, gathered);
}

Ref quantise_gradient(SegmentBuilder& b, const Context& c, const std::string& name, Ref dy, Ref other,
                      std::int64_t width) {
  return quantise_whole(b, c, name, dy, other, c.x.tokens, width);
}

RowGradient quantise_own_rows(SegmentBuilder& b, const Context& c, const std::string& name, Ref dy, Ref other) {
  const Shapes& x = c.x;
  const Quantisation& q = *c.quantisation;
  const std::optional<Ref> amax = largest_magnitude(b, q, dy, "_" + name, &c);
  const Ref own = temp(b, c, "own", x.local_tokens, x.hidden);
  RowGradient g{own, q.two_copies() ? temp(b, c, "rows", x.tokens, x.hidden) : other, std::nullopt};
  std::vector<Operand> made{out(own)};
  if (q.by_direction) {
    g.own_other = temp(b, c, "own_other", x.local_tokens, x.hidden);
    made.push_back(out(*g.own_other));
  }
  quantise(b, "_" + name, dy, made, amax);
  return g;
}

void complete_row_gradient(SegmentBuilder& b, const Context& c, const std::string& name, const RowGradient& g,
                           Ref other) {
  const Quantisation& q = *c.quantisation;
  if (!g.own_other) {
    if (q.transposed) transpose(b, "transpose_" + name, g.rows, other);
    return;
  }
  const Ref whole = q.transposed ? temp(b, c, "other", c.x.tokens, c.x.hidden) : other;
  tp_collective(b, c, OpKind::kAllGather, "gather_other", {in(*g.own_other), out(whole)});
  if (q.transposed) transpose(b, "transpose_" + name, whole, other);
}

Ref quantise_row_gradient(SegmentBuilder& b, const Context& c, const std::string& name, Ref dy, Ref other) {
  if (!c.x.sequence_parallel) return quantise_whole(b, c, name, dy, other, c.x.tokens, c.x.hidden);
  const RowGradient g = quantise_own_rows(b, c, name, dy, other);
  tp_collective(b, c, OpKind::kAllGather, "gather", {in(g.own), out(g.rows)});
  complete_row_gradient(b, c, name, g, other);
  return g.rows;
}

Ref weight_slot(SegmentBuilder& b, const Context& c, std::int64_t rows, std::int64_t columns, bool forward) {
  const Shape weight{rows, columns};
  if (c.quantisation == nullptr) return b.slot("w", c.x.compute, weight);
  return b.slot("w", c.quantisation->type, forward ? weight : c.quantisation->other_direction(rows, columns));
}

Ref weight_gradient_slot(SegmentBuilder& b, const Context& c, const std::string& name, std::int64_t width) {
  if (c.quantisation == nullptr) return b.slot(name, c.x.compute, {c.x.tokens, width});
  return b.slot(name, c.quantisation->type, c.quantisation->other_direction(c.x.tokens, width));
}

MatmulForm input_gradient_form(const Context& c) {
  return c.quantisation != nullptr && c.quantisation->transposed ? MatmulForm::kNT : MatmulForm::kNN;
}

MatmulForm weight_gradient_form(const Context& c) {
  return c.quantisation != nullptr && c.quantisation->transposed ? MatmulForm::kNT : MatmulForm::kTN;
}

SegmentId weight_quantisation(ProgramBuilder& b, const Shapes& x, const Quantisation& q, const std::string& label,
                              const std::string& name, const Shape& weight, WeightCopies copies) {
  SegmentBuilder s(label);
  const Ref w = s.slot("w", x.compute, weight);
  const std::optional<Ref> amax = largest_magnitude(s, q, w, "_" + name, nullptr);
  const Shape other = q.other_direction(weight.extent(0), weight.extent(1));
  std::vector<Operand> made;
  if (copies != WeightCopies::kBackward) made.push_back(out(s.slot("rows", q.type, weight)));
  if (copies != WeightCopies::kForward) made.push_back(out(s.slot("other", q.type, other)));
  quantise(s, "_" + name, w, made, amax);
  return b.segment(s.take());
}

SegmentId input_quantisation(const Context& c, const std::string& label, const std::string& name, const KeptInput& kept,
                             const program::TensorType& input) {
  SegmentBuilder s(label);
  const Ref wide = s.slot("in", input.dtype, input.shape);
  const Ref narrow = s.slot("kept", kept.type, kept.shape);
  if (input.dtype == kept.type) {
    transpose(s, "transpose_" + name, wide, narrow);
  } else {
    const bool part = c.x.sequence_parallel && input.shape.extent(0) != c.x.tokens;
    const std::optional<Ref> amax = largest_magnitude(s, *c.quantisation, wide, "_" + name, part ? &c : nullptr);
    quantise(s, "_" + name, wide, {out(narrow)}, amax);
  }
  return c.store(s);
}

}  // namespace stepcast::plan
