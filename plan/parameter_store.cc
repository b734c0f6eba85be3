// Buffers, shard rules and views of the parameters of one rank.
#include "plan/parameter_store.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace stepcast::plan {

using program::BufferId;
using program::DType;
using program::MemoryClass;
using program::ParameterShard;
using program::Shape;
using program::ShardKind;
using program::ViewId;

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
      fp32_shards_(s.training.fp32_shards && sharding_ == Sharding::kParameters),
      master_(s.training.master_weights && !fp32_shards_),
      uses_(std::move(uses)),
      open_buckets_(layout.flats.size()),
      gathered_(std::max(uses_.size(), layout.units.size()), false) {
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
  if (gathers_ahead()) order_gathers();
  add_shards();
}

void ParameterStore::declare_persistent() {
  const bool parameters = sharding_ == Sharding::kParameters;
  const std::int64_t held = parameters ? layout_.shard_elements : layout_.elements;
  const std::int64_t shard = layout_.shard_elements;
  const std::int64_t summed = shards_gradients() ? shard : layout_.elements;
  const std::int64_t f32 = size_of(DType::kF32);
  weights_ = rank_.buffer("weights", held * size_of(weight_type()), MemoryClass::kWeights, true);
  gradients_ = rank_.buffer("gradients", summed * size_of(summed_type()), MemoryClass::kGradients, true);
  if (master_) master_weights_ = rank_.buffer("master_weights", shard * f32, MemoryClass::kOptimizer, true);
  moment1_ = rank_.buffer("moment1", shard * size_of(s_.training.moments), MemoryClass::kOptimizer, true);
  moment2_ = rank_.buffer("moment2", shard * size_of(s_.training.moments), MemoryClass::kOptimizer, true);
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
  declare_gradient_buffers(largest);
}

void ParameterStore::declare_gradient_buffers(std::int64_t largest) {
  const auto declare = [&](const std::string& name, std::int64_t elements) {
    return rank_.buffer(name, elements * size_of(x_.gradients), MemoryClass::kGradients);
  };
  if (!keeps_gradients()) {
    for (std::int32_t i = 0; i <= s_.plan.fsdp.prefetch; ++i) {
      gradient_ring_.push_back(declare("gradient_ring" + std::to_string(i), largest));
    }
    return;
  }
  has_gradients_.resize(layout_.units.size(), false);
  for (std::uint32_t u = 0; u < layout_.units.size(); ++u) {
    kept_gradients_.push_back(declare("unsharded_gradients" + std::to_string(u), unit_elements(u)));
  }
}

BufferId ParameterStore::unit_gradients(std::uint32_t unit) const {
  if (keeps_gradients()) return kept_gradients_[unit];
  CHECK(backward_uses_ > 0);
  return gradient_ring_[(backward_uses_ - 1) % gradient_ring_.size()];
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
        shard.slice = program::FlatSlice{roles_.shards, flat.chunk, p.offset, false};
      } else if (uncut) {
        shard.byte_offset = flat.begin * size_of(t);
        shard.slice = program::FlatSlice{roles_.shards, flat.chunk, p.offset, true};
      } else {
        shard.byte_offset = (flat.begin + p.offset) * size_of(t);
      }
      rank_.add_shard(std::move(shard));
    };
    const bool parameters = sharding_ == Sharding::kParameters;
    // Between steps only the own part is up to date where the gather belongs to the next step.
    add(ShardKind::kWeight, weights_, weight_type(), parameters, gathers_ahead());
    add(ShardKind::kGradient, gradients_, summed_type(), shards_gradients(), sharding_ == Sharding::kOptimizer);
    if (master_) add(ShardKind::kMaster, master_weights_, DType::kF32, sharded(), false);
    add(ShardKind::kMoment1, moment1_, s_.training.moments, sharded(), false);
    add(ShardKind::kMoment2, moment2_, s_.training.moments, sharded(), false);
  }
}

ViewId ParameterStore::flat_view(BufferId buffer, std::int64_t begin, std::int64_t elements, DType t) {
  return rank_.view(buffer, begin * size_of(t), t, Shape{elements});
}

ViewId ParameterStore::held_gradients(std::uint32_t flat) {
  const Flat& f = layout_.flats[flat];
  if (shards_gradients()) return flat_view(gradients_, shard_begin_[flat], f.chunk, summed_type());
  return flat_view(gradients_, f.begin, f.elements, x_.gradients);
}

ViewId ParameterStore::held_weights(std::uint32_t flat) {
  const Flat& f = layout_.flats[flat];
  if (sharding_ == Sharding::kParameters) return flat_view(weights_, shard_begin_[flat], f.chunk, weight_type());
  return flat_view(weights_, f.begin, f.elements, x_.compute);
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

ViewId ParameterStore::gradient(std::uint32_t parameter) {
  const LocalParameter& p = layout_.parameters[parameter];
  if (sharding_ == Sharding::kGradients) {
    return rank_.view(open_bucket(p.flat), p.offset * size_of(x_.gradients), x_.gradients, p.shape);
  }
  if (sharding_ != Sharding::kParameters) {
    const std::int64_t begin = layout_.flats[p.flat].begin + p.offset;
    return rank_.view(gradients_, begin * size_of(x_.gradients), x_.gradients, p.shape);
  }
  const std::int64_t begin = offset_in_unit(p.flat) + p.offset;
  const BufferId buffer = unit_gradients(layout_.modules[p.module].unit);
  return rank_.view(buffer, begin * size_of(x_.gradients), x_.gradients, p.shape);
}

}  // namespace stepcast::plan
