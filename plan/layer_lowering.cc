// Forward, recomputed forward and backward passes of one decoder layer and of the head, as calls.
#include "base/check.h"
#include "plan/stage_lowering.h"

namespace stepcast::plan {

using program::DType;
using program::Pass;
using program::Shape;
using program::Tag;
using program::ViewId;

void StageLowering::norm_forward(Pass pass, std::uint32_t module, ViewId x, ViewId* n, ViewId* rstd) {
  const bool attention = layout_.modules[module].kind == ModuleKind::kAttention;
  *n = hidden_tensor("norm");
  *rstd = tensor("rstd", DType::kF32, Shape{x_.local_tokens});
  rank_.call(attention ? segments_.attn_norm.forward : segments_.mlp_norm.forward,
             {x, store_.weight(*layout_.of_module[module].norm), *n, *rstd}, layer_tag(pass));
}

void StageLowering::core_forward(Pass pass, LayerActivations& a) {
  a.attn = tensor("attn", x_.compute, Shape{x_.tokens, x_.q});
  a.lse = tensor("lse", DType::kF32, Shape{x_.tokens, x_.heads});
  rank_.call(segments_.attention.forward, {a.qkv, a.attn, a.lse}, layer_tag(pass));
}

void StageLowering::act_forward(Pass pass, LayerActivations& a) {
  a.act = tensor("act", x_.compute, Shape{x_.tokens, x_.ffn});
  rank_.call(segments_.swiglu.forward, {a.gate_up, a.act}, layer_tag(pass));
}

void StageLowering::attention_forward(Pass pass, std::uint32_t module, LayerActivations& a) {
  const ModuleParameters& p = layout_.of_module[module];
  norm_forward(pass, module, a.x, &a.attn_n, &a.attn_rstd);
  a.qkv = tensor("qkv", x_.compute, Shape{x_.tokens, x_.qkv});
  rank_.call(segments_.qkv.forward, {a.attn_n, store_.weight(*p.in), a.qkv}, layer_tag(pass));
  core_forward(pass, a);
  a.mid = hidden_tensor("mid");
  rank_.call(segments_.attn_out.forward, {a.attn, store_.weight(*p.out), a.x, a.mid}, layer_tag(pass));
}

ViewId StageLowering::mlp_forward(Pass pass, std::uint32_t module, LayerActivations& a) {
  const ModuleParameters& p = layout_.of_module[module];
  norm_forward(pass, module, a.mid, &a.mlp_n, &a.mlp_rstd);
  a.gate_up = tensor("gate_up", x_.compute, Shape{x_.tokens, 2 * x_.ffn});
  rank_.call(segments_.gate_up.forward, {a.mlp_n, store_.weight(*p.in), a.gate_up}, layer_tag(pass));
  act_forward(pass, a);
  const ViewId y = hidden_tensor("layer_out");
  rank_.call(segments_.down.forward, {a.act, store_.weight(*p.out), a.mid, y}, layer_tag(pass));
  return y;
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
  HeadActivations a;
  a.x = x;
  a.n = hidden_tensor("final_norm");
  a.rstd = tensor("rstd", DType::kF32, Shape{x_.local_tokens});
  a.logits = tensor("logits", x_.compute, Shape{x_.tokens, x_.vocab});
  a.max = tensor("max", DType::kF32, Shape{x_.tokens});
  a.sums = tensor("sums", DType::kF32, Shape{2, x_.tokens});
  const Tag t = tag(Pass::kForward);
  const TokenViews& tokens = load_tokens();
  rank_.call(segments_.head_norm.forward, {x, store_.weight(*p.norm), a.n, a.rstd}, t);
  rank_.call(segments_.logits.forward, {a.n, store_.weight(*p.in), a.logits}, t);
  rank_.call(segments_.loss_forward, {a.logits, tokens.targets, a.max, a.sums, *loss_}, t);
  return a;
}

ViewId StageLowering::column_backward(const DecoderSegments::Projection& p, std::uint32_t parameter, Tag t, ViewId dy,
                                      ViewId n) {
  const ViewId dn = hidden_tensor("dnorm");
  std::vector<ViewId> args = {dy, store_.weight(parameter), dn};
  ViewId input = n;
  if (x_.sequence_parallel) {
    input = tensor("gathered", x_.compute, Shape{x_.tokens, x_.hidden});
    args.push_back(n);
    args.push_back(input);
  }
  t.pass = Pass::kInputGrad;
  rank_.call(p.input_grad, std::move(args), t);
  t.pass = Pass::kWeightGrad;
  rank_.call(p.weight_grad, {dy, input, store_.gradient(parameter)}, t);
  return dn;
}

ViewId StageLowering::row_backward(const DecoderSegments::Projection& p, std::uint32_t parameter, ViewId dy, ViewId a) {
  const std::int64_t width = rank_.at(a).type.shape.extent(1);
  const ViewId da = tensor("dinput", x_.compute, Shape{x_.tokens, width});
  std::vector<ViewId> args = {dy, store_.weight(parameter), da};
  ViewId full = dy;
  if (x_.sequence_parallel) {
    full = tensor("gathered_gradient", x_.compute, Shape{x_.tokens, x_.hidden});
    args.push_back(full);
  }
  rank_.call(p.input_grad, std::move(args), layer_tag(Pass::kInputGrad));
  rank_.call(p.weight_grad, {full, a, store_.gradient(parameter)}, layer_tag(Pass::kWeightGrad));
  return da;
}

ViewId StageLowering::norm_backward(const DecoderSegments::Norm& n, std::uint32_t parameter, Tag t,
                                    std::vector<ViewId> args, std::optional<ViewId> residual) {
  const ViewId dx = hidden_tensor("dx");
  t.pass = Pass::kInputGrad;
  args.insert(args.end(), {store_.weight(parameter), dx, store_.gradient(parameter)});
  if (residual) args.push_back(*residual);
  rank_.call(n.backward, std::move(args), t);
  return dx;
}

ViewId StageLowering::head_backward(std::uint32_t module, const HeadActivations& a) {
  const ModuleParameters& p = layout_.of_module[module];
  const Tag t = tag(Pass::kInputGrad);
  rank_.call(segments_.loss_input_grad, {a.max, a.sums, load_tokens().targets, a.logits}, t);
  const ViewId dn = column_backward(segments_.logits, *p.in, t, a.logits, a.n);
  return norm_backward(segments_.head_norm, *p.norm, t, {dn, a.x, a.rstd}, std::nullopt);
}

ViewId StageLowering::layer_backward(std::uint32_t attn_module, LayerActivations a, ViewId dy) {
  if (s_.plan.recompute.kind == RecomputeKind::kFull) {
    ViewId unused;
    a = forward_layer(Pass::kRecompute, attn_module, a.x, &unused);
  }
  const ViewId dmid = mlp_backward(attn_module + 1, a, dy);
  done(attn_module + 1);
  const ViewId dx = attention_backward(attn_module, a, dmid);
  done(attn_module);
  return dx;
}

ViewId StageLowering::mlp_backward(std::uint32_t module, LayerActivations& a, ViewId dy) {
  const ModuleParameters& p = layout_.of_module[module];
  const bool selective = s_.plan.recompute.kind == RecomputeKind::kSelective;
  if (selective && s_.plan.recompute.mlp_act) act_forward(Pass::kRecompute, a);
  const ViewId dact = row_backward(segments_.down, *p.out, dy, a.act);
  const ViewId dgate_up = tensor("dgate_up", x_.compute, Shape{x_.tokens, 2 * x_.ffn});
  rank_.call(segments_.swiglu.input_grad, {dact, a.gate_up, dgate_up}, layer_tag(Pass::kInputGrad));
  if (selective && s_.plan.recompute.layernorm) norm_forward(Pass::kRecompute, module, a.mid, &a.mlp_n, &a.mlp_rstd);
  const ViewId dn = column_backward(segments_.gate_up, *p.in, layer_tag(Pass::kInputGrad), dgate_up, a.mlp_n);
  return norm_backward(segments_.mlp_norm, *p.norm, layer_tag(Pass::kInputGrad), {dn, a.mid, a.mlp_rstd}, dy);
}

ViewId StageLowering::attention_backward(std::uint32_t module, LayerActivations& a, ViewId dy) {
  const ModuleParameters& p = layout_.of_module[module];
  const bool selective = s_.plan.recompute.kind == RecomputeKind::kSelective;
  if (selective && s_.plan.recompute.core_attn) core_forward(Pass::kRecompute, a);
  const ViewId dattn = row_backward(segments_.attn_out, *p.out, dy, a.attn);
  const ViewId dqkv = tensor("dqkv", x_.compute, Shape{x_.tokens, x_.qkv});
  rank_.call(segments_.attention.input_grad, {dattn, a.qkv, a.attn, a.lse, dqkv}, layer_tag(Pass::kInputGrad));
  if (selective && s_.plan.recompute.layernorm) norm_forward(Pass::kRecompute, module, a.x, &a.attn_n, &a.attn_rstd);
  const ViewId dn = column_backward(segments_.qkv, *p.in, layer_tag(Pass::kInputGrad), dqkv, a.attn_n);
  return norm_backward(segments_.attn_norm, *p.norm, layer_tag(Pass::kInputGrad), {dn, a.x, a.attn_rstd}, dy);
}

}  // namespace stepcast::plan
