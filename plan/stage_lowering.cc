// The step of one pipeline rank: passes, pipeline messages, step start and end. Layers are in layer_lowering.cc.
#include "plan/stage_lowering.h"

#include <string>

#include "base/check.h"
#include "plan/context_segments.h"
#include "plan/flat_calls.h"

namespace stepcast::plan {

using program::DType;
using program::MemoryClass;
using program::OpKind;
using program::Pass;
using program::SegmentBuilder;
using program::Shape;
using program::Stream;
using program::Tag;
using program::ViewId;

StageLowering::StageLowering(program::ProgramBuilder& b, const Roles& roles, const Shapes& x, const Scenario& s,
                             const DecoderSegments& segments, std::int32_t pp_rank)
    : b_(b),
      roles_(roles),
      x_(x),
      s_(s),
      segments_(segments),
      schedule_(schedule_of(s)),
      pp_rank_(pp_rank),
      rank_("stage" + std::to_string(pp_rank)),
      layout_(lay_out_parameters(b, roles, x, s, pp_rank)),
      store_(b, rank_, roles, x, s, layout_, plan_uses()),
      quantisation_(quantisation_of(s)) {}

ScheduleShape StageLowering::schedule_of(const Scenario& s) {
  return {s.plan.schedule, s.plan.pp, s.plan.vp, s.microbatches(), s.plan.microbatch_group};
}

// Walks the passes as run() does and joins neighbouring visits of one unit into one use.
std::vector<UnitUse> StageLowering::plan_uses() {
  std::vector<UnitUse> uses;
  for (const PassItem& pass : pass_list(schedule_, pp_rank_)) {
    std::vector<std::uint32_t> units;
    for (std::uint32_t u = 0; u < layout_.units.size(); ++u) {
      if (layout_.units[u].chunk == pass.chunk) units.push_back(u);
    }
    const bool forward = pass.kind == PassKind::kForward;
    if (!forward) units = std::vector<std::uint32_t>(units.rbegin(), units.rend());
    for (const std::uint32_t u : units) {
      if (uses.empty() || uses.back().unit != u) uses.push_back({u, pass.microbatch, forward});
      visits_.push_back({u, uses.size() - 1});
    }
  }
  return uses;
}

void StageLowering::enter_unit(std::uint32_t unit) {
  CHECK(visit_ < visits_.size() && visits_[visit_].unit == unit, visit_, unit);
  if (visit_ == 0 || visits_[visit_].use != visits_[visit_ - 1].use) store_.begin_use(visits_[visit_].use);
  ++visit_;
  if (pass_.kind == PassKind::kBackward) store_.begin_backward(unit, pass_.microbatch);
}

ViewId StageLowering::tensor(const char* name, DType t, Shape shape) {
  return rank_.tensor(name, t, shape, MemoryClass::kActivations);
}

ViewId StageLowering::hidden_tensor(const char* name) {
  return tensor(name, x_.compute, Shape{x_.local_tokens, x_.hidden});
}

Tag StageLowering::tag(Pass pass) const {
  Tag t;
  t.pass = pass;
  t.chunk = pass_.chunk;
  t.microbatch = pass_.microbatch;
  return t;
}

Tag StageLowering::layer_tag(Pass pass) const {
  Tag t = tag(pass);
  t.layer = static_cast<std::uint32_t>(layer_);
  return t;
}

program::RankProgram StageLowering::run() {
  begin_step();
  const std::vector<PipelineStep> steps = pipeline_steps(schedule_, pp_rank_);
  std::vector<std::size_t> last_step(static_cast<std::size_t>(schedule_.chunks), 0);
  for (std::size_t i = 0; i < steps.size(); ++i) last_step[steps[i].pass.chunk] = i;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    step(steps[i]);
    if (last_step[steps[i].pass.chunk] == i) store_.chunk_done(steps[i].pass.chunk);
  }
  CHECK(visit_ == visits_.size(), visit_, visits_.size());
  end_step();
  return rank_.take();
}

void StageLowering::begin_step() {
  store_.begin_step();
  for (const Module& m : layout_.modules) {
    if (m.kind != ModuleKind::kHead) continue;
    loss_ = rank_.tensor("loss", DType::kF32, Shape{1}, MemoryClass::kActivations, true);
    rank_.set_loss(*loss_);
    Tag t;
    t.pass = Pass::kOptimizer;
    rank_.call(zero_segment(b_, "loss", DType::kF32, 1), {*loss_}, t);
  }
}

void StageLowering::end_step() {
  store_.finish_backward();
  Tag t;
  t.pass = Pass::kOptimizer;
  if (loss_ && s_.plan.replicas() > 1) {
    const CollectiveSpec c{"loss", "reduce", roles_.replicas, Stream::kDp, program::Channel::kMain};
    rank_.call(all_reduce_segment(b_, c, DType::kF32, 1), {*loss_}, t);
  }
  store_.optimizer_step();
  if (loss_) {
    // The training loop logs the loss of every step.
    SegmentBuilder read("loss");
    const program::Ref loss = read.slot("loss", DType::kF32, {1});
    read.op(OpKind::kHostRead, Stream::kD2h, "read", {program::in(loss)});
    rank_.call(b_.segment(read.take()), {*loss_}, t);
  }
}

void StageLowering::step(const PipelineStep& st) {
  pass_ = st.pass;
  const Key key{pass_.chunk, pass_.microbatch};
  switch (st.kind) {
    case StepKind::kPass:
      if (pass_.kind == PassKind::kForward) {
        forward_pass(pass_);
      } else {
        backward_pass(pass_);
      }
      return;
    case StepKind::kReceiveActivation:
      input_[key] = hidden_tensor("received");
      rank_.call(segments_.receive_activation, {input_.at(key)}, tag(Pass::kComm));
      return;
    case StepKind::kSendActivation:
      rank_.call(segments_.send_activation, {output_.at(key)}, tag(Pass::kComm));
      return;
    case StepKind::kReceiveGradient:
      output_gradient_[key] = hidden_tensor("received_gradient");
      rank_.call(segments_.receive_gradient, {output_gradient_.at(key)}, tag(Pass::kComm));
      return;
    case StepKind::kSendGradient:
      rank_.call(segments_.send_gradient, {input_gradient_.at(key)}, tag(Pass::kComm));
      return;
  }
}

void StageLowering::forward_pass(const PassItem& p) {
  const Key key{p.chunk, p.microbatch};
  std::optional<ViewId> x;
  if (const auto received = input_.find(key); received != input_.end()) x = received->second;
  for (std::uint32_t m = 0; m < layout_.modules.size(); ++m) {
    const Module& module = layout_.modules[m];
    if (module.chunk != p.chunk || module.kind == ModuleKind::kMlp) continue;
    enter_unit(module.unit);
    if (module.kind == ModuleKind::kEmbedding) {
      x = load_and_embed(m);
      continue;
    }
    CHECK(x.has_value(), p.chunk, p.microbatch);
    if (module.kind == ModuleKind::kHead) {
      heads_[key] = head_forward(m, *x);
      continue;
    }
    layer_ = module.layer;
    ViewId y;
    layers_[key].push_back(forward_layer(Pass::kForward, m, *x, &y));
    x = y;
  }
  CHECK(x.has_value(), p.chunk, p.microbatch);
  output_[key] = *x;
  update_scales(Pass::kForward);
}

void StageLowering::backward_pass(const PassItem& p) {
  const Key key{p.chunk, p.microbatch};
  std::optional<ViewId> dy;
  if (const auto received = output_gradient_.find(key); received != output_gradient_.end()) dy = received->second;
  const std::size_t layers = layers_[key].size();  // of the virtual stage
  for (std::size_t i = layout_.modules.size(); i-- > 0;) {
    const auto m = static_cast<std::uint32_t>(i);
    const Module& module = layout_.modules[m];
    if (module.chunk != p.chunk || module.kind == ModuleKind::kMlp) continue;
    enter_unit(module.unit);
    if (module.kind == ModuleKind::kHead) {
      dy = head_backward(m, heads_.at(key));
      done(m);
      continue;
    }
    CHECK(dy.has_value(), p.chunk, p.microbatch);
    if (module.kind == ModuleKind::kEmbedding) {
      const ModuleParameters& parameters = layout_.of_module[m];
      std::vector<ViewId> args = {tokens_.at(key).tokens, *dy, store_.gradient(*parameters.in)};
      if (drops()) args.push_back(embedding_masks_.at(key));
      if (parameters.positions) args.push_back(store_.gradient(*parameters.positions));
      rank_.call(segments_.embedding_weight_grad, std::move(args), tag(Pass::kWeightGrad));
      done(m);
      continue;
    }
    std::vector<LayerActivations>& kept = layers_.at(key);
    const bool last_of_group =
        kept.size() == layers || static_cast<std::int64_t>(kept.size()) % s_.plan.recompute.together == 0;
    if (last_of_group && s_.plan.recompute.recomputes_layer(static_cast<std::int64_t>(kept.size()) - 1)) {
      recompute_layers(m, kept);
    }
    layer_ = module.layer;
    dy = layer_backward(m, kept.back(), *dy);
    kept.pop_back();
  }
  input_gradient_[key] = *dy;
  update_scales(Pass::kInputGrad);
}

// Layers of a virtual stage are neighbours in the list of modules, two modules each.
void StageLowering::recompute_layers(std::uint32_t module, std::vector<LayerActivations>& kept) {
  const auto together = static_cast<std::size_t>(s_.plan.recompute.together);
  const std::size_t last = kept.size() - 1;
  const std::size_t first = last / together * together;
  ViewId x = kept[first].x;
  for (std::size_t i = first; i <= last; ++i) {
    const std::uint32_t attn_module = module - 2 * static_cast<std::uint32_t>(last - i);
    layer_ = layout_.modules[attn_module].layer;
    kept[i] = forward_layer(Pass::kRecompute, attn_module, x, &x);
  }
}

void StageLowering::done(std::uint32_t module) {
  const bool last = std::int64_t{pass_.microbatch} == schedule_.microbatches - 1;
  store_.module_done(module, pass_.microbatch, last);
}

const TokenViews& StageLowering::load_tokens() {
  const Key key{pass_.chunk, pass_.microbatch};
  const auto known = tokens_.find(key);
  if (known != tokens_.end()) return known->second;
  const std::int64_t sequence_tokens = x_.tokens * x_.context;
  SegmentBuilder load("data");
  const program::Ref tokens = load.slot("tokens", DType::kI32, {sequence_tokens});
  const program::Ref targets = load.slot("targets", DType::kI32, {sequence_tokens});
  program::Op& op = load.op(OpKind::kTokenLoad, Stream::kH2d, "load", {program::out(tokens), program::out(targets)});
  op.index_role = roles_.dp;
  op.attributes.batch = x_.batch;
  op.attributes.count = pass_.microbatch;
  op.attributes.microbatches = schedule_.microbatches;
  op.attributes.vocab = s_.model.vocab;
  const Shape whole{sequence_tokens};
  TokenViews views{tensor("tokens", DType::kI32, whole), tensor("targets", DType::kI32, whole)};
  rank_.call(b_.segment(load.take()), {views.tokens, views.targets}, tag(Pass::kForward));
  if (x_.context > 1) {
    const TokenViews own{tensor("own_tokens", DType::kI32, Shape{x_.tokens}),
                         tensor("own_targets", DType::kI32, Shape{x_.tokens})};
    const program::SegmentId share = build_own_tokens(b_, roles_, x_);
    rank_.call(share, {views.tokens, own.tokens, views.targets, own.targets}, tag(Pass::kForward));
    views = own;
  }
  return tokens_.emplace(key, views).first->second;
}

ViewId StageLowering::load_and_embed(std::uint32_t module) {
  const TokenViews& t = load_tokens();
  const ModuleParameters& p = layout_.of_module[module];
  const ViewId y = hidden_tensor("embedded");
  std::vector<ViewId> args = {t.tokens, store_.weight(*p.in), y};
  if (p.positions) args.push_back(store_.weight(*p.positions));
  if (drops()) {
    const ViewId mask = tensor("mask", DType::kU8, Shape{x_.local_tokens, x_.hidden});
    embedding_masks_[Key{pass_.chunk, pass_.microbatch}] = mask;
    args.push_back(mask);
  }
  rank_.call(segments_.embedding_forward, std::move(args), tag(Pass::kForward));
  return y;
}

}  // namespace stepcast::plan
