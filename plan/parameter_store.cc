// Buffers, shard rules and calls of the parameters of one rank.
#include "plan/parameter_store.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "plan/flat_calls.h"

namespace stepcast::plan {

using program::BufferId;
using program::Channel;
using program::DType;
using program::MemoryClass;
using program::ParameterShard;
using program::Pass;
using program::Shape;
using program::ShardKind;
using program::Stream;
using program::Tag;
using program::ViewId;

namespace {

Tag tag_of(Pass pass, std::uint32_t number) {
  Tag t;
  t.pass = pass;
  t.layer = number;
  return t;
}

Tag unit_tag(const Unit& unit, std::uint32_t microbatch) {
  Tag t;
  t.pass = Pass::kComm;
  t.layer = unit.layer;
  t.chunk = unit.chunk;
  t.microbatch = microbatch;
  return t;
}

}  // namespace

ParameterStore::ParameterStore(program::ProgramBuilder& b, program::RankProgramBuilder& rank, const Roles& roles,
                               const Shapes& x, const Scenario& s, const StageParameters& layout,
                               std::vector<UnitUse> uses)
    : b_(b),
      rank_(rank),
      roles_(roles),
      x_(x),
      s_(s),
      layout_(layout),
      sharding_(sharding_of(s)),
      master_(s.training.master_weights),
      uses_(std::move(uses)),
      gathered_(uses_.size(), false) {
  std::int64_t begin = 0;
  for (const Flat& flat : layout_.flats) {
    shard_begin_.push_back(begin);
    begin += flat.chunk;
  }
  // A stage may hold no layer at all.
  if (layout_.elements == 0) return;
  declare_persistent();
  declare_placeholders();
  if (sharding_ == Sharding::kParameters) declare_rings();
  add_shards();
}

void ParameterStore::declare_persistent() {
  const bool parameters = sharding_ == Sharding::kParameters;
  const std::int64_t held = parameters ? layout_.shard_elements : layout_.elements;
  const std::int64_t shard = layout_.shard_elements;
  const std::int64_t f32 = size_of(DType::kF32);
  weights_ = rank_.buffer("weights", held * size_of(x_.compute), MemoryClass::kWeights, true);
  gradients_ = rank_.buffer("gradients", held * size_of(x_.gradients), MemoryClass::kGradients, true);
  if (master_) master_weights_ = rank_.buffer("master_weights", shard * f32, MemoryClass::kOptimizer, true);
  moment1_ = rank_.buffer("moment1", shard * f32, MemoryClass::kOptimizer, true);
  moment2_ = rank_.buffer("moment2", shard * f32, MemoryClass::kOptimizer, true);
}

std::int64_t ParameterStore::unit_elements(std::uint32_t unit) const {
  std::int64_t n = 0;
  for (const std::uint32_t flat : layout_.units[unit].flats) n += layout_.flats[flat].elements;
  return n;
}

std::int64_t ParameterStore::offset_in_unit(std::uint32_t flat) const {
  std::int64_t n = 0;
  for (const std::uint32_t f : layout_.units[*layout_.flats[flat].unit].flats) {
    if (f == flat) break;
    n += layout_.flats[f].elements;
  }
  return n;
}

// Weight gradients are accumulated in the fp32 buffers by the matmul itself. For autograd's sake Transformer Engine
// still returns a gradient of the weight's shape and type, never written, and keeps one of each shape from then on
// (get_dummy_wgrad in transformer_engine/pytorch/module/base.py; Megatron-Core's own layers, the head among them, take
// theirs from the same cache).
void ParameterStore::declare_placeholders() {
  if (s_.framework != Framework::kMegatronCore || x_.compute == x_.gradients) return;
  if (s_.accumulation == GradientAccumulation::kSeparate) return;
  std::vector<Shape> shapes;
  for (std::size_t m = 0; m < layout_.modules.size(); ++m) {
    if (layout_.modules[m].kind == ModuleKind::kEmbedding) continue;
    for (const auto& weight : {layout_.of_module[m].in, layout_.of_module[m].out}) {
      if (!weight) continue;
      const Shape& shape = layout_.parameters[*weight].shape;
      if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
    }
  }
  for (const Shape& shape : shapes) {
    const std::string name = "placeholder_" + std::to_string(shape.extent(0)) + "x" + std::to_string(shape.extent(1));
    rank_.buffer(name, shape.elements() * size_of(x_.compute), MemoryClass::kGradients, true);
  }
}

void ParameterStore::declare_rings() {
  std::int64_t largest = 0;
  for (std::uint32_t u = 0; u < layout_.units.size(); ++u) largest = std::max(largest, unit_elements(u));
  const auto depth = static_cast<std::size_t>(s_.plan.fsdp.prefetch) + 1;
  if (s_.plan.fsdp.reshard_after_forward) {
    for (std::size_t i = 0; i < std::min(depth, uses_.size()); ++i) {
      weight_ring_.push_back(
          rank_.buffer("weight_ring" + std::to_string(i), largest * size_of(x_.compute), MemoryClass::kWeights));
    }
    for (std::size_t i = 0; i < uses_.size(); ++i) slot_of_use_.emplace_back(i % depth);
  } else {
    for (std::uint32_t u = 0; u < layout_.units.size(); ++u) {
      weight_ring_.push_back(
          rank_.buffer("gathered" + std::to_string(u), unit_elements(u) * size_of(x_.compute), MemoryClass::kWeights));
    }
    for (const UnitUse& use : uses_) slot_of_use_.emplace_back(use.unit);
  }
  for (std::size_t i = 0; i < depth; ++i) {
    gradient_ring_.push_back(
        rank_.buffer("gradient_ring" + std::to_string(i), largest * size_of(x_.gradients), MemoryClass::kGradients));
  }
}

void ParameterStore::add_shards() {
  for (const LocalParameter& p : layout_.parameters) {
    const Flat& flat = layout_.flats[p.flat];
    const auto add = [&](ShardKind kind, BufferId buffer, DType t, bool cut, bool uncut) {
      ParameterShard shard;
      shard.parameter = p.id;
      shard.kind = kind;
      shard.buffer = buffer;
      shard.dtype = t;
      shard.blocks = p.blocks;
      if (cut) {
        shard.byte_offset = shard_begin_[p.flat] * size_of(t);
        shard.slice = program::FlatSlice{roles_.replicas, flat.chunk, p.offset, false};
      } else if (uncut) {
        shard.byte_offset = flat.begin * size_of(t);
        shard.slice = program::FlatSlice{roles_.replicas, flat.chunk, p.offset, true};
      } else {
        shard.byte_offset = (flat.begin + p.offset) * size_of(t);
      }
      rank_.add_shard(std::move(shard));
    };
    const bool parameters = sharding_ == Sharding::kParameters;
    add(ShardKind::kWeight, weights_, x_.compute, parameters, false);
    add(ShardKind::kGradient, gradients_, x_.gradients, parameters, sharding_ == Sharding::kOptimizer);
    if (master_) add(ShardKind::kMaster, master_weights_, DType::kF32, sharded(), false);
    add(ShardKind::kMoment1, moment1_, DType::kF32, sharded(), false);
    add(ShardKind::kMoment2, moment2_, DType::kF32, sharded(), false);
  }
}

ViewId ParameterStore::flat_view(BufferId buffer, std::int64_t begin, std::int64_t elements, DType t) {
  return rank_.view(buffer, begin * size_of(t), t, Shape{elements});
}

ViewId ParameterStore::flat_gradient(const Flat& flat) {
  return flat_view(gradients_, flat.begin, flat.elements, x_.gradients);
}

void ParameterStore::begin_step() {
  if (layout_.elements == 0) return;
  const std::int64_t n = sharding_ == Sharding::kParameters ? layout_.shard_elements : layout_.elements;
  Tag tag;
  tag.pass = Pass::kOptimizer;
  rank_.call(zero_segment(b_, "gradients", x_.gradients, n), {flat_view(gradients_, 0, n, x_.gradients)}, tag);
}

void ParameterStore::begin_use(std::size_t index) {
  CHECK(index < uses_.size(), index, uses_.size());
  use_ = index;
  if (sharding_ != Sharding::kParameters) return;
  const std::size_t ahead = static_cast<std::size_t>(s_.plan.fsdp.prefetch);
  for (std::size_t j = index; j <= std::min(index + ahead, uses_.size() - 1); ++j) {
    if (!gathered_[j]) gather(j);
  }
}

void ParameterStore::gather(std::size_t use) {
  gathered_[use] = true;
  const UnitUse& u = uses_[use];
  if (!s_.plan.fsdp.reshard_after_forward) {
    // One gather serves every later use of the unit in the step.
    for (std::size_t j = use + 1; j < uses_.size(); ++j) {
      if (uses_[j].unit == u.unit) gathered_[j] = true;
    }
  }
  const Unit& unit = layout_.units[u.unit];
  for (const std::uint32_t f : unit.flats) {
    const Flat& flat = layout_.flats[f];
    const std::string what = unit.prefix + (flat.of_own_heads ? "qk_norms" : flat.replicated ? "norms" : "weights");
    const CollectiveSpec c{what, u.starts_forward ? "gather" : "gather_again", roles_.replicas, Stream::kGather,
                           Channel::kWeights};
    const ViewId shard = flat_view(weights_, shard_begin_[f], flat.chunk, x_.compute);
    const ViewId whole = flat_view(weight_ring_[*slot_of_use_[use]], offset_in_unit(f), flat.elements, x_.compute);
    rank_.call(all_gather_segment(b_, c, x_.compute, flat.chunk, s_.plan.replicas()), {shard, whole},
               unit_tag(unit, u.microbatch));
  }
}

void ParameterStore::begin_backward(std::uint32_t unit, std::uint32_t microbatch) {
  if (sharding_ != Sharding::kParameters) return;
  const std::int64_t n = unit_elements(unit);
  const BufferId buffer = gradient_ring_[backward_uses_++ % gradient_ring_.size()];
  rank_.call(zero_segment(b_, layout_.units[unit].prefix + "gradients", x_.gradients, n),
             {flat_view(buffer, 0, n, x_.gradients)}, unit_tag(layout_.units[unit], microbatch));
}

ViewId ParameterStore::weight(std::uint32_t parameter) const {
  const LocalParameter& p = layout_.parameters[parameter];
  if (sharding_ != Sharding::kParameters) {
    const std::int64_t begin = layout_.flats[p.flat].begin + p.offset;
    return rank_.view(weights_, begin * size_of(x_.compute), x_.compute, p.shape);
  }
  CHECK(layout_.modules[p.module].unit == uses_[use_].unit, p.module, use_);
  const std::int64_t begin = offset_in_unit(p.flat) + p.offset;
  return rank_.view(weight_ring_[*slot_of_use_[use_]], begin * size_of(x_.compute), x_.compute, p.shape);
}

ViewId ParameterStore::gradient(std::uint32_t parameter) const {
  const LocalParameter& p = layout_.parameters[parameter];
  if (sharding_ != Sharding::kParameters) {
    const std::int64_t begin = layout_.flats[p.flat].begin + p.offset;
    return rank_.view(gradients_, begin * size_of(x_.gradients), x_.gradients, p.shape);
  }
  CHECK(backward_uses_ > 0);
  const std::int64_t begin = offset_in_unit(p.flat) + p.offset;
  const BufferId buffer = gradient_ring_[(backward_uses_ - 1) % gradient_ring_.size()];
  return rank_.view(buffer, begin * size_of(x_.gradients), x_.gradients, p.shape);
}

// Under sequence parallelism every tp member has the gradient of its own tokens only; of norms of queries and keys it
// always has that of its own heads.
void ParameterStore::reduce_replicated(std::uint32_t flat, ViewId gradients, Tag tag) {
  const Flat& f = layout_.flats[flat];
  if (!f.replicated || !(x_.sequence_parallel || f.of_own_heads)) return;
  const std::string prefix = f.unit ? layout_.units[*f.unit].prefix : "";
  const CollectiveSpec c{prefix + (f.of_own_heads ? "qk_norm_gradients" : "norm_gradients"), "reduce_tp", roles_.tp,
                         Stream::kTp, Channel::kMain};
  rank_.call(all_reduce_segment(b_, c, x_.gradients, f.elements), {gradients}, tag);
}

void ParameterStore::reduce(std::uint32_t flat) {
  const Flat& f = layout_.flats[flat];
  const ViewId gradients = flat_gradient(f);
  const Tag tag = tag_of(Pass::kComm, flat);
  reduce_replicated(flat, gradients, tag);
  if (f.tied) {
    const CollectiveSpec c{"tied", "reduce", roles_.embedding, Stream::kDp, Channel::kMain};
    rank_.call(all_reduce_segment(b_, c, x_.gradients, f.elements), {gradients}, tag);
  }
  if (s_.plan.replicas() == 1) return;
  const CollectiveSpec c{"bucket", "reduce", roles_.replicas, Stream::kDp, Channel::kMain};
  const program::SegmentId segment = sharded() ? reduce_scatter_in_place_segment(b_, c, x_.gradients, f.elements)
                                               : all_reduce_segment(b_, c, x_.gradients, f.elements);
  rank_.call(segment, {gradients}, tag);
}

void ParameterStore::scatter_unit(std::uint32_t unit, std::uint32_t microbatch) {
  const BufferId buffer = gradient_ring_[(backward_uses_ - 1) % gradient_ring_.size()];
  const Unit& u = layout_.units[unit];
  for (const std::uint32_t f : u.flats) {
    const Flat& flat = layout_.flats[f];
    const ViewId whole = flat_view(buffer, offset_in_unit(f), flat.elements, x_.gradients);
    const Tag tag = unit_tag(u, microbatch);
    reduce_replicated(f, whole, tag);
    const char* const what = flat.of_own_heads ? "qk_norm_scatter" : flat.replicated ? "norm_scatter" : "scatter";
    const CollectiveSpec c{u.prefix + what, "reduce", roles_.replicas, Stream::kDp, Channel::kMain};
    rank_.call(reduce_scatter_accumulate_segment(b_, c, x_.gradients, flat.chunk, s_.plan.replicas()),
               {whole, flat_view(gradients_, shard_begin_[f], flat.chunk, x_.gradients)}, tag);
  }
}

void ParameterStore::module_done(std::uint32_t module, std::uint32_t microbatch, bool last) {
  if (sharding_ == Sharding::kParameters) {
    const std::uint32_t unit = layout_.modules[module].unit;
    if (layout_.units[unit].modules.front() == module) scatter_unit(unit, microbatch);
    return;
  }
  if (!last || !s_.plan.overlap_grad_reduce) return;
  for (std::uint32_t f = 0; f < layout_.flats.size(); ++f) {
    if (layout_.flats[f].last_module == module && !layout_.flats[f].tied) reduce(f);
  }
}

void ParameterStore::finish_backward() {
  if (sharding_ == Sharding::kParameters) return;
  if (!s_.plan.overlap_grad_reduce && s_.plan.replicas() > 1) {
    // Without overlap the reductions come after the whole backward pass, not as soon as their operands allow.
    Tag tag;
    tag.pass = Pass::kComm;
    rank_.call(join_segment(b_, "buckets", Stream::kDp, Stream::kCompute), {}, tag);
  }
  for (std::uint32_t f = 0; f < layout_.flats.size(); ++f) {
    if (layout_.flats[f].tied || !s_.plan.overlap_grad_reduce) reduce(f);
  }
}

ViewId ParameterStore::norm_factor() {
  Tag tag;
  tag.pass = Pass::kOptimizer;
  const ViewId sumsq = rank_.tensor("sumsq", DType::kF32, Shape{1}, MemoryClass::kOptimizer);
  const ViewId factor = rank_.tensor("clip_factor", DType::kF32, Shape{1}, MemoryClass::kOptimizer);
  rank_.call(zero_segment(b_, "norm", DType::kF32, 1), {sumsq}, tag);
  const double clip = s_.training.adam.clip_norm;
  if (clip > 0) sum_squares(sumsq, tag);
  // Without clipping the sum stays zero, and the factor one.
  rank_.call(clip_segment(b_, clip > 0 ? clip : 1.0), {sumsq, factor}, tag);
  return factor;
}

// 16-bit gradients are widened once a step, after their reduction (Float16OptimizerWithFloat16Params of Megatron-LM);
// the copy lives from here to the last update. ZeRO has none: refuse_unsupported in plan/lowering.
void ParameterStore::widen_gradients() {
  if (!narrow_gradients() || layout_.elements == 0) return;
  main_gradients_ = rank_.buffer("main_gradients", layout_.elements * size_of(DType::kF32), MemoryClass::kGradients);
  for (std::uint32_t f = 0; f < layout_.flats.size(); ++f) {
    const Flat& flat = layout_.flats[f];
    rank_.call(cast_segment(b_, "gradients", x_.gradients, DType::kF32, flat.elements),
               {flat_gradient(flat), optimizer_gradient(flat.begin, flat.elements)}, tag_of(Pass::kOptimizer, f));
  }
}

ViewId ParameterStore::optimizer_gradient(std::int64_t begin, std::int64_t elements) {
  if (narrow_gradients()) return flat_view(main_gradients_, begin, elements, DType::kF32);
  return flat_view(gradients_, begin, elements, x_.gradients);
}

void ParameterStore::sum_squares(ViewId sumsq, Tag tag) {
  for (std::uint32_t f = 0; f < layout_.flats.size(); ++f) {
    const Flat& flat = layout_.flats[f];
    const bool part = sharding_ == Sharding::kOptimizer;
    const bool parameters = sharding_ == Sharding::kParameters;
    const std::int64_t n = parameters ? flat.chunk : flat.elements;
    const ViewId gradients = optimizer_gradient(parameters ? shard_begin_[f] : flat.begin, n);
    const auto own = part ? std::optional(OwnPart{roles_.replicas, s_.plan.replicas()}) : std::nullopt;
    rank_.call(sum_squares_segment(b_, optimizer_gradient_type(), n, flat.norm_scale, own), {gradients, sumsq},
               tag_of(Pass::kOptimizer, f));
  }
  const std::int64_t model = std::int64_t{s_.plan.tp} * s_.plan.pp;
  const std::int64_t members = sharded() ? model * s_.plan.replicas() : model;
  if (members > 1) {
    const CollectiveSpec c{"norm", "reduce", sharded() ? roles_.world : roles_.model, Stream::kDp, Channel::kMain};
    rank_.call(all_reduce_segment(b_, c, DType::kF32, 1), {sumsq}, tag);
  }
}

void ParameterStore::update(std::uint32_t f, ViewId factor) {
  const Flat& flat = layout_.flats[f];
  const bool part = sharding_ == Sharding::kOptimizer;
  const bool parameters = sharding_ == Sharding::kParameters;
  AdamSpec a;
  a.gradient = optimizer_gradient_type();
  a.elements = flat.chunk;
  a.gradient_elements = parameters ? flat.chunk : flat.elements;
  a.weight_elements = a.gradient_elements;
  a.master = master_;
  a.weight = x_.compute;
  if (part) a.part_of = roles_.replicas;
  a.settings = s_.training.adam;
  const std::int64_t begin = parameters ? shard_begin_[f] : flat.begin;
  const ViewId weight = flat_view(weights_, begin, a.weight_elements, x_.compute);
  std::vector<ViewId> args = {optimizer_gradient(begin, a.gradient_elements), factor,
                              flat_view(moment1_, shard_begin_[f], flat.chunk, DType::kF32),
                              flat_view(moment2_, shard_begin_[f], flat.chunk, DType::kF32)};
  if (master_) args.push_back(flat_view(master_weights_, shard_begin_[f], flat.chunk, DType::kF32));
  args.push_back(weight);
  rank_.call(adam_segment(b_, a), std::move(args), tag_of(Pass::kOptimizer, f));
  if (part) {
    const CollectiveSpec c{"weights", "gather", roles_.replicas, Stream::kGather, Channel::kWeights};
    rank_.call(all_gather_in_place_segment(b_, c, x_.compute, flat.elements), {weight}, tag_of(Pass::kComm, f));
  }
}

void ParameterStore::optimizer_step() {
  widen_gradients();
  const ViewId factor = norm_factor();
  for (std::uint32_t f = 0; f < layout_.flats.size(); ++f) update(f, factor);
}

}  // namespace stepcast::plan
