// What the files that build a decoder's segments share (internal to them): the context of one scenario and small ops.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "plan/decoder_segments.h"
#include "plan/quantisation.h"

namespace stepcast::plan {

inline constexpr program::MemoryClass kActivations = program::MemoryClass::kActivations;

// What every segment of one scenario shares.
struct SegmentContext {
  program::ProgramBuilder& builder;
  const Roles& roles;
  const Shapes& x;
  const Scenario& scenario;
  const Quantisation* quantisation = nullptr;  // of the projections that are built; null: none

  program::SegmentId store(program::SegmentBuilder& b) const { return builder.segment(b.take()); }
  bool drops() const { return scenario.training.dropout > 0; }
};

inline program::Op& tp_collective(program::SegmentBuilder& b, const SegmentContext& c, program::OpKind kind,
                                  std::string name, std::initializer_list<program::Operand> operands) {
  program::Op& op = b.op(kind, program::Stream::kTp, std::move(name), operands);
  op.group = c.roles.tp;
  return op;
}

inline program::Op& matmul(program::SegmentBuilder& b, program::MatmulForm form, std::string name,
                           std::initializer_list<program::Operand> operands,
                           std::optional<program::Ref> bias = std::nullopt) {
  program::Op& op = b.op(program::OpKind::kMatmul, program::Stream::kCompute, std::move(name), operands);
  op.attributes.form = form;
  if (bias) op.operands.push_back(program::in(*bias));
  return op;
}

inline void set_heads(program::Op& op, const Shapes& x) {
  op.attributes.heads = static_cast<std::int32_t>(x.heads);
  op.attributes.kv_heads = static_cast<std::int32_t>(x.kv_heads);
  op.attributes.head_dim = static_cast<std::int32_t>(x.head_dim);
  op.attributes.batch = x.batch;
}

// What a dropout op needs to know which global elements it holds; those of the rows of the residual stream, unless the
// caller sets another index role.
inline void set_dropout(program::Op& op, const SegmentContext& c, program::DropoutSite site) {
  op.attributes.value = c.scenario.training.dropout;
  op.attributes.batch = c.x.batch;
  op.attributes.microbatches = c.scenario.microbatches();
  op.attributes.count = static_cast<std::int64_t>(site);
  op.sample_role = c.roles.dp;
  if (c.x.sequence_parallel) op.index_role = c.roles.tp;
}

// Slots of an attention core that keeps the log-sum-exp; dout and dqkv are of the backward segment.
struct CoreSlots {
  program::Ref dout, qkv, out, lse, dqkv;
};
CoreSlots add_core_slots(program::SegmentBuilder& b, const Shapes& x, bool forward);

DecoderSegments::Core build_attention(const SegmentContext& c);
// Among the members of a cp group: context_segments.h.
DecoderSegments::Core build_context_attention(const SegmentContext& c);
// By all-to-all: head_segments.cc.
DecoderSegments::Core build_exchanged_attention(const SegmentContext& c);

// Column-parallel projection; a bias is added by the matmul, or by the activation behind it.
enum class ColumnBias : std::uint8_t { kNone, kInMatmul, kInActivation };
// What the qkv projection does to queries and keys, in this order; other column-parallel projections do nothing.
struct HeadOps {
  bool norm = false;
  bool rotary = false;
  bool shared_kv = false;  // before both: puts a key-value head together that tp ranks share
};
// How communication hides behind the three matmuls of a column-parallel projection.
struct ColumnOverlap {
  UserBuffer forward, input_grad, weight_grad;
};
DecoderSegments::Projection build_column(const SegmentContext& c, const std::string& label, const std::string& name,
                                         std::int64_t width, HeadOps heads, ColumnBias bias,
                                         const std::optional<ColumnOverlap>& overlap);
// How a projection's output meets the residual stream. Where a norm stands between, the norm's segment adds it.
struct ResidualSum {
  program::DropoutSite site;
  bool bias = false;
  bool norm_between = false;
};
// Likewise behind the first two of a row-parallel one.
struct RowOverlap {
  UserBuffer forward, input_grad;
};
// Row-parallel projection into the residual stream.
DecoderSegments::Projection build_row(const SegmentContext& c, const std::string& label, const std::string& name,
                                      std::int64_t width, ResidualSum to, const std::optional<RowOverlap>& overlap);

}  // namespace stepcast::plan
