// Forward, recomputed forward and backward passes of one decoder layer and of the head, as calls.
#include "base/check.h"
#include "plan/quantised_parts.h"
#include "plan/stage_lowering.h"

namespace stepcast::plan {

using program::DType;
using program::Pass;
using program::Shape;
using program::Tag;
using program::ViewId;

void StageLowering::norm_forward(Pass pass, std::uint32_t module, ViewId x, ViewId* n, ViewId* rstd) {
  const bool attention = layout_.modules[module].kind == ModuleKind::kAttention;
  const ModuleParameters& p = layout_.of_module[module];
  const bool quantises = quantises_layer(s_, layer_) && norm_quantises(s_);
  *n = quantises ? tensor("norm", quantisation_->type, Shape{x_.local_tokens, x_.hidden}) : hidden_tensor("norm");
  *rstd = tensor("rstd", DType::kF32, x_.norm_stats);
  std::vector<ViewId> args = {x, store_.weight(*p.norm), *n, *rstd};
  if (p.norm_bias) args.push_back(store_.weight(*p.norm_bias));
  const program::SegmentId plain = attention ? segments_.attn_norm.forward : segments_.mlp_norm.forward;
  const program::SegmentId own = attention ? segments_.attn_norm_quantised : segments_.mlp_norm_quantised;
  rank_.call(quantises ? own : plain, std::move(args), layer_tag(pass));
}

void StageLowering::norm_before(Pass pass, std::uint32_t module, ViewId x, ViewId* n, ViewId* rstd) {
  if (norms_behind()) {
    *n = x;
  } else {
    norm_forward(pass, module, x, n, rstd);
  }
}

ViewId StageLowering::norm_behind(Pass pass, std::uint32_t module, ViewId o, ViewId residual, const char* name,
                                  ViewId* rstd) {
  const bool attention = layout_.modules[module].kind == ModuleKind::kAttention;
  const ModuleParameters& p = layout_.of_module[module];
  const ViewId y = hidden_tensor(name);
  *rstd = tensor("rstd", DType::kF32, x_.norm_stats);
  std::vector<ViewId> args = {o, store_.weight(*p.norm), y, *rstd};
  if (p.norm_bias) args.push_back(store_.weight(*p.norm_bias));
  args.push_back(residual);
  rank_.call(attention ? segments_.attn_norm.forward : segments_.mlp_norm.forward, std::move(args), layer_tag(pass));
  return y;
}

const DecoderSegments::Projection& StageLowering::qkv_segments() const {
  const DecoderSegments::Projections& p = projections();
  return s_.model.kind_of(layer_).rotary ? p.qkv : p.qkv_without_positions;
}

void StageLowering::qkv_forward(Pass pass, std::uint32_t module, LayerActivations& a) {
  const ModuleParameters& p = layout_.of_module[module];
  a.qkv = tensor("qkv", x_.compute, Shape{x_.tokens, x_.qkv});
  std::vector<ViewId> args = {a.attn_n, weight_read(qkv_segments(), *p.in, pass), a.qkv};
  a.qkv_in = keep_column_input(qkv_segments(), a.attn_n, args);
  if (p.in_bias) args.push_back(store_.weight(*p.in_bias));
  if (p.q_norm) {
    a.qk_raw = tensor("qk_raw", x_.compute, Shape{x_.tokens, x_.qk});
    a.qk_rstd = tensor("qk_rstd", DType::kF32, x_.qk_stats());
    args.insert(args.end(), {store_.weight(*p.q_norm), store_.weight(*p.k_norm), a.qk_raw, a.qk_rstd});
  }
  rank_.call(qkv_segments().forward, std::move(args), layer_tag(pass));
}

void StageLowering::core_forward(Pass pass, LayerActivations& a) {
  a.attn = tensor("attn", x_.compute, Shape{x_.tokens, x_.q});
  if (exchanges_heads()) {
    a.lse = tensor("lse", DType::kF32, x_.exchanged_lse());
    a.exchanged_qkv = tensor("exchanged_qkv", x_.compute, x_.exchanged_qkv());
    a.exchanged_attn = tensor("exchanged_attn", x_.compute, x_.exchanged_q());
    rank_.call(segments_.attention.forward, {a.qkv, a.attn, a.lse, a.exchanged_qkv, a.exchanged_attn}, layer_tag(pass));
    return;
  }
  if (s_.attention == AttentionKind::kFused) {
    a.lse = tensor("lse", DType::kF32, Shape{x_.tokens, x_.heads});
    rank_.call(segments_.attention.forward, {a.qkv, a.attn, a.lse}, layer_tag(pass));
    return;
  }
  const Shape scores = x_.scores();
  a.probabilities = tensor("probabilities", x_.compute, scores);
  std::vector<ViewId> args = {a.qkv, a.attn, a.probabilities};
  if (drops()) {
    a.dropped = tensor("dropped", x_.compute, scores);
    a.scores_mask = tensor("scores_mask", DType::kU8, scores);
    args.insert(args.end(), {a.dropped, a.scores_mask});
  }
  rank_.call(segments_.attention.forward, std::move(args), layer_tag(pass));
}

void StageLowering::act_forward(Pass pass, std::uint32_t module, LayerActivations& a) {
  const ModuleParameters& p = layout_.of_module[module];
  a.act = tensor("act", x_.compute, Shape{x_.tokens, x_.ffn});
  std::vector<ViewId> args = {a.gate_up, a.act};
  if (bias_in_activation(s_.model)) args.push_back(store_.weight(*p.in_bias));
  rank_.call(segments_.activation.forward, std::move(args), layer_tag(pass));
}

ViewId StageLowering::row_forward(Pass pass, const DecoderSegments::Projection& p, const ModuleParameters& m, ViewId a,
                                  ViewId residual, const char* name, ViewId* mask, ViewId* kept) {
  const ViewId y = hidden_tensor(name);
  std::vector<ViewId> args = {a, weight_read(p, *m.out, pass)};
  *kept = keep_row_input(p, a, args);
  if (!norms_behind()) args.push_back(residual);
  args.push_back(y);
  if (m.out_bias) args.push_back(store_.weight(*m.out_bias));
  if (drops()) {
    *mask = tensor("mask", DType::kU8, Shape{x_.local_tokens, x_.hidden});
    args.push_back(*mask);
  }
  rank_.call(p.forward, std::move(args), layer_tag(pass));
  return y;
}

void StageLowering::attention_forward(Pass pass, std::uint32_t module, LayerActivations& a) {
  const ModuleParameters& p = layout_.of_module[module];
  norm_before(pass, module, a.x, &a.attn_n, &a.attn_rstd);
  qkv_forward(pass, module, a);
  core_forward(pass, a);
  const char* const name = norms_behind() ? "attn_out" : "mid";
  a.mid = row_forward(pass, projections().attn_out, p, a.attn, a.x, name, &a.attn_mask, &a.out_in);
  if (!norms_behind()) return;
  a.attn_o = a.mid;
  a.mid = norm_behind(pass, module, a.attn_o, a.x, "mid", &a.attn_rstd);
}

ViewId StageLowering::mlp_forward(Pass pass, std::uint32_t module, LayerActivations& a) {
  norm_before(pass, module, a.mid, &a.mlp_n, &a.mlp_rstd);
  const ViewId y = mlp_block(pass, module, a, &a.mlp_mask);
  if (!norms_behind()) return y;
  a.mlp_o = y;
  return norm_behind(pass, module, a.mlp_o, a.mid, "layer_out", &a.mlp_rstd);
}

ViewId StageLowering::mlp_block(Pass pass, std::uint32_t module, LayerActivations& a, ViewId* mask) {
  const ModuleParameters& p = layout_.of_module[module];
  a.gate_up = tensor("gate_up", x_.compute, Shape{x_.tokens, x_.mlp_in});
  const DecoderSegments::Projection& in = projections().gate_up;
  std::vector<ViewId> args = {a.mlp_n, weight_read(in, *p.in, pass), a.gate_up};
  a.gate_up_in = keep_column_input(in, a.mlp_n, args);
  if (p.in_bias && !bias_in_activation(s_.model)) args.push_back(store_.weight(*p.in_bias));
  rank_.call(in.forward, std::move(args), layer_tag(pass));
  act_forward(pass, module, a);
  const char* const name = norms_behind() ? "mlp_out" : "layer_out";
  return row_forward(pass, projections().down, p, a.act, a.mid, name, mask, &a.down_in);
}

LayerActivations StageLowering::forward_layer(Pass pass, std::uint32_t attn_module, ViewId x, ViewId* y) {
  CHECK(layout_.modules[attn_module + 1].kind == ModuleKind::kMlp, attn_module);
  LayerActivations a;
  a.x = x;
  attention_forward(pass, attn_module, a);
  *y = mlp_forward(pass, attn_module + 1, a);
  return a;
}

HeadActivations StageLowering::head_forward(std::uint32_t module, ViewId x) {
  const ModuleParameters& p = layout_.of_module[module];
  const Shape logits{x_.tokens, x_.vocab};
  HeadActivations a;
  a.x = x;
  a.n = hidden_tensor("final_norm");
  a.rstd = tensor("rstd", DType::kF32, x_.norm_stats);
  a.logits = tensor("logits", x_.compute, logits);
  a.max = tensor("max", DType::kF32, Shape{x_.tokens});
  a.sums = tensor("sums", DType::kF32, Shape{2, x_.tokens});
  const Tag t = tag(Pass::kForward);
  const TokenViews& tokens = load_tokens();
  std::vector<ViewId> args = {x, store_.weight(*p.norm), a.n, a.rstd};
  if (p.norm_bias) args.push_back(store_.weight(*p.norm_bias));
  rank_.call(segments_.head_norm.forward, std::move(args), t);
  rank_.call(segments_.logits.forward, {a.n, store_.weight(*p.in), a.logits}, t);
  args = {a.logits, tokens.targets, a.max, a.sums, *loss_};
  if (casts_logits(x_, s_)) {
    a.logits_fp32 = tensor("logits_fp32", DType::kF32, logits);
    args.push_back(a.logits_fp32);
  }
  rank_.call(segments_.loss_forward, std::move(args), t);
  return a;
}

ViewId StageLowering::column_backward(const DecoderSegments::Projection& p, const ModuleParameters& m, Tag t, ViewId dy,
                                      ViewId n, std::vector<ViewId> more, std::optional<ViewId> projected) {
  const ViewId dn = hidden_tensor("dnorm");
  std::vector<ViewId> args = {dy, weight_read(p, *m.in, Pass::kInputGrad), dn};
  ViewId input = n;
  if (x_.sequence_parallel) {
    input = p.quantised ? weight_gradient_operand("gathered", x_.hidden)
                        : tensor("gathered", x_.compute, Shape{x_.tokens, x_.hidden});
    args.push_back(n);
    args.push_back(input);
  }
  const ViewId projected_gradient = projected.value_or(dy);
  ViewId left = projected_gradient;
  if (p.quantised) {
    left = weight_gradient_operand("quantised_gradient", rank_.at(projected_gradient).type.shape.extent(1));
    args.push_back(left);
  }
  args.insert(args.end(), more.begin(), more.end());
  t.pass = Pass::kInputGrad;
  rank_.call(p.input_grad, std::move(args), t);
  t.pass = Pass::kWeightGrad;
  std::vector<ViewId> weight_args = {left, input, store_.gradient(*m.in)};
  if (m.in_bias) weight_args.insert(weight_args.end(), {projected_gradient, store_.gradient(*m.in_bias)});
  rank_.call(p.weight_grad, std::move(weight_args), t);
  return dn;
}

ViewId StageLowering::row_backward(const DecoderSegments::Projection& p, const ModuleParameters& m, ViewId dy, ViewId a,
                                   ViewId mask) {
  const std::int64_t width = layout_.parameters[*m.out].shape.extent(1);
  const ViewId da = tensor("dinput", x_.compute, Shape{x_.tokens, width});
  std::vector<ViewId> args = {dy, weight_read(p, *m.out, Pass::kInputGrad), da};
  ViewId full = dy;
  ViewId own = dy;
  if (p.quantised) {
    full = weight_gradient_operand("quantised_gradient", x_.hidden);
    args.push_back(full);
  } else if (x_.sequence_parallel) {
    full = tensor("gathered_gradient", x_.compute, Shape{x_.tokens, x_.hidden});
    args.push_back(full);
  }
  if (drops()) {
    own = hidden_tensor("undropped_gradient");
    if (!x_.sequence_parallel && !p.quantised) full = own;
    args.insert(args.end(), {mask, own});
  }
  rank_.call(p.input_grad, std::move(args), layer_tag(Pass::kInputGrad));
  std::vector<ViewId> weight_args = {full, a, store_.gradient(*m.out)};
  if (m.out_bias) weight_args.insert(weight_args.end(), {own, store_.gradient(*m.out_bias)});
  rank_.call(p.weight_grad, std::move(weight_args), layer_tag(Pass::kWeightGrad));
  return da;
}

ViewId StageLowering::norm_backward(const DecoderSegments::Norm& n, const ModuleParameters& m, Tag t,
                                    std::vector<ViewId> args, std::optional<ViewId> residual) {
  const ViewId dx = hidden_tensor("dx");
  t.pass = Pass::kInputGrad;
  args.insert(args.end(), {store_.weight(*m.norm), dx, store_.gradient(*m.norm)});
  if (residual) args.push_back(*residual);
  if (m.norm_bias) args.push_back(store_.gradient(*m.norm_bias));
  rank_.call(n.backward, std::move(args), t);
  return dx;
}

ViewId StageLowering::block_input_gradient(std::uint32_t module, ViewId dn, ViewId x, ViewId rstd, ViewId dy) {
  const bool attention = layout_.modules[module].kind == ModuleKind::kAttention;
  const Tag t = layer_tag(Pass::kInputGrad);
  if (norms_behind()) {
    const ViewId dx = hidden_tensor("dx");
    rank_.call(attention ? segments_.attn_gradient_sum : segments_.mlp_gradient_sum, {dn, dy, dx}, t);
    return dx;
  }
  const DecoderSegments::Norm& norm = attention ? segments_.attn_norm : segments_.mlp_norm;
  return norm_backward(norm, layout_.of_module[module], t, {dn, x, rstd}, dy);
}

ViewId StageLowering::head_backward(std::uint32_t module, const HeadActivations& a) {
  const ModuleParameters& p = layout_.of_module[module];
  const Tag t = tag(Pass::kInputGrad);
  ViewId dlogits = a.logits;
  std::vector<ViewId> args = {a.max, a.sums, load_tokens().targets, a.logits};
  if (casts_logits(x_, s_)) {
    dlogits = tensor("dlogits", x_.compute, Shape{x_.tokens, x_.vocab});
    args = {a.max, a.sums, load_tokens().targets, a.logits_fp32, dlogits};
  }
  rank_.call(segments_.loss_input_grad, std::move(args), t);
  const ViewId dn = column_backward(segments_.logits, p, t, dlogits, a.n);
  return norm_backward(segments_.head_norm, p, t, {dn, a.x, a.rstd}, std::nullopt);
}

ViewId StageLowering::layer_backward(std::uint32_t attn_module, LayerActivations a, ViewId dy) {
  const ViewId dmid = mlp_backward(attn_module + 1, a, dy);
  done(attn_module + 1);
  const ViewId dx = attention_backward(attn_module, a, dmid);
  done(attn_module);
  return dx;
}

ViewId StageLowering::mlp_backward(std::uint32_t module, LayerActivations& a, ViewId dy) {
  const ModuleParameters& p = layout_.of_module[module];
  const Recompute& recompute = s_.plan.recompute;
  const bool selective = recompute.kind == RecomputeKind::kSelective;
  const bool whole = selective && recompute.mlp;
  if (selective && recompute.layernorm && whole) norm_before(Pass::kRecompute, module, a.mid, &a.mlp_n, &a.mlp_rstd);
  if (whole) {
    ViewId same_mask;  // the one of the forward pass is kept
    mlp_block(Pass::kRecompute, module, a, &same_mask);
  }
  const DecoderSegments::Projections& projected = projections();
  if (selective && recompute.mlp_act && !whole) {
    act_forward(Pass::kRecompute, module, a);
    a.down_in = keep_recomputed(projected.down, "down", false, a.act);
  }
  const Tag t = layer_tag(Pass::kInputGrad);
  const ViewId d_o =
      norms_behind() ? norm_backward(segments_.mlp_norm, p, t, {dy, a.mlp_o, a.mlp_rstd}, std::nullopt) : dy;
  const ViewId dact = row_backward(projected.down, p, d_o, a.down_in, a.mlp_mask);
  const ViewId dgate_up = tensor("dgate_up", x_.compute, Shape{x_.tokens, x_.mlp_in});
  std::vector<ViewId> args = {dact, a.gate_up, dgate_up};
  if (bias_in_activation(s_.model)) args.push_back(store_.weight(*p.in_bias));
  rank_.call(segments_.activation.input_grad, std::move(args), layer_tag(Pass::kInputGrad));
  if (selective && recompute.layernorm && !whole) {
    recompute_norm(projected.gate_up, module, a.mid, &a.mlp_n, &a.mlp_rstd, &a.gate_up_in);
  }
  const ViewId dn = column_backward(projected.gate_up, p, t, dgate_up, a.gate_up_in);
  return block_input_gradient(module, dn, a.mid, a.mlp_rstd, dy);
}

ViewId StageLowering::core_backward(const LayerActivations& a, ViewId dattn) {
  const ViewId dqkv = tensor("dqkv", x_.compute, Shape{x_.tokens, x_.qkv});
  std::vector<ViewId> args = {dattn, a.qkv, a.attn, a.lse, dqkv};
  if (exchanges_heads()) args = {dattn, a.exchanged_qkv, a.exchanged_attn, a.lse, dqkv};
  if (s_.attention == AttentionKind::kUnfused) {
    args = {dattn, a.qkv, a.probabilities, dqkv};
    if (drops()) args.insert(args.end(), {a.dropped, a.scores_mask});
  }
  rank_.call(segments_.attention.input_grad, std::move(args), layer_tag(Pass::kInputGrad));
  return dqkv;
}

ViewId StageLowering::attention_backward(std::uint32_t module, LayerActivations& a, ViewId dy) {
  const ModuleParameters& p = layout_.of_module[module];
  const bool selective = s_.plan.recompute.kind == RecomputeKind::kSelective;
  const Tag t = layer_tag(Pass::kInputGrad);
  const ViewId d_o =
      norms_behind() ? norm_backward(segments_.attn_norm, p, t, {dy, a.attn_o, a.attn_rstd}, std::nullopt) : dy;
  const ViewId dattn = row_backward(projections().attn_out, p, d_o, a.out_in, a.attn_mask);
  // The projection keeps the first output as its input (Megatron's checkpointed core attention); the second one is
  // there for the backward pass of the core.
  if (selective && s_.plan.recompute.core_attn) core_forward(Pass::kRecompute, a);
  const ViewId dqkv = core_backward(a, dattn);
  if (selective && s_.plan.recompute.layernorm) {
    recompute_norm(qkv_segments(), module, a.x, &a.attn_n, &a.attn_rstd, &a.qkv_in);
  }
  std::vector<ViewId> more;
  if (p.q_norm) {
    more = {a.qk_raw,
            a.qk_rstd,
            store_.weight(*p.q_norm),
            store_.weight(*p.k_norm),
            store_.gradient(*p.q_norm),
            store_.gradient(*p.k_norm)};
  }
  std::optional<ViewId> projected;
  if (x_.kv_ranks > 1) {
    projected = tensor("dqkv_part", x_.compute, Shape{x_.tokens, x_.qkv_rows});
    more.push_back(*projected);
  }
  const ViewId dn = column_backward(qkv_segments(), p, t, dqkv, a.qkv_in, std::move(more), projected);
  return block_input_gradient(module, dn, a.x, a.attn_rstd, dy);
}

}  // namespace stepcast::plan
