// Builds the decoder's segments op by op. The comments in the header give every segment's slots.
#include "plan/decoder_segments.h"

#include <string>
#include <utility>

#include "plan/context_segments.h"

namespace stepcast::plan {
namespace {

using program::acc;
using program::DType;
using program::in;
using program::MatmulForm;
using program::MemoryClass;
using program::Op;
using program::OpKind;
using program::out;
using program::Ref;
using program::SegmentBuilder;
using program::SegmentId;
using program::Stream;

constexpr MemoryClass kActivations = MemoryClass::kActivations;

// What every segment of one scenario shares.
struct Context {
  program::ProgramBuilder& builder;
  const Roles& roles;
  const Shapes& x;
  const Scenario& scenario;

  SegmentId store(SegmentBuilder& b) const { return builder.segment(b.take()); }
};

void tp_collective(SegmentBuilder& b, const Context& c, OpKind kind, std::string name,
                   std::initializer_list<program::Operand> operands) {
  b.op(kind, Stream::kTp, std::move(name), operands).group = c.roles.tp;
}

void matmul(SegmentBuilder& b, MatmulForm form, std::string name, std::initializer_list<program::Operand> operands) {
  b.op(OpKind::kMatmul, Stream::kCompute, std::move(name), operands).attributes.form = form;
}

DecoderSegments::Norm build_norm(const Context& c, const std::string& label, bool residual) {
  const Shapes& x = c.x;
  SegmentBuilder f(label);
  const Ref input = f.slot("x", x.compute, {x.local_tokens, x.hidden});
  const Ref weight = f.slot("weight", x.compute, {x.hidden});
  const Ref y = f.slot("y", x.compute, {x.local_tokens, x.hidden});
  const Ref rstd = f.slot("rstd", DType::kF32, {x.local_tokens});
  f.op(OpKind::kRmsNormForward, Stream::kCompute, "norm", {in(input), in(weight), out(y), out(rstd)}).attributes.value =
      c.scenario.model.norm_eps;

  SegmentBuilder i(label);
  const Ref dy = i.slot("dy", x.compute, {x.local_tokens, x.hidden});
  const Ref saved = i.slot("x", x.compute, {x.local_tokens, x.hidden});
  const Ref saved_rstd = i.slot("rstd", DType::kF32, {x.local_tokens});
  const Ref w = i.slot("weight", x.compute, {x.hidden});
  const Ref dx = i.slot("dx", x.compute, {x.local_tokens, x.hidden});
  const Ref dw = i.slot("dweight", x.gradients, {x.hidden});
  if (residual) {
    const Ref r = i.slot("residual", x.compute, {x.local_tokens, x.hidden});
    i.op(OpKind::kRmsNormBackwardInput, Stream::kCompute, "norm",
         {in(dy), in(saved), in(saved_rstd), in(w), out(dx), in(r)});
  } else {
    i.op(OpKind::kRmsNormBackwardInput, Stream::kCompute, "norm", {in(dy), in(saved), in(saved_rstd), in(w), out(dx)});
  }
  i.op(OpKind::kRmsNormBackwardWeight, Stream::kCompute, "norm_weight", {in(dy), in(saved), in(saved_rstd), acc(dw)});
  const SegmentId forward = c.store(f);
  return {forward, c.store(i)};
}

// Rotary positions belong to the qkv projection; other column-parallel projections pass none.
struct Rotary {
  bool present = false;
};

void add_rotary(SegmentBuilder& b, const Context& c, OpKind kind, Ref qkv) {
  Op& op = b.op(kind, Stream::kCompute, "rope", {acc(qkv)});
  op.attributes.heads = static_cast<std::int32_t>(c.x.heads);
  op.attributes.kv_heads = static_cast<std::int32_t>(c.x.kv_heads);
  op.attributes.head_dim = static_cast<std::int32_t>(c.x.head_dim);
  op.attributes.batch = c.x.batch;
  op.attributes.value = c.scenario.model.rope_theta;
  if (c.x.context > 1) op.index_role = c.roles.cp;
}

SegmentId column_forward(const Context& c, const std::string& label, const std::string& name, std::int64_t width,
                         Rotary rotary) {
  const Shapes& x = c.x;
  SegmentBuilder f(label);
  const Ref n = f.slot("n", x.compute, {x.local_tokens, x.hidden});
  const Ref w = f.slot("w", x.compute, {width, x.hidden});
  const Ref y = f.slot("y", x.compute, {x.tokens, width});
  Ref input = n;
  if (x.sequence_parallel) {
    input = f.temp("gathered", x.compute, {x.tokens, x.hidden}, kActivations);
    tp_collective(f, c, OpKind::kAllGather, "gather", {in(n), out(input)});
  }
  matmul(f, MatmulForm::kNT, name, {in(input), in(w), out(y)});
  if (rotary.present) add_rotary(f, c, OpKind::kRotaryForward, y);
  return c.store(f);
}

SegmentId column_input_grad(const Context& c, const std::string& label, const std::string& name, std::int64_t width,
                            Rotary rotary) {
  const Shapes& x = c.x;
  SegmentBuilder i(label);
  const Ref dy = i.slot("dy", x.compute, {x.tokens, width});
  const Ref w = i.slot("w", x.compute, {width, x.hidden});
  const Ref dn = i.slot("dn", x.compute, {x.local_tokens, x.hidden});
  if (x.sequence_parallel) {
    const Ref n = i.slot("n", x.compute, {x.local_tokens, x.hidden});
    const Ref gathered = i.slot("gathered", x.compute, {x.tokens, x.hidden});
    tp_collective(i, c, OpKind::kAllGather, "gather_input", {in(n), out(gathered)});
  }
  if (rotary.present) add_rotary(i, c, OpKind::kRotaryBackward, dy);
  if (x.sequence_parallel) {
    const Ref partial = i.temp("partial", x.compute, {x.tokens, x.hidden}, kActivations);
    matmul(i, MatmulForm::kNN, name, {in(dy), in(w), out(partial)});
    tp_collective(i, c, OpKind::kReduceScatter, "reduce", {in(partial), out(dn)});
  } else {
    matmul(i, MatmulForm::kNN, name, {in(dy), in(w), out(dn)});
    if (x.tensor_parallel) tp_collective(i, c, OpKind::kAllReduce, "reduce", {acc(dn)});
  }
  return c.store(i);
}

// dw[rows,cols] += left[T,rows]^T right[T,cols]
SegmentId weight_grad(const Context& c, const std::string& label, const std::string& name, std::int64_t rows,
                      std::int64_t cols) {
  SegmentBuilder w(label);
  const Ref left = w.slot("left", c.x.compute, {c.x.tokens, rows});
  const Ref right = w.slot("right", c.x.compute, {c.x.tokens, cols});
  const Ref dw = w.slot("dw", c.x.gradients, {rows, cols});
  matmul(w, MatmulForm::kTN, name, {in(left), in(right), acc(dw)});
  return c.store(w);
}

DecoderSegments::Projection build_column(const Context& c, const std::string& label, const std::string& name,
                                         std::int64_t width, Rotary rotary) {
  DecoderSegments::Projection p;
  p.forward = column_forward(c, label, name, width, rotary);
  p.input_grad = column_input_grad(c, label, name, width, rotary);
  p.weight_grad = weight_grad(c, label, name, width, c.x.hidden);
  return p;
}

SegmentId row_forward(const Context& c, const std::string& label, const std::string& name, std::int64_t width) {
  const Shapes& x = c.x;
  SegmentBuilder f(label);
  const Ref a = f.slot("a", x.compute, {x.tokens, width});
  const Ref w = f.slot("w", x.compute, {x.hidden, width});
  const Ref residual = f.slot("x", x.compute, {x.local_tokens, x.hidden});
  const Ref y = f.slot("y", x.compute, {x.local_tokens, x.hidden});
  const Ref o = f.temp("o", x.compute, {x.tokens, x.hidden}, kActivations);
  matmul(f, MatmulForm::kNT, name, {in(a), in(w), out(o)});
  Ref sum = o;
  if (x.sequence_parallel) {
    sum = f.temp("sum", x.compute, {x.local_tokens, x.hidden}, kActivations);
    tp_collective(f, c, OpKind::kReduceScatter, "reduce", {in(o), out(sum)});
  } else if (x.tensor_parallel) {
    tp_collective(f, c, OpKind::kAllReduce, "reduce", {acc(o)});
  }
  f.op(OpKind::kAdd, Stream::kCompute, "residual", {in(residual), in(sum), out(y)});
  return c.store(f);
}

SegmentId row_input_grad(const Context& c, const std::string& label, const std::string& name, std::int64_t width) {
  const Shapes& x = c.x;
  SegmentBuilder i(label);
  const Ref dy = i.slot("dy", x.compute, {x.local_tokens, x.hidden});
  const Ref w = i.slot("w", x.compute, {x.hidden, width});
  const Ref da = i.slot("da", x.compute, {x.tokens, width});
  Ref full = dy;
  if (x.sequence_parallel) {
    full = i.slot("gathered", x.compute, {x.tokens, x.hidden});
    tp_collective(i, c, OpKind::kAllGather, "gather", {in(dy), out(full)});
  }
  matmul(i, MatmulForm::kNN, name, {in(full), in(w), out(da)});
  return c.store(i);
}

DecoderSegments::Projection build_row(const Context& c, const std::string& label, const std::string& name,
                                      std::int64_t width) {
  DecoderSegments::Projection p;
  p.forward = row_forward(c, label, name, width);
  p.input_grad = row_input_grad(c, label, name, width);
  p.weight_grad = weight_grad(c, label, name, c.x.hidden, width);
  return p;
}

void set_heads(Op& op, const Shapes& x) {
  op.attributes.heads = static_cast<std::int32_t>(x.heads);
  op.attributes.kv_heads = static_cast<std::int32_t>(x.kv_heads);
  op.attributes.head_dim = static_cast<std::int32_t>(x.head_dim);
  op.attributes.batch = x.batch;
}

DecoderSegments::Core build_attention(const Context& c) {
  const Shapes& x = c.x;
  SegmentBuilder f("attn");
  const Ref qkv = f.slot("qkv", x.compute, {x.tokens, x.qkv});
  const Ref o = f.slot("out", x.compute, {x.tokens, x.q});
  const Ref lse = f.slot("lse", DType::kF32, {x.tokens, x.heads});
  set_heads(f.op(OpKind::kAttentionForward, Stream::kCompute, "core", {in(qkv), out(o), out(lse)}), x);

  SegmentBuilder i("attn");
  const Ref dout = i.slot("dout", x.compute, {x.tokens, x.q});
  const Ref saved = i.slot("qkv", x.compute, {x.tokens, x.qkv});
  const Ref saved_out = i.slot("out", x.compute, {x.tokens, x.q});
  const Ref saved_lse = i.slot("lse", DType::kF32, {x.tokens, x.heads});
  const Ref dqkv = i.slot("dqkv", x.compute, {x.tokens, x.qkv});
  set_heads(i.op(OpKind::kAttentionBackward, Stream::kCompute, "core",
                 {in(dout), in(saved), in(saved_out), in(saved_lse), out(dqkv)}),
            x);
  const SegmentId forward = c.store(f);
  return {forward, c.store(i)};
}

DecoderSegments::Core build_swiglu(const Context& c) {
  const Shapes& x = c.x;
  SegmentBuilder f("mlp");
  const Ref gate_up = f.slot("gate_up", x.compute, {x.tokens, 2 * x.ffn});
  const Ref act = f.slot("act", x.compute, {x.tokens, x.ffn});
  f.op(OpKind::kSwiGluForward, Stream::kCompute, "act", {in(gate_up), out(act)});

  SegmentBuilder i("mlp");
  const Ref dact = i.slot("dact", x.compute, {x.tokens, x.ffn});
  const Ref saved = i.slot("gate_up", x.compute, {x.tokens, 2 * x.ffn});
  const Ref dgate_up = i.slot("dgate_up", x.compute, {x.tokens, 2 * x.ffn});
  i.op(OpKind::kSwiGluBackward, Stream::kCompute, "act", {in(dact), in(saved), out(dgate_up)});
  const SegmentId forward = c.store(f);
  return {forward, c.store(i)};
}

SegmentId embedding_forward(const Context& c) {
  const Shapes& x = c.x;
  SegmentBuilder f("embed");
  const Ref tokens = f.slot("tokens", DType::kI32, {x.tokens});
  const Ref table = f.slot("table", x.compute, {x.vocab, x.hidden});
  const Ref y = f.slot("y", x.compute, {x.local_tokens, x.hidden});
  Ref rows = y;
  if (x.sequence_parallel) rows = f.temp("rows", x.compute, {x.tokens, x.hidden}, kActivations);
  f.op(OpKind::kEmbeddingForward, Stream::kCompute, "lookup", {in(tokens), in(table), out(rows)}).index_role =
      c.roles.tp;
  if (x.sequence_parallel) {
    tp_collective(f, c, OpKind::kReduceScatter, "reduce", {in(rows), out(y)});
  } else if (x.tensor_parallel) {
    tp_collective(f, c, OpKind::kAllReduce, "reduce", {acc(y)});
  }
  return c.store(f);
}

SegmentId embedding_weight_grad(const Context& c) {
  const Shapes& x = c.x;
  SegmentBuilder w("embed");
  const Ref tokens = w.slot("tokens", DType::kI32, {x.tokens});
  const Ref dy = w.slot("dy", x.compute, {x.local_tokens, x.hidden});
  const Ref dtable = w.slot("dtable", x.gradients, {x.vocab, x.hidden});
  Ref full = dy;
  if (x.sequence_parallel) {
    full = w.temp("gathered", x.compute, {x.tokens, x.hidden}, kActivations);
    tp_collective(w, c, OpKind::kAllGather, "gather", {in(dy), out(full)});
  }
  w.op(OpKind::kEmbeddingBackward, Stream::kCompute, "lookup", {in(tokens), in(full), acc(dtable)}).index_role =
      c.roles.tp;
  return c.store(w);
}

// Vocabulary-parallel cross-entropy: maximum, sum of exponentials and target logit are reduced over tp.
SegmentId loss_forward(const Context& c, double scale) {
  const Shapes& x = c.x;
  SegmentBuilder f("head");
  const Ref logits = f.slot("logits", x.compute, {x.tokens, x.vocab});
  const Ref targets = f.slot("targets", DType::kI32, {x.tokens});
  const Ref max = f.slot("max", DType::kF32, {x.tokens});
  const Ref sums = f.slot("sums", DType::kF32, {2, x.tokens});
  const Ref loss = f.slot("loss", DType::kF32, {1});
  f.op(OpKind::kCrossEntropyMax, Stream::kCompute, "max", {in(logits), out(max)});
  if (x.tensor_parallel) {
    Op& op = f.op(OpKind::kAllReduce, Stream::kTp, "reduce_max", {acc(max)});
    op.group = c.roles.tp;
    op.attributes.reduce = program::Reduce::kMax;
  }
  f.op(OpKind::kCrossEntropySum, Stream::kCompute, "sum", {in(logits), in(max), in(targets), out(sums)}).index_role =
      c.roles.tp;
  if (x.tensor_parallel) tp_collective(f, c, OpKind::kAllReduce, "reduce_sum", {acc(sums)});
  f.op(OpKind::kCrossEntropyLoss, Stream::kCompute, "loss", {in(max), in(sums), acc(loss)}).attributes.value = scale;
  return c.store(f);
}

SegmentId loss_input_grad(const Context& c, double scale) {
  const Shapes& x = c.x;
  SegmentBuilder i("head");
  const Ref max = i.slot("max", DType::kF32, {x.tokens});
  const Ref sums = i.slot("sums", DType::kF32, {2, x.tokens});
  const Ref targets = i.slot("targets", DType::kI32, {x.tokens});
  const Ref logits = i.slot("logits", x.compute, {x.tokens, x.vocab});
  Op& op = i.op(OpKind::kCrossEntropyBackward, Stream::kCompute, "loss", {in(max), in(sums), in(targets), acc(logits)});
  op.index_role = c.roles.tp;
  op.attributes.value = scale;
  return c.store(i);
}

struct Direction {
  bool send = false;
  Stream stream = Stream::kSendNext;
  std::int32_t offset = 1;
  program::Channel channel = program::Channel::kActivation;
  const char* name = "";
};

SegmentId p2p(const Context& c, const Direction& d) {
  SegmentBuilder b("pipe");
  const Ref t = b.slot("tensor", c.x.compute, {c.x.local_tokens, c.x.hidden});
  Op& op = b.op(d.send ? OpKind::kSend : OpKind::kReceive, d.stream, d.name, {d.send ? in(t) : out(t)});
  op.parts.push_back({0, d.send, c.roles.pp, d.offset, d.channel});
  return c.store(b);
}

}  // namespace

DecoderSegments build_decoder_segments(program::ProgramBuilder& b, const Roles& roles, const Shapes& x,
                                       const Scenario& s) {
  const Context c{b, roles, x, s};
  const double scale =
      1.0 / (static_cast<double>(s.training.global_batch_size) * static_cast<double>(s.training.sequence_length));
  DecoderSegments d;
  d.attn_norm = build_norm(c, "attn", true);
  d.mlp_norm = build_norm(c, "mlp", true);
  d.head_norm = build_norm(c, "head", false);
  d.qkv = build_column(c, "attn", "qkv", x.qkv, Rotary{true});
  d.gate_up = build_column(c, "mlp", "gate_up", 2 * x.ffn, Rotary{});
  d.logits = build_column(c, "head", "logits", x.vocab, Rotary{});
  d.attention = x.context > 1 ? build_context_attention(b, roles, x, s.plan.cp_comm) : build_attention(c);
  d.swiglu = build_swiglu(c);
  d.attn_out = build_row(c, "attn", "out", x.q);
  d.down = build_row(c, "mlp", "down", x.ffn);
  d.embedding_forward = embedding_forward(c);
  d.embedding_weight_grad = embedding_weight_grad(c);
  d.loss_forward = loss_forward(c, scale);
  d.loss_input_grad = loss_input_grad(c, scale);
  using program::Channel;
  d.send_activation = p2p(c, {true, Stream::kSendNext, 1, Channel::kActivation, "send_activation"});
  d.receive_activation = p2p(c, {false, Stream::kRecvPrev, -1, Channel::kActivation, "receive_activation"});
  d.send_gradient = p2p(c, {true, Stream::kSendPrev, -1, Channel::kGradient, "send_gradient"});
  d.receive_gradient = p2p(c, {false, Stream::kRecvNext, 1, Channel::kGradient, "receive_gradient"});
  return d;
}

}  // namespace stepcast::plan
