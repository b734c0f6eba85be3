// Gathers of sharded weights, and how gradients come together: bucket by bucket or unit by unit.
#include <algorithm>
#include <optional>
#include <string>

#include "base/check.h"
#include "plan/flat_calls.h"
#include "plan/parameter_store.h"
#include "plan/parameter_tags.h"

namespace stepcast::plan {

using program::BufferId;
using program::Channel;
using program::MemoryClass;
using program::Pass;
using program::Stream;
using program::Tag;
using program::ViewId;

void ParameterStore::begin_step() {
  if (layout_.elements == 0) return;
  const std::int64_t n = shards_gradients() ? layout_.shard_elements : layout_.elements;
  rank_.call(zero_segment(b_, "gradients", summed_type(), n), {flat_view(gradients_, 0, n, summed_type())},
             step_tag(Pass::kOptimizer));
}

void ParameterStore::begin_use(std::size_t index) {
  CHECK(index < uses_.size(), index, uses_.size());
  use_ = index;
  if (gathers_ahead()) gather_ahead(uses_[index].unit);
  if (sharding_ != Sharding::kParameters) return;
  const std::size_t ahead = static_cast<std::size_t>(s_.plan.fsdp.prefetch);
  for (std::size_t j = index; j <= std::min(index + ahead, uses_.size() - 1); ++j) {
    // Without resharding one gather serves every later use of the unit in the step.
    if (!gathered_[s_.plan.fsdp.reshard_after_forward ? j : uses_[j].unit]) gather(j);
  }
}

void ParameterStore::gather(std::size_t use) {
  const UnitUse& u = uses_[use];
  gathered_[s_.plan.fsdp.reshard_after_forward ? use : u.unit] = true;
  const Unit& unit = layout_.units[u.unit];
  for (const std::uint32_t f : unit.flats) {
    const Flat& flat = layout_.flats[f];
    const std::string what = unit.prefix + (flat.of_own_heads ? "qk_norms" : flat.replicated ? "norms" : "weights");
    const CollectiveSpec c{what, u.starts_forward ? "gather" : "gather_again", roles_.shards, Stream::kGather,
                           Channel::kWeights};
    const ViewId whole = flat_view(weight_ring_[*slot_of_use_[use]], offset_in_unit(f), flat.elements, x_.compute);
    const program::SegmentId segment =
        all_gather_segment(b_, c, weight_type(), x_.compute, flat.chunk, s_.plan.shards());
    rank_.call(segment, {held_weights(f), whole}, unit_tag(unit, u.microbatch));
  }
}

void ParameterStore::order_gathers() {
  std::vector<bool> listed(layout_.flats.size(), false);
  gathers_of_unit_.resize(layout_.units.size(), 0);
  for (const LocalParameter& p : layout_.parameters) {  // in forward order, as modules and units are
    if (!listed[p.flat]) gather_order_.push_back(p.flat);
    listed[p.flat] = true;
    gathers_of_unit_[layout_.modules[p.module].unit] = gather_order_.size();
  }
}

// One bucket ahead of its first use, as Megatron-Core's forward hooks have it: each waits for its bucket and issues the
// gather of the next one, which starts behind what the device computed until then. The first bucket's is exposed.
void ParameterStore::gather_ahead(std::uint32_t unit) {
  const std::size_t needed = gathers_of_unit_[unit];
  if (needed < gathers_) return;
  for (const std::size_t until = std::min(needed + 1, gather_order_.size()); gathers_ < until; ++gathers_) {
    const std::uint32_t flat = gather_order_[gathers_];
    rank_.call(join_segment(b_, "weights", Stream::kGather, Stream::kCompute), {}, flat_tag(Pass::kComm, flat));
    gather_flat(flat);
  }
}

void ParameterStore::gather_flat(std::uint32_t flat) {
  const CollectiveSpec c{"weights", "gather", roles_.shards, Stream::kGather, Channel::kWeights};
  rank_.call(all_gather_in_place_segment(b_, c, x_.compute, layout_.flats[flat].elements), {held_weights(flat)},
             flat_tag(Pass::kComm, flat));
}

void ParameterStore::begin_backward(std::uint32_t unit, std::uint32_t microbatch) {
  backward_ = step_tag(Pass::kComm);
  backward_.chunk = layout_.units[unit].chunk;
  backward_.microbatch = microbatch;
  if (sharding_ != Sharding::kParameters) return;
  ++backward_uses_;
  if (keeps_gradients()) {
    if (has_gradients_[unit]) return;
    has_gradients_[unit] = true;
  }
  const std::int64_t n = unit_elements(unit);
  rank_.call(zero_segment(b_, layout_.units[unit].prefix + "gradients", x_.gradients, n),
             {flat_view(unit_gradients(unit), 0, n, x_.gradients)}, unit_tag(layout_.units[unit], microbatch));
}

// The gradients of a microbatch under ZeRO-2: there from their first contribution until they are reduced.
BufferId ParameterStore::open_bucket(std::uint32_t flat) {
  std::optional<BufferId>& bucket = open_buckets_[flat];
  if (bucket) return *bucket;
  const std::int64_t n = layout_.flats[flat].elements;
  const std::string name = "bucket" + std::to_string(flat);
  bucket = rank_.buffer(name, n * size_of(x_.gradients), MemoryClass::kGradients);
  rank_.call(zero_segment(b_, name, x_.gradients, n), {flat_view(*bucket, 0, n, x_.gradients)}, backward_);
  return *bucket;
}

void ParameterStore::scatter_bucket(std::uint32_t flat) {
  std::optional<BufferId>& bucket = open_buckets_[flat];
  if (!bucket) return;
  const Flat& f = layout_.flats[flat];
  const std::string name = "bucket" + std::to_string(flat);
  rank_.call(scatter_segment(name, f.chunk), {flat_view(*bucket, 0, f.elements, x_.gradients), held_gradients(flat)},
             backward_);
  bucket.reset();
  if (s_.plan.overlap_grad_reduce) return;
  rank_.call(join_segment(b_, name, Stream::kCompute, Stream::kDp), {}, backward_);
}

// Into the shard; under HSDP summed over its copies on the way, as FSDP2 does for every microbatch.
program::SegmentId ParameterStore::scatter_segment(const std::string& label, std::int64_t chunk) {
  const CollectiveSpec c{label, "reduce", roles_.shards, Stream::kDp, Channel::kMain};
  std::optional<CollectiveSpec> copies;
  if (s_.plan.hybrid()) copies = CollectiveSpec{label, "reduce_copies", roles_.copies, Stream::kDp, Channel::kMain};
  return reduce_scatter_accumulate_segment(b_, c, copies, x_.gradients, summed_type(), chunk, s_.plan.shards());
}

// Under sequence parallelism every tp member has the gradient of its own tokens only; of norms of queries and keys it
// always has that of its own heads.
void ParameterStore::reduce_replicated(std::uint32_t flat, ViewId gradients, Tag tag) {
  const Flat& f = layout_.flats[flat];
  if (!f.replicated || !(x_.sequence_parallel || f.of_own_heads)) return;
  const std::string prefix = f.unit ? layout_.units[*f.unit].prefix : "";
  const std::string what = f.of_own_heads ? "qk_norm_gradients" : "norm_gradients";
  const CollectiveSpec c{prefix + what, "reduce_tp", roles_.tp, Stream::kTp, Channel::kMain};
  const std::int64_t n = rank_.at(gradients).type.shape.elements();
  rank_.call(all_reduce_segment(b_, c, x_.gradients, n), {gradients}, tag);
}

// The sums over others than the replicas: tp members' tokens, the other copy of a tied table.
void ParameterStore::reduce_copies(std::uint32_t flat) {
  const ViewId gradients = held_gradients(flat);
  const Tag tag = flat_tag(Pass::kComm, flat);
  reduce_replicated(flat, gradients, tag);
  if (!layout_.flats[flat].tied) return;
  const CollectiveSpec c{"tied", "reduce", roles_.embedding, Stream::kDp, Channel::kMain};
  const std::int64_t n = rank_.at(gradients).type.shape.elements();
  rank_.call(all_reduce_segment(b_, c, x_.gradients, n), {gradients}, tag);
}

void ParameterStore::reduce(std::uint32_t flat) {
  reduce_copies(flat);
  if (s_.plan.replicas() == 1) return;
  const std::int64_t n = layout_.flats[flat].elements;
  const CollectiveSpec c{"bucket", "reduce", sharded() ? roles_.shards : roles_.replicas, Stream::kDp, Channel::kMain};
  const program::SegmentId segment =
      sharded() ? reduce_scatter_in_place_segment(b_, c, x_.gradients, n) : all_reduce_segment(b_, c, x_.gradients, n);
  rank_.call(segment, {held_gradients(flat)}, flat_tag(Pass::kComm, flat));
  if (!sharded() || !s_.plan.hybrid()) return;
  // Each instance has its own sum: those of the same part are summed, in place too.
  const CollectiveSpec copies{"bucket", "reduce_copies", roles_.copies, Stream::kDp, Channel::kMain};
  rank_.call(all_reduce_segment(b_, copies, x_.gradients, n, OwnPart{roles_.shards, s_.plan.shards()}),
             {held_gradients(flat)}, flat_tag(Pass::kComm, flat));
}

void ParameterStore::scatter_unit(std::uint32_t unit, std::uint32_t microbatch) {
  const BufferId buffer = unit_gradients(unit);
  const Unit& u = layout_.units[unit];
  for (const std::uint32_t f : u.flats) {
    const Flat& flat = layout_.flats[f];
    const ViewId whole = flat_view(buffer, offset_in_unit(f), flat.elements, x_.gradients);
    const Tag tag = unit_tag(u, microbatch);
    reduce_replicated(f, whole, tag);
    const char* const what = flat.of_own_heads ? "qk_norm_scatter" : flat.replicated ? "norm_scatter" : "scatter";
    rank_.call(scatter_segment(u.prefix + what, flat.chunk), {whole, held_gradients(f)}, tag);
  }
}

void ParameterStore::module_done(std::uint32_t module, std::uint32_t microbatch, bool last) {
  if (sharding_ == Sharding::kParameters) {
    const std::uint32_t unit = layout_.modules[module].unit;
    const bool scatters = !keeps_gradients() || (last && s_.plan.pp == 1);
    if (scatters && layout_.units[unit].modules.front() == module) scatter_unit(unit, microbatch);
    return;
  }
  const bool reduces = last && s_.plan.overlap_grad_reduce;
  for (const std::uint32_t f : layout_.completed_by[module]) {
    if (sharding_ == Sharding::kGradients) {
      scatter_bucket(f);
    } else if (reduces && !layout_.flats[f].tied) {
      reduce(f);
    }
  }
}

void ParameterStore::chunk_done(std::uint16_t chunk) {
  if (!keeps_gradients() || s_.plan.pp == 1) return;
  bool reduced = false;
  for (std::uint32_t u = 0; u < layout_.units.size(); ++u) {
    if (layout_.units[u].chunk != chunk) continue;
    scatter_unit(u, backward_.microbatch.value());
    reduced = true;
  }
  if (reduced) rank_.call(join_segment(b_, "gradients", Stream::kCompute, Stream::kDp), {}, backward_);
}

void ParameterStore::finish_backward() {
  if (sharding_ == Sharding::kParameters) return;
  if (sharding_ == Sharding::kGradients) {
    for (std::uint32_t f = 0; f < layout_.flats.size(); ++f) reduce_copies(f);
    return;
  }
  if (!s_.plan.overlap_grad_reduce && s_.plan.replicas() > 1) {
    // Without overlap the reductions come after the whole backward pass, not as soon as their operands allow.
    rank_.call(join_segment(b_, "buckets", Stream::kDp, Stream::kCompute), {}, step_tag(Pass::kComm));
  }
  for (std::uint32_t f = 0; f < layout_.flats.size(); ++f) {
    if (layout_.flats[f].tied || !s_.plan.overlap_grad_reduce) reduce(f);
  }
}

}  // namespace stepcast::plan
