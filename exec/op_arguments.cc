// See op_arguments.h.
#include "exec/op_arguments.h"

#include <cstddef>
#include <numeric>

#include "base/check.h"

namespace stepcast::exec {
namespace {

// An in-place gather or reduce-scatter has one operand, the whole: what the member gives or takes is its own part of
// it.
void narrow_in_place(CollectiveArrival& arrival, std::size_t member, program::DType dtype) {
  const std::vector<std::int64_t>& counts = arrival.spec.counts;
  CHECK(member < counts.size(), member, counts.size());
  const auto own = counts.begin() + static_cast<std::ptrdiff_t>(member);
  const std::int64_t offset = std::accumulate(counts.begin(), own, std::int64_t{0}) * program::size_of(dtype);
  void* part = static_cast<std::byte*>(arrival.buffers.out) + offset;
  if (arrival.spec.kind == program::OpKind::kAllGather) {
    arrival.buffers.in = part;
    arrival.in_elements = *own;
  } else {
    arrival.buffers.out = part;
    arrival.out_elements = *own;
  }
}

// Of all parts that the operand holds, the one that is reduced.
void narrow_to_part(CollectiveArrival& arrival, std::int64_t part, program::DType dtype) {
  arrival.in_elements = arrival.out_elements = arrival.spec.elements;
  void* own = static_cast<std::byte*>(arrival.buffers.out) + part * arrival.spec.elements * program::size_of(dtype);
  arrival.buffers = {own, own};
}

}  // namespace

void place_parts(const program::Program& p, program::RankId rank, const program::Op& op,
                 std::vector<kernels::Tensor>& operands) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const program::Operand& o = op.operands[i];
    if (!o.is_part()) continue;
    const std::int64_t index = op.index_role ? program::membership(p, rank, *op.index_role).index : 0;
    const std::int64_t number = program::part_number(o, index);
    operands[i].data = static_cast<std::byte*>(operands[i].data) + number * operands[i].type.bytes();
  }
}

kernels::KernelContext kernel_context(const program::Program& p, program::RankId rank, const program::Resolution& res,
                                      std::uint32_t flat, std::span<const kernels::Tensor> operands,
                                      std::int64_t step) {
  const program::RankProgram& r = p.rank_programs[p.ranks[rank].program];
  const program::Op& op = program::op_at(p, r, res, flat);
  kernels::KernelContext k;
  k.operands = operands;
  k.attributes = &op.attributes;
  k.kind = op.kind;
  const std::optional<std::size_t> result = program::accumulable_operand(op.kind);
  k.accumulate = result && *result < op.operands.size() && op.operands[*result].access == program::Access::kAccumulate;
  k.step = step;
  k.seed = p.seed;
  const program::Tag& tag = r.calls[res.call_of[flat]].tag;
  k.layer = tag.layer.value_or(0);
  k.microbatch = tag.microbatch.value_or(0);
  if (op.sample_role) k.sample_index = program::membership(p, rank, *op.sample_role).index;
  if (op.index_role) {
    const program::Membership& own = program::membership(p, rank, *op.index_role);
    k.index = own.index;
    k.index_count = static_cast<std::int64_t>(p.groups[own.group].members.size());
  }
  return k;
}

CollectiveArrival collective_arguments(const program::Program& p, program::RankId rank, const program::Op& op,
                                       std::uint32_t flat, std::span<const kernels::Tensor> operands) {
  const program::Membership& own = program::membership(p, rank, *op.group);
  const kernels::Tensor& in = operands.front();
  const kernels::Tensor& out = operands.back();  // the same in place
  std::vector<program::TensorType> types;
  for (const kernels::Tensor& operand : operands) types.push_back(operand.type);
  CollectiveArrival arrival;
  arrival.rank = rank;
  arrival.op = flat;
  arrival.spec = collective_spec(op, types, static_cast<std::int64_t>(p.groups[own.group].members.size()));
  arrival.buffers = {in.data, out.data};
  arrival.in_elements = in.type.shape.elements();
  arrival.out_elements = out.type.shape.elements();
  if (operands.size() == 1 && !arrival.spec.counts.empty()) narrow_in_place(arrival, own.index, in.type.dtype);
  if (op.index_role) {
    const auto part = static_cast<std::int64_t>(program::membership(p, rank, *op.index_role).index);
    narrow_to_part(arrival, part, in.type.dtype);
  }
  return arrival;
}

}  // namespace stepcast::exec
