// Quantised weights, kept inputs and scales of the decoder layers, as calls.
#include "base/check.h"
#include "plan/quantised_parts.h"
#include "plan/stage_lowering.h"

namespace stepcast::plan {

using program::DType;
using program::MemoryClass;
using program::OpKind;
using program::Pass;
using program::SegmentBuilder;
using program::Shape;
using program::Stream;
using program::ViewId;
using Projection = DecoderSegments::Projection;

const DecoderSegments::Projections& StageLowering::projections() const {
  return quantises_layer(s_, layer_) ? segments_.quantised : segments_.plain;
}

// Kept copies are made before their first use in the step, both at once: weights change between steps only. Others are
// made for the direction at hand.
ViewId StageLowering::weight_read(const Projection& p, std::uint32_t parameter, Pass pass) {
  if (!p.quantised) return store_.weight(parameter);
  if (!keeps_quantised_weights(s_)) return make_quantised_weight(parameter, pass);
  const bool forward = pass != Pass::kInputGrad;
  if (const auto known = quantised_weights_.find(parameter); known != quantised_weights_.end()) {
    return forward ? known->second.forward : known->second.backward;
  }
  const Quantisation& q = *quantisation_;
  const LocalParameter& local = layout_.parameters[parameter];
  const std::string name = "quantised_" + std::to_string(parameter);
  QuantisedWeight copies;
  copies.forward = rank_.tensor(name, q.type, local.shape, MemoryClass::kWeights, true);
  copies.backward = copies.forward;
  std::vector<ViewId> args = {store_.weight(parameter), copies.forward};
  if (q.two_copies()) {
    const Shape other = q.other_direction(local.shape.extent(0), local.shape.extent(1));
    copies.backward = rank_.tensor(name + "_other", q.type, other, MemoryClass::kWeights, true);
    args.push_back(copies.backward);
  }
  quantise_weight(parameter, pass, q.two_copies() ? WeightCopies::kBoth : WeightCopies::kForward, std::move(args));
  quantised_weights_.emplace(parameter, copies);
  return forward ? copies.forward : copies.backward;
}

ViewId StageLowering::make_quantised_weight(std::uint32_t parameter, Pass pass) {
  const Quantisation& q = *quantisation_;
  const LocalParameter& local = layout_.parameters[parameter];
  const bool backward = pass == Pass::kInputGrad && q.two_copies();
  const Shape shape = backward ? q.other_direction(local.shape.extent(0), local.shape.extent(1)) : local.shape;
  const ViewId copy = rank_.tensor("quantised_weight", q.type, shape, MemoryClass::kWeights);
  quantise_weight(parameter, pass, backward ? WeightCopies::kBackward : WeightCopies::kForward,
                  {store_.weight(parameter), copy});
  return copy;
}

void StageLowering::quantise_weight(std::uint32_t parameter, Pass pass, WeightCopies made,
                                    std::vector<ViewId> weight_and_copies) {
  const LocalParameter& local = layout_.parameters[parameter];
  const bool attention = layout_.modules[local.module].kind == ModuleKind::kAttention;
  const char* const name = layout_.of_module[local.module].in == parameter ? "weight_in" : "weight_out";
  rank_.call(weight_quantisation(b_, x_, *quantisation_, attention ? "attn" : "mlp", name, local.shape, made),
             std::move(weight_and_copies), layer_tag(pass));
}

ViewId StageLowering::keep_column_input(const Projection& p, ViewId n, std::vector<ViewId>& args) {
  if (!p.quantised) return n;
  const auto kept = kept_column_input(x_, *quantisation_, norm_quantises(s_));
  if (!kept) return n;
  args.push_back(tensor("quantised_norm", kept->type, kept->shape));
  return args.back();
}

ViewId StageLowering::keep_row_input(const Projection& p, ViewId a, std::vector<ViewId>& args) {
  if (!p.quantised) return a;
  const KeptInput kept = kept_row_input(x_, *quantisation_, rank_.at(a).type.shape.extent(1));
  args.push_back(tensor("quantised_input", kept.type, kept.shape));
  return args.back();
}

ViewId StageLowering::keep_recomputed(const Projection& p, const char* name, bool column, ViewId input) {
  if (!p.quantised) return input;
  const program::TensorType type = rank_.at(input).type;
  std::optional<KeptInput> kept = kept_row_input(x_, *quantisation_, type.shape.extent(1));
  if (column) kept = kept_column_input(x_, *quantisation_, norm_quantises(s_));
  if (!kept) return input;
  const SegmentContext context{b_, roles_, x_, s_, &*quantisation_};
  const ViewId view = tensor(column ? "quantised_norm" : "quantised_input", kept->type, kept->shape);
  rank_.call(input_quantisation(context, column ? "norm" : "act", name, *kept, type), {input, view},
             layer_tag(Pass::kRecompute));
  return view;
}

void StageLowering::recompute_norm(const Projection& p, std::uint32_t module, ViewId x, ViewId* n, ViewId* rstd,
                                   ViewId* kept) {
  norm_before(Pass::kRecompute, module, x, n, rstd);
  const bool attention = layout_.modules[module].kind == ModuleKind::kAttention;
  *kept = keep_recomputed(p, attention ? "qkv" : "gate_up", true, *n);
}

ViewId StageLowering::weight_gradient_operand(const char* name, std::int64_t width) {
  return tensor(name, quantisation_->type, quantisation_->other_direction(x_.tokens, width));
}

// Transformer Engine reduces the maxima of all modules of a pass at once, over all ranks of a pipeline stage, and waits
// for it (FP8GlobalStateManager.reduce_and_update_fp8_tensors, with reduce_amax, its default; Megatron-LM's group is
// tensor, context and data parallel). A module has six numbers for its forward pass and four for its backward pass:
// three and two for each matmul.
void StageLowering::update_scales(Pass pass) {
  if (!quantisation_ || !quantisation_->delayed) return;
  std::int64_t modules = 0;
  for (const Module& m : layout_.modules) {
    const bool counts = m.kind == ModuleKind::kAttention || m.kind == ModuleKind::kMlp;
    if (counts && m.chunk == pass_.chunk && quantises_layer(s_, m.layer)) ++modules;
  }
  if (modules == 0) return;
  const std::int64_t n = modules * (pass == Pass::kForward ? 6 : 4);
  const auto key = std::make_pair(pass_.chunk, pass);
  if (scales_.find(key) == scales_.end()) {
    scales_[key] = rank_.tensor("scales", DType::kF32, Shape{2, n}, MemoryClass::kWeights, true);
  }
  const program::BufferId buffer = rank_.at(scales_.at(key)).buffer;
  const ViewId maxima = rank_.view(buffer, 0, DType::kF32, Shape{n});
  const ViewId scales = rank_.view(buffer, n * size_of(DType::kF32), DType::kF32, Shape{n});
  SegmentBuilder segment("scales");
  const program::Ref from = segment.slot("maxima", DType::kF32, {n});
  const program::Ref to = segment.slot("scales", DType::kF32, {n});
  if (roles_.stage) {
    segment.op(OpKind::kJoin, Stream::kTp, "wait", {}).attributes.join_stream = Stream::kCompute;
    program::Op& reduce = segment.op(OpKind::kAllReduce, Stream::kTp, "reduce", {program::acc(from)});
    reduce.group = roles_.stage;
    reduce.attributes.reduce = program::Reduce::kMax;
  }
  segment.op(OpKind::kAccumulate, Stream::kCompute, "update", {program::in(from), program::acc(to)});
  rank_.call(b_.segment(segment.take()), {maxima, scales}, tag(pass));
}

}  // namespace stepcast::plan
