// Builds the decoder's segments op by op. The comments in the header give every segment's slots.
#include "plan/decoder_segments.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "plan/quantised_parts.h"

namespace stepcast::plan {
namespace {

using program::acc;
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

bool has_layer_norm(const Context& c) { return c.scenario.model.norm == models::NormKind::kLayerNorm; }

// Where a norm stands: before a block, whose residual branch passes it by; behind a block; before the head.
enum class NormSite : std::uint8_t { kBeforeBlock, kBehindBlock, kHead };

SegmentId norm_forward(const Context& c, const std::string& label, NormSite site, DType written) {
  const Shapes& x = c.x;
  SegmentBuilder f(label);
  const Ref input = f.slot("x", x.compute, {x.local_tokens, x.hidden});
  const Ref weight = f.slot("weight", x.compute, {x.hidden});
  const Ref sum = f.slot("y", written, {x.local_tokens, x.hidden});
  const bool behind = site == NormSite::kBehindBlock;
  const Ref y = behind ? f.temp("normalised", x.compute, {x.local_tokens, x.hidden}, kActivations) : sum;
  const Ref stats = f.slot("rstd", DType::kF32, x.norm_stats);
  if (has_layer_norm(c)) {
    const Ref bias = f.slot("bias", x.compute, {x.hidden});
    f.op(OpKind::kLayerNormForward, Stream::kCompute, "norm", {in(input), in(weight), in(bias), out(y), out(stats)})
        .attributes.value = c.scenario.model.norm_eps;
  } else {
    f.op(OpKind::kRmsNormForward, Stream::kCompute, "norm", {in(input), in(weight), out(y), out(stats)})
        .attributes.value = c.scenario.model.norm_eps;
  }
  if (behind) {
    const Ref residual = f.slot("residual", x.compute, {x.local_tokens, x.hidden});
    f.op(OpKind::kAdd, Stream::kCompute, "residual", {in(residual), in(y), out(sum)});
  }
  return c.store(f);
}

SegmentId norm_backward(const Context& c, const std::string& label, NormSite site) {
  const Shapes& x = c.x;
  SegmentBuilder i(label);
  const Ref dy = i.slot("dy", x.compute, {x.local_tokens, x.hidden});
  const Ref saved = i.slot("x", x.compute, {x.local_tokens, x.hidden});
  const Ref stats = i.slot("rstd", DType::kF32, x.norm_stats);
  const Ref w = i.slot("weight", x.compute, {x.hidden});
  const Ref dx = i.slot("dx", x.compute, {x.local_tokens, x.hidden});
  const Ref dw = i.slot("dweight", x.gradients, {x.hidden});
  Op& input = i.op(has_layer_norm(c) ? OpKind::kLayerNormBackwardInput : OpKind::kRmsNormBackwardInput,
                   Stream::kCompute, "norm", {in(dy), in(saved), in(stats), in(w), out(dx)});
  if (site == NormSite::kBeforeBlock)
    input.operands.push_back(in(i.slot("residual", x.compute, {x.local_tokens, x.hidden})));
  if (has_layer_norm(c)) {
    const Ref dbias = i.slot("dbias", x.gradients, {x.hidden});
    i.op(OpKind::kLayerNormBackwardWeight, Stream::kCompute, "norm_weight",
         {in(dy), in(saved), in(stats), acc(dw), acc(dbias)});
  } else {
    i.op(OpKind::kRmsNormBackwardWeight, Stream::kCompute, "norm_weight", {in(dy), in(saved), in(stats), acc(dw)});
  }
  return c.store(i);
}

DecoderSegments::Norm build_norm(const Context& c, const std::string& label, NormSite site) {
  const SegmentId forward = norm_forward(c, label, site, c.x.compute);
  return {forward, norm_backward(c, label, site)};
}

SegmentId gradient_sum(const Context& c, const std::string& label) {
  const Shapes& x = c.x;
  SegmentBuilder b(label);
  const Ref left = b.slot("a", x.compute, {x.local_tokens, x.hidden});
  const Ref right = b.slot("b", x.compute, {x.local_tokens, x.hidden});
  const Ref sum = b.slot("sum", x.compute, {x.local_tokens, x.hidden});
  b.op(OpKind::kAdd, Stream::kCompute, "residual", {in(left), in(right), out(sum)});
  return c.store(b);
}

bool has_layers_without_positions(const models::Architecture& model) {
  return std::any_of(model.kinds.begin(), model.kinds.end(),
                     [](const models::LayerKind& kind) { return !kind.rotary; });
}

std::optional<ColumnOverlap> column_overlap(const Scenario& s, OverlappedMatmul forward, OverlappedMatmul input_grad,
                                            OverlappedMatmul weight_grad) {
  if (!s.plan.overlap_tp_comm) return std::nullopt;
  const UserBuffers& buffers = s.plan.user_buffers;
  return ColumnOverlap{buffers.of(forward), buffers.of(input_grad), buffers.of(weight_grad)};
}

std::optional<RowOverlap> row_overlap(const Scenario& s, OverlappedMatmul forward, OverlappedMatmul input_grad) {
  if (!s.plan.overlap_tp_comm) return std::nullopt;
  return RowOverlap{s.plan.user_buffers.of(forward), s.plan.user_buffers.of(input_grad)};
}

void build_projections_in(const Context& c, DecoderSegments::Projections& d) {
  const models::Architecture& m = c.scenario.model;
  const Shapes& x = c.x;
  const auto in_matmul = [](bool bias) { return bias ? ColumnBias::kInMatmul : ColumnBias::kNone; };
  const bool rotary = m.positions == models::PositionKind::kRotary;
  const bool norms = m.qk_norm != models::QkNorm::kNone;
  using enum OverlappedMatmul;
  const auto qkv = column_overlap(c.scenario, kQkvForward, kQkvInputGrad, kQkvWeightGrad);
  const auto fc1 = column_overlap(c.scenario, kFc1Forward, kFc1InputGrad, kFc1WeightGrad);
  const bool shared = x.kv_ranks > 1;
  d.qkv = build_column(c, "attn", "qkv", x.qkv, {norms, rotary, shared}, in_matmul(m.qkv_bias), qkv);
  if (has_layers_without_positions(m)) {
    d.qkv_without_positions = build_column(c, "attn", "qkv", x.qkv, {norms, false, shared}, in_matmul(m.qkv_bias), qkv);
  }
  d.gate_up = build_column(c, "mlp", m.gated_mlp ? "gate_up" : "up", x.mlp_in, {},
                           bias_in_activation(m) ? ColumnBias::kInActivation : in_matmul(m.mlp_bias), fc1);
}

void build_projections_out(const Context& c, DecoderSegments::Projections& d) {
  const models::Architecture& m = c.scenario.model;
  const bool behind = m.norm_placement == models::NormPlacement::kAfter;
  using enum OverlappedMatmul;
  d.attn_out =
      build_row(c, "attn", "out", c.x.q, {program::DropoutSite::kAttentionOutput, m.attention_output_bias, behind},
                row_overlap(c.scenario, kProjForward, kProjInputGrad));
  d.down = build_row(c, "mlp", "down", c.x.ffn, {program::DropoutSite::kMlpOutput, m.mlp_bias, behind},
                     row_overlap(c.scenario, kFc2Forward, kFc2InputGrad));
}

void build_quantised(const Context& c, DecoderSegments& d) {
  const std::optional<Quantisation> quantisation = quantisation_of(c.scenario);
  if (!quantisation) return;
  const Context quantising{c.builder, c.roles, c.x, c.scenario, &*quantisation};
  build_projections_in(quantising, d.quantised);
  build_projections_out(quantising, d.quantised);
  if (!norm_quantises(c.scenario)) return;
  d.attn_norm_quantised = norm_forward(c, "attn", NormSite::kBeforeBlock, quantisation->type);
  d.mlp_norm_quantised = norm_forward(c, "mlp", NormSite::kBeforeBlock, quantisation->type);
}

bool has_plain_layers(const Scenario& s) {
  for (std::int64_t layer = 0; layer < s.model.layers; ++layer) {
    if (!quantises_layer(s, layer)) return true;
  }
  return false;
}

struct ActivationKinds {
  OpKind forward, backward;
};

ActivationKinds activation_of(const models::Architecture& model) {
  if (model.gated_mlp) return {OpKind::kSwiGluForward, OpKind::kSwiGluBackward};
  if (model.activation == models::Activation::kSquaredRelu) {
    return {OpKind::kSquaredReluForward, OpKind::kSquaredReluBackward};
  }
  return {OpKind::kGeluForward, OpKind::kGeluBackward};
}

DecoderSegments::Core build_activation(const Context& c) {
  const Shapes& x = c.x;
  const ActivationKinds kinds = activation_of(c.scenario.model);
  SegmentBuilder f("mlp");
  const Ref gate_up = f.slot("gate_up", x.compute, {x.tokens, x.mlp_in});
  const Ref act = f.slot("act", x.compute, {x.tokens, x.ffn});
  Op& forward_op = f.op(kinds.forward, Stream::kCompute, "act", {in(gate_up), out(act)});
  if (bias_in_activation(c.scenario.model)) forward_op.operands.push_back(in(f.slot("bias", x.compute, {x.mlp_in})));

  SegmentBuilder i("mlp");
  const Ref dact = i.slot("dact", x.compute, {x.tokens, x.ffn});
  const Ref saved = i.slot("gate_up", x.compute, {x.tokens, x.mlp_in});
  const Ref dgate_up = i.slot("dgate_up", x.compute, {x.tokens, x.mlp_in});
  Op& backward_op = i.op(kinds.backward, Stream::kCompute, "act", {in(dact), in(saved), out(dgate_up)});
  if (bias_in_activation(c.scenario.model)) backward_op.operands.push_back(in(i.slot("bias", x.compute, {x.mlp_in})));
  const SegmentId forward = c.store(f);
  return {forward, c.store(i)};
}

// Positions and dropout belong to the rank's own rows of the residual stream. Megatron adds positions before it
// scatters the sequence, to all rows on every rank: the same values for more traffic.
void finish_embedding(SegmentBuilder& f, const Context& c, Ref rows, Ref y) {
  const Shapes& x = c.x;
  if (c.scenario.model.positions == models::PositionKind::kLearned) {
    const Ref table = f.slot("positions", x.compute, {c.scenario.model.max_positions, x.hidden});
    Op& op = f.op(OpKind::kPositionForward, Stream::kCompute, "positions", {in(table), acc(rows)});
    op.attributes.batch = x.batch;
    if (x.sequence_parallel) op.index_role = c.roles.tp;
  }
  if (!c.drops()) return;
  const Ref mask = f.slot("mask", DType::kU8, {x.local_tokens, x.hidden});
  Op& drop = f.op(OpKind::kDropoutForward, Stream::kCompute, "dropout", {in(rows), out(y), out(mask)});
  set_dropout(drop, c, program::DropoutSite::kEmbedding);
}

// The gradient of the rank's own rows before their dropout; adds that of the positions.
Ref start_embedding_gradient(SegmentBuilder& w, const Context& c, Ref dy) {
  const Shapes& x = c.x;
  Ref rows = dy;
  if (c.drops()) {
    const Ref mask = w.slot("mask", DType::kU8, {x.local_tokens, x.hidden});
    rows = w.temp("d", x.compute, {x.local_tokens, x.hidden}, kActivations);
    w.op(OpKind::kDropoutBackward, Stream::kCompute, "dropout", {in(dy), in(mask), out(rows)}).attributes.value =
        c.scenario.training.dropout;
  }
  if (c.scenario.model.positions == models::PositionKind::kLearned) {
    const Ref table = w.slot("dpositions", x.gradients, {c.scenario.model.max_positions, x.hidden});
    Op& op = w.op(OpKind::kPositionBackward, Stream::kCompute, "positions", {in(rows), acc(table)});
    op.attributes.batch = x.batch;
    if (x.sequence_parallel) op.index_role = c.roles.tp;
  }
  return rows;
}

SegmentId embedding_forward(const Context& c) {
  const Shapes& x = c.x;
  SegmentBuilder f("embed");
  const Ref tokens = f.slot("tokens", DType::kI32, {x.tokens});
  const Ref table = f.slot("table", x.compute, {x.vocab, x.hidden});
  const Ref y = f.slot("y", x.compute, {x.local_tokens, x.hidden});
  const Ref own = c.drops() ? f.temp("embedded", x.compute, {x.local_tokens, x.hidden}, kActivations) : y;
  Ref rows = own;
  if (x.sequence_parallel) rows = f.temp("rows", x.compute, {x.tokens, x.hidden}, kActivations);
  f.op(OpKind::kEmbeddingForward, Stream::kCompute, "lookup", {in(tokens), in(table), out(rows)}).index_role =
      c.roles.tp;
  if (x.sequence_parallel) {
    tp_collective(f, c, OpKind::kReduceScatter, "reduce", {in(rows), out(own)});
  } else if (x.tensor_parallel) {
    tp_collective(f, c, OpKind::kAllReduce, "reduce", {acc(own)});
  }
  finish_embedding(f, c, own, y);
  return c.store(f);
}

SegmentId embedding_weight_grad(const Context& c) {
  const Shapes& x = c.x;
  SegmentBuilder w("embed");
  const Ref tokens = w.slot("tokens", DType::kI32, {x.tokens});
  const Ref dy = w.slot("dy", x.compute, {x.local_tokens, x.hidden});
  const Ref dtable = w.slot("dtable", x.gradients, {x.vocab, x.hidden});
  Ref full = start_embedding_gradient(w, c, dy);
  if (x.sequence_parallel) {
    const Ref own = full;
    full = w.temp("gathered", x.compute, {x.tokens, x.hidden}, kActivations);
    tp_collective(w, c, OpKind::kAllGather, "gather", {in(own), out(full)});
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
  Ref read = logits;
  if (casts_logits(x, c.scenario)) {
    read = f.slot("logits_fp32", DType::kF32, {x.tokens, x.vocab});
    f.op(OpKind::kCast, Stream::kCompute, "cast", {in(logits), out(read)});
  }
  f.op(OpKind::kCrossEntropyMax, Stream::kCompute, "max", {in(read), out(max)});
  if (x.tensor_parallel) {
    Op& op = f.op(OpKind::kAllReduce, Stream::kTp, "reduce_max", {acc(max)});
    op.group = c.roles.tp;
    op.attributes.reduce = program::Reduce::kMax;
  }
  f.op(OpKind::kCrossEntropySum, Stream::kCompute, "sum", {in(read), in(max), in(targets), out(sums)}).index_role =
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
  const bool casts = casts_logits(x, c.scenario);
  const Ref logits = i.slot("logits", casts ? DType::kF32 : x.compute, {x.tokens, x.vocab});
  Op& op = i.op(OpKind::kCrossEntropyBackward, Stream::kCompute, "loss", {in(max), in(sums), in(targets), acc(logits)});
  op.index_role = c.roles.tp;
  op.attributes.value = scale;
  if (casts) {
    const Ref dlogits = i.slot("dlogits", x.compute, {x.tokens, x.vocab});
    i.op(OpKind::kCast, Stream::kCompute, "cast", {in(logits), out(dlogits)});
  }
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
  const bool behind = s.model.norm_placement == models::NormPlacement::kAfter;
  const NormSite site = behind ? NormSite::kBehindBlock : NormSite::kBeforeBlock;
  d.attn_norm = build_norm(c, "attn", site);
  d.mlp_norm = build_norm(c, "mlp", site);
  d.head_norm = build_norm(c, "head", NormSite::kHead);
  const bool plain = has_plain_layers(s);
  if (plain) build_projections_in(c, d.plain);
  // Megatron-Core's output layer is not one of Transformer Engine's and gathers first.
  d.logits = build_column(c, "head", "logits", x.vocab, {}, ColumnBias::kNone, std::nullopt);
  d.attention = x.context > 1 ? build_context_attention(c) : build_attention(c);
  d.activation = build_activation(c);
  if (plain) build_projections_out(c, d.plain);
  build_quantised(c, d);
  if (behind) {
    d.attn_gradient_sum = gradient_sum(c, "attn");
    d.mlp_gradient_sum = gradient_sum(c, "mlp");
  }
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
