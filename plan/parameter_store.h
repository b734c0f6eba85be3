// How a rank holds its parameters, gradients and optimizer states, and the calls that move them: bucket reductions,
// ZeRO-1 and ZeRO-2 scatter and gather, ZeRO-3 gathers through a ring of buffers, gradient norm, Adam. The store itself
// is in parameter_store.cc, the calls around passes in parameter_moves.cc, those of the optimizer in
// parameter_update.cc.
//
// Persistent bytes per parameter (bf16 weights, f32 gradients, f32 master and moments; d = dp): plain DP 18, ZeRO-1 6 +
// 12/d, ZeRO-2 2 + 16/d, ZeRO-3 18/d (Megatron-LM docs/dist_optimizer.md; Rajbhandari et al. 2020, arXiv:1910.02054).
//
// ZeRO-1 reduces, updates and gathers in place, each rank at its own part: no staging. ZeRO-2 reduces every
// microbatch's bucket into the sharded sum and frees it (DeepSpeed's stage 2, which copies gradients into one or two
// such buckets); without overlap the backward pass waits for each reduction. A bucket that spans chunks (norms under
// tp) stays open over several microbatches of an interleaved schedule. Sums over tp and tied tables are of the shards,
// once, at the end. ZeRO-3 gathers into a ring of prefetch + 1 units, whose reuse is the limit, at any depth.
//
// HSDP sums the copies of a shard behind the scatter, on the same stream: per bucket under ZeRO-1 (Megatron-Core's
// several optimizer instances), in place on the own part; per microbatch under ZeRO-2 and ZeRO-3 (as FSDP2, which has a
// stream of its own for it).
//
// ZeRO-3 reduces a unit's gradients behind each of its backward passes, or keeps them whole and reduces them once a
// step (plan.fsdp.gradient_sync). Without a pipeline that is beside the last microbatch's backward pass, as FSDP2's
// hooks have it. In a pipeline torch.distributed.pipelining reduces a chunk's units in their order, once its last
// gradient is sent, and the compute stream waits for them (perform_reduce_grad in stage.py: post_backward of every
// unit, then the root's final callback). A unit's gradients then live from its first backward pass to that reduction.
// Approximation: each weight's is added to them as its matmul ends; FSDP2 adds a unit's together, and so holds those of
// one unit, not of one weight, in the compute type.
//
// Updated weights are gathered behind the whole update, which is one fused kernel in every stack, and exposed. With
// overlap.param_gather a step begins with the gathers that its predecessor left: each bucket's is issued when the one
// before it is first used, joined to the compute stream as torch.distributed does (Megatron-Core's forward hooks).
//
// Gradients are accumulated and reduced in one type, f32 or bf16; moments are stored in either. Unsharded
// bf16 gradients are widened once a step into an fp32 copy that lives while the optimizer runs.
//
// FSDP2's mixed precision (torch.distributed.fsdp, MixedPrecisionPolicy; torchtitan) holds one copy of the parameters:
// fp32 shards, which Adam updates. Each gather casts the shard and gathers the result; gradients are reduced in fp32 or
// bf16 and added to an fp32 shard. 16/d bytes a parameter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/stage_parameters.h"

namespace stepcast::plan {

// One stretch of neighbouring passes that use a unit's parameters, such as a forward pass and the backward pass right
// after it on the last unit. Named by the pass that starts it.
struct UnitUse {
  std::uint32_t unit = 0;
  std::uint32_t microbatch = 0;
  bool starts_forward = false;
};

class ParameterStore {
 public:
  ParameterStore(program::ProgramBuilder& b, program::RankProgramBuilder& rank, const Roles& roles, const Shapes& x,
                 const Scenario& s, const StageParameters& layout, std::vector<UnitUse> uses);

  // Zeroes gradients.
  void begin_step();
  // The `index`-th use of the sequence given to the constructor starts: gathers what the ring allows ahead.
  void begin_use(std::size_t index);
  // A backward pass over the current use's unit starts.
  void begin_backward(std::uint32_t unit, std::uint32_t microbatch);
  program::ViewId weight(std::uint32_t parameter) const;
  // Under ZeRO-2 the first of a microbatch makes its bucket.
  program::ViewId gradient(std::uint32_t parameter);
  // The backward pass of `module` is complete for this microbatch; `last`: for the step.
  void module_done(std::uint32_t module, std::uint32_t microbatch, bool last);
  // All passes and messages of `chunk` are issued, on a rank of a pipeline.
  void chunk_done(std::uint16_t chunk);
  // All backward passes are issued: reductions that were not overlapped.
  void finish_backward();
  // Gradient norm, clip factor, Adam, and ZeRO-1's and ZeRO-2's gather of the updated weights.
  void optimizer_step();

 private:
  void declare_persistent();
  void declare_placeholders();
  void declare_rings();
  // `largest`: elements of the largest unit.
  void declare_gradient_buffers(std::int64_t largest);
  void add_shards();
  program::ViewId flat_view(program::BufferId buffer, std::int64_t begin, std::int64_t elements, program::DType t);
  // What the rank keeps of a flat between its backward passes and its update: all of it, or its shard.
  program::ViewId held_gradients(std::uint32_t flat);
  program::ViewId held_weights(std::uint32_t flat);
  // Elements from the start of its unit to the start of a flat.
  std::int64_t offset_in_unit(std::uint32_t flat) const;
  std::int64_t unit_elements(std::uint32_t unit) const;
  // Of the backward pass at hand over a unit of ZeRO-3, or of all of them so far.
  program::BufferId unit_gradients(std::uint32_t unit) const;
  void gather(std::size_t use);
  void order_gathers();
  // With overlapped gathers, so that the weights of `unit` and of the bucket after it are under way.
  void gather_ahead(std::uint32_t unit);
  void gather_flat(std::uint32_t flat);
  void reduce_replicated(std::uint32_t flat, program::ViewId gradients, program::Tag tag);
  void reduce_copies(std::uint32_t flat);
  void reduce(std::uint32_t flat);
  program::BufferId open_bucket(std::uint32_t flat);
  void scatter_bucket(std::uint32_t flat);
  program::SegmentId scatter_segment(const std::string& label, std::int64_t chunk);
  void scatter_unit(std::uint32_t unit, std::uint32_t microbatch);
  void widen_gradients();
  program::ViewId norm_factor();
  // fp16: gradients over the loss scale, in fp32; a step with one that is not finite is skipped.
  void unscale_gradients();
  void reduce_over_model(const char* label, program::Reduce reduce, program::ViewId value);
  void sum_squares(program::ViewId sumsq);
  void update(std::uint32_t flat, program::ViewId factor);
  bool sharded() const { return sharding_ != Sharding::kNone; }
  bool shards_gradients() const { return sharding_ == Sharding::kGradients || sharding_ == Sharding::kParameters; }
  // Weights are whole, states are not: each rank updates its own part of the weights.
  bool updates_in_part() const { return sharding_ == Sharding::kOptimizer || sharding_ == Sharding::kGradients; }
  // ZeRO-3 with one reduction a step: whole gradients are kept.
  bool keeps_gradients() const {
    return sharding_ == Sharding::kParameters && s_.plan.fsdp.gradient_sync == GradientSync::kLastMicrobatch;
  }
  bool gathers_ahead() const { return updates_in_part() && s_.plan.overlap_param_gather; }
  // Unsharded 16-bit gradients are widened once a step; sharded ones are read as they are.
  bool widens_gradients() const { return !sharded() && x_.gradients != program::DType::kF32; }
  // Sharded fp16 gradients are unscaled into an fp32 copy of the shard.
  bool unscales_into_copy() const { return sharded() && x_.gradients == program::DType::kF16; }
  // What norm and Adam read of a flat's gradients on this rank.
  program::DType optimizer_gradient_type() const {
    return widens_gradients() || unscales_into_copy() ? program::DType::kF32 : summed_type();
  }
  // Of the weights that are held, and of the gradients that are summed over microbatches.
  program::DType weight_type() const { return fp32_shards_ ? program::DType::kF32 : x_.compute; }
  program::DType summed_type() const { return fp32_shards_ ? program::DType::kF32 : x_.gradients; }
  program::ViewId optimizer_gradients(std::uint32_t flat);

  program::ProgramBuilder& b_;
  program::RankProgramBuilder& rank_;
  const Roles& roles_;
  const Shapes& x_;
  const Scenario& s_;
  const StageParameters& layout_;
  Sharding sharding_;
  bool fp32_shards_ = false;  // beside a narrower compute type
  bool master_ = false;
  std::vector<UnitUse> uses_;

  program::BufferId weights_, gradients_, master_weights_, moment1_, moment2_;
  program::BufferId main_gradients_;               // fp32 copy of narrow gradients
  std::vector<std::int64_t> shard_begin_;          // per flat, in elements of the optimizer shard
  std::vector<program::BufferId> weight_ring_;     // per use slot, or per unit when not resharded
  std::vector<program::BufferId> gradient_ring_;   // of ZeRO-3, ...
  std::vector<program::BufferId> kept_gradients_;  // ... or per unit, where they are kept
  std::vector<bool> has_gradients_;                // per unit: of a backward pass of this step
  std::vector<std::optional<std::size_t>> slot_of_use_;
  std::vector<std::optional<program::BufferId>> open_buckets_;  // ZeRO-2, per flat: gradients not reduced yet
  std::vector<bool> gathered_;                                  // per use, or per unit when not resharded
  std::size_t use_ = 0;
  std::size_t backward_uses_ = 0;
  std::vector<std::uint32_t> gather_order_;   // flats in the order their weights are first used
  std::vector<std::size_t> gathers_of_unit_;  // of them those that a unit's forward pass and the units before it need
  std::size_t gathers_ = 0;                   // issued
  program::Tag backward_;                     // of the backward pass at hand
};

}  // namespace stepcast::plan
