// The core of attention, from queries, keys and values to the mixed values: one fused kernel that keeps the
// log-sum-exp, or the ops of stacks without one, which keep probabilities, their dropped copy and a mask in memory
// (Korthikanti et al. 2022, arXiv:2205.05198, figure 3).
#include <string>

#include "plan/segment_context.h"

namespace stepcast::plan {
namespace {

using program::acc;
using program::DropoutSite;
using program::DType;
using program::in;
using program::Op;
using program::OpKind;
using program::out;
using program::Ref;
using program::SegmentBuilder;
using program::SegmentId;
using program::Stream;
using Context = SegmentContext;

// Heads with ALiBi are numbered over the whole model.
void set_alibi(Op& op, const Context& c) {
  if (c.scenario.model.positions != models::PositionKind::kAlibi) return;
  op.attributes.count = c.scenario.model.heads;
  op.index_role = c.roles.tp;
}

void set_attention(Op& op, const Context& c) {
  set_heads(op, c.x);
  if (c.drops()) {
    set_dropout(op, c, DropoutSite::kScores);
    op.attributes.count = 0;
    op.index_role = c.roles.tp;
  }
  set_alibi(op, c);
}

DecoderSegments::Core build_fused(const Context& c) {
  SegmentBuilder f("attn");
  const CoreSlots a = add_core_slots(f, c.x, true);
  set_attention(f.op(OpKind::kAttentionForward, Stream::kCompute, "core", {in(a.qkv), out(a.out), out(a.lse)}), c);

  SegmentBuilder i("attn");
  const CoreSlots g = add_core_slots(i, c.x, false);
  set_attention(i.op(OpKind::kAttentionBackward, Stream::kCompute, "core",
                     {in(g.dout), in(g.qkv), in(g.out), in(g.lse), out(g.dqkv)}),
                c);
  const SegmentId forward = c.store(f);
  return {forward, c.store(i)};
}

SegmentId unfused_forward(const Context& c) {
  const Shapes& x = c.x;
  SegmentBuilder f("attn");
  const Ref qkv = f.slot("qkv", x.compute, {x.tokens, x.qkv});
  const Ref o = f.slot("out", x.compute, {x.tokens, x.q});
  const Ref probabilities = f.slot("probabilities", x.compute, x.scores());
  const Ref scores = f.temp("scores", x.compute, x.scores(), kActivations);
  set_heads(f.op(OpKind::kAttentionScoresForward, Stream::kCompute, "scores", {in(qkv), out(scores)}), x);
  Op& softmax = f.op(OpKind::kSoftmaxForward, Stream::kCompute, "softmax", {in(scores), out(probabilities)});
  set_heads(softmax, x);
  set_alibi(softmax, c);
  Ref mixed = probabilities;
  if (c.drops()) {
    mixed = f.slot("dropped", x.compute, x.scores());
    const Ref mask = f.slot("mask", DType::kU8, x.scores());
    Op& drop =
        f.op(OpKind::kDropoutForward, Stream::kCompute, "core_dropout", {in(probabilities), out(mixed), out(mask)});
    set_heads(drop, x);
    set_dropout(drop, c, DropoutSite::kScores);
    drop.index_role = c.roles.tp;
  }
  set_heads(f.op(OpKind::kAttentionContextForward, Stream::kCompute, "context", {in(mixed), in(qkv), out(o)}), x);
  return c.store(f);
}

// Dropout and softmax turn the gradient of the probabilities into that of the scores in place, as Megatron's kernels
// do.
SegmentId unfused_input_grad(const Context& c) {
  const Shapes& x = c.x;
  SegmentBuilder i("attn");
  const Ref dout = i.slot("dout", x.compute, {x.tokens, x.q});
  const Ref qkv = i.slot("qkv", x.compute, {x.tokens, x.qkv});
  const Ref probabilities = i.slot("probabilities", x.compute, x.scores());
  const Ref dqkv = i.slot("dqkv", x.compute, {x.tokens, x.qkv});
  const Ref mixed = c.drops() ? i.slot("dropped", x.compute, x.scores()) : probabilities;
  const Ref gradient = i.temp("gradient", x.compute, x.scores(), kActivations);
  set_heads(i.op(OpKind::kAttentionContextBackward, Stream::kCompute, "context",
                 {in(dout), in(mixed), in(qkv), out(gradient), out(dqkv)}),
            x);
  if (c.drops()) {
    const Ref mask = i.slot("mask", DType::kU8, x.scores());
    i.op(OpKind::kDropoutBackward, Stream::kCompute, "core_dropout", {in(gradient), in(mask), out(gradient)})
        .attributes.value = c.scenario.training.dropout;
  }
  i.op(OpKind::kSoftmaxBackward, Stream::kCompute, "softmax", {in(probabilities), acc(gradient)});
  set_heads(i.op(OpKind::kAttentionScoresBackward, Stream::kCompute, "scores", {in(gradient), in(qkv), acc(dqkv)}), x);
  return c.store(i);
}

}  // namespace

CoreSlots add_core_slots(SegmentBuilder& b, const Shapes& x, bool forward) {
  CoreSlots r{};
  if (!forward) r.dout = b.slot("dout", x.compute, {x.tokens, x.q});
  r.qkv = b.slot("qkv", x.compute, {x.tokens, x.qkv});
  r.out = b.slot("out", x.compute, {x.tokens, x.q});
  r.lse = b.slot("lse", DType::kF32, {x.tokens, x.heads});
  if (!forward) r.dqkv = b.slot("dqkv", x.compute, {x.tokens, x.qkv});
  return r;
}

DecoderSegments::Core build_attention(const Context& c) {
  if (c.scenario.attention == AttentionKind::kFused) return build_fused(c);
  const SegmentId forward = unfused_forward(c);
  return {forward, unfused_input_grad(c)};
}

}  // namespace stepcast::plan
