// The end of a step: gradient norm, Adam, and the gather of the updated weights.
#include <optional>
#include <utility>
#include <vector>

#include "plan/flat_calls.h"
#include "plan/parameter_store.h"
#include "plan/parameter_tags.h"

namespace stepcast::plan {

using program::Channel;
using program::DType;
using program::MemoryClass;
using program::Pass;
using program::Shape;
using program::Stream;
using program::Tag;
using program::ViewId;

// 16-bit gradients are widened once a step, after their reduction (Float16OptimizerWithFloat16Params of Megatron-LM);
// the copy lives from here to the last update.
void ParameterStore::widen_gradients() {
  if (!widens_gradients() || layout_.elements == 0) return;
  main_gradients_ = rank_.buffer("main_gradients", layout_.elements * size_of(DType::kF32), MemoryClass::kGradients);
  for (std::uint32_t f = 0; f < layout_.flats.size(); ++f) {
    rank_.call(cast_segment(b_, "gradients", x_.gradients, DType::kF32, layout_.flats[f].elements),
               {held_gradients(f), optimizer_gradients(f)}, flat_tag(Pass::kOptimizer, f));
  }
}

ViewId ParameterStore::optimizer_gradients(std::uint32_t flat) {
  if (unscales_into_copy()) {
    return flat_view(main_gradients_, shard_begin_[flat], layout_.flats[flat].chunk, DType::kF32);
  }
  if (!widens_gradients()) return held_gradients(flat);
  return flat_view(main_gradients_, layout_.flats[flat].begin, layout_.flats[flat].elements, DType::kF32);
}

// Megatron-LM's MixedPrecisionOptimizer: main gradients over the loss scale, one flag for all ranks that hold a part of
// the model, which the host reads before it goes on. The copy of a shard and its unscaling are one pass here.
void ParameterStore::unscale_gradients() {
  if (x_.compute != DType::kF16 || layout_.elements == 0) return;
  const Tag tag = step_tag(Pass::kOptimizer);
  const ViewId found = rank_.tensor("found_inf", DType::kF32, Shape{1}, MemoryClass::kOptimizer);
  rank_.call(zero_segment(b_, "found_inf", DType::kF32, 1), {found}, tag);
  if (unscales_into_copy()) {
    const std::int64_t bytes = layout_.shard_elements * size_of(DType::kF32);
    main_gradients_ = rank_.buffer("main_gradients", bytes, MemoryClass::kGradients);
  }
  const bool part = sharding_ == Sharding::kOptimizer;
  const auto own = part ? std::optional(OwnPart{roles_.shards, s_.plan.shards()}) : std::nullopt;
  for (std::uint32_t f = 0; f < layout_.flats.size(); ++f) {
    std::vector<ViewId> args = {widens_gradients() ? optimizer_gradients(f) : held_gradients(f)};
    UnscaleSpec spec;
    spec.gradient = rank_.at(args[0]).type.dtype;
    spec.elements = rank_.at(args[0]).type.shape.elements();
    spec.own = own;
    if (unscales_into_copy()) {
      args.push_back(optimizer_gradients(f));
      spec.copied = rank_.at(args[1]).type.shape.elements();
    }
    args.push_back(found);
    rank_.call(unscale_segment(b_, spec), std::move(args), flat_tag(Pass::kOptimizer, f));
  }
  reduce_over_model("found_inf", program::Reduce::kMax, found);
  rank_.call(host_read_segment(b_, "found_inf", DType::kF32), {found}, tag);
}

// Over the ranks that together hold every element of the gradients once.
void ParameterStore::reduce_over_model(const char* label, program::Reduce reduce, ViewId value) {
  const std::int64_t model = std::int64_t{s_.plan.tp} * s_.plan.pp;
  if ((sharded() ? model * s_.plan.shards() : model) == 1) return;
  const program::RoleId group = sharded() ? roles_.instance : roles_.model;
  const CollectiveSpec c{label, "reduce", group, Stream::kDp, Channel::kMain};
  rank_.call(all_reduce_segment(b_, c, DType::kF32, 1, std::nullopt, reduce), {value}, step_tag(Pass::kOptimizer));
}

ViewId ParameterStore::norm_factor() {
  const Tag tag = step_tag(Pass::kOptimizer);
  const ViewId sumsq = rank_.tensor("sumsq", DType::kF32, Shape{1}, MemoryClass::kOptimizer);
  const ViewId factor = rank_.tensor("clip_factor", DType::kF32, Shape{1}, MemoryClass::kOptimizer);
  rank_.call(zero_segment(b_, "norm", DType::kF32, 1), {sumsq}, tag);
  const double clip = s_.training.adam.clip_norm;
  if (clip > 0) sum_squares(sumsq);
  // Without clipping the sum stays zero, and the factor one.
  rank_.call(clip_segment(b_, clip > 0 ? clip : 1.0), {sumsq, factor}, tag);
  return factor;
}

void ParameterStore::sum_squares(ViewId sumsq) {
  for (std::uint32_t f = 0; f < layout_.flats.size(); ++f) {
    const ViewId gradients = optimizer_gradients(f);
    const bool part = sharding_ == Sharding::kOptimizer && !unscales_into_copy();
    const auto own = part ? std::optional(OwnPart{roles_.shards, s_.plan.shards()}) : std::nullopt;
    const std::int64_t n = rank_.at(gradients).type.shape.elements();
    rank_.call(sum_squares_segment(b_, optimizer_gradient_type(), n, layout_.flats[f].norm_scale, own),
               {gradients, sumsq}, flat_tag(Pass::kOptimizer, f));
  }
  reduce_over_model("norm", program::Reduce::kSum, sumsq);
}

void ParameterStore::update(std::uint32_t f, ViewId factor) {
  const Flat& flat = layout_.flats[f];
  const ViewId gradients = optimizer_gradients(f);
  const ViewId weight = held_weights(f);
  AdamSpec a;
  a.gradient = optimizer_gradient_type();
  a.elements = flat.chunk;
  a.moments = s_.training.moments;
  a.gradient_elements = rank_.at(gradients).type.shape.elements();
  a.weight_elements = rank_.at(weight).type.shape.elements();
  a.master = master_;
  a.weight = weight_type();
  if (updates_in_part()) a.part_of = roles_.shards;
  a.settings = s_.training.adam;
  std::vector<ViewId> args = {gradients, factor, flat_view(moment1_, shard_begin_[f], flat.chunk, a.moments),
                              flat_view(moment2_, shard_begin_[f], flat.chunk, a.moments)};
  if (master_) args.push_back(flat_view(master_weights_, shard_begin_[f], flat.chunk, DType::kF32));
  args.push_back(weight);
  rank_.call(adam_segment(b_, a), std::move(args), flat_tag(Pass::kOptimizer, f));
}

void ParameterStore::optimizer_step() {
  widen_gradients();
  unscale_gradients();
  const ViewId factor = norm_factor();
  for (std::uint32_t f = 0; f < layout_.flats.size(); ++f) update(f, factor);
  if (!updates_in_part() || gathers_ahead() || layout_.flats.empty()) return;
  // One fused update of all parameters comes first, and torch.distributed waits for it.
  rank_.call(join_segment(b_, "weights", Stream::kGather, Stream::kCompute), {}, step_tag(Pass::kComm));
  for (std::uint32_t f = 0; f < layout_.flats.size(); ++f) gather_flat(f);
}

}  // namespace stepcast::plan
