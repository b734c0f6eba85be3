// What collectives compute, on the buffers of all members at once: pure functions of memory, without threads.
//
// Sums run in member order: f32 and bf16 in binary32 (a bf16 result is rounded once, at the end), f64 in binary64. A
// maximum is exact and keeps NaN. Gathers, broadcasts and all-to-alls copy bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "program/ops/op.h"

namespace stepcast::exec {

struct CollectiveSpec {
  program::OpKind kind = program::OpKind::kAllReduce;
  program::DType dtype = program::DType::kF32;
  program::Reduce reduce = program::Reduce::kSum;
  std::int64_t root = 0;             // broadcast: member
  std::int64_t elements = 0;         // of the whole: all-reduced, broadcast, gathered, scattered or exchanged buffer
  std::vector<std::int64_t> counts;  // all-gather, reduce-scatter: elements per member, adding up to `elements`
  // reduce-scatter into a block of the columns of a wider matrix: columns of the block, of the matrix and before the
  // block; 0: the parts lie one behind the other
  std::int64_t columns = 0;
  std::int64_t row_columns = 0;
  std::int64_t first_column = 0;
  bool operator==(const CollectiveSpec&) const = default;
};

// The spec of `op` with operand types `operands` in a group of `members`; equal parts where the op names no counts.
CollectiveSpec collective_spec(const program::Op& op, std::span<const program::TensorType> operands,
                               std::int64_t members);

// One member's memory: `in` is read, `out` written; in place ops have both the same.
struct MemberBuffers {
  const void* in = nullptr;
  void* out = nullptr;
};

// Performs the collective. `out` of a member may be its `in`, or the slice of it that is its own part (and the reverse
// for gathers). Throws Error (kExecution) for a type that cannot be reduced.
void perform_collective(const CollectiveSpec& spec, std::span<const MemberBuffers> members);

}  // namespace stepcast::exec
