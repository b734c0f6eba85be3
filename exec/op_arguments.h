// What an op's kernel or collective is called with, worked out from the Program, the rank and the memory it was given:
// the same on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/communicator.h"
#include "kernels/kernel.h"
#include "program/program.h"
#include "program/resolve.h"

namespace stepcast::exec {

// An operand that is a part of the rows (program/ops/op.h) starts where that part does; a member's, where the rank's
// index puts it.
void place_parts(const program::Program& p, program::RankId rank, const program::Op& op,
                 std::vector<kernels::Tensor>& operands);

// Of op `flat` of the rank, in optimizer step `step` (1-based), without the backend's state. `operands` must outlive
// it.
kernels::KernelContext kernel_context(const program::Program& p, program::RankId rank, const program::Resolution& res,
                                      std::uint32_t flat, std::span<const kernels::Tensor> operands, std::int64_t step);

// The rank's part in a collective, narrowed to what it gives and takes, without its begin and completion.
CollectiveArrival collective_arguments(const program::Program& p, program::RankId rank, const program::Op& op,
                                       std::uint32_t flat, std::span<const kernels::Tensor> operands);

}  // namespace stepcast::exec
