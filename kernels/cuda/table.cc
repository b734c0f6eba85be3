// The table from op kind to CUDA kernel.
#include "kernels/cuda/cuda_kernels.h"

namespace stepcast::kernels::cuda {
namespace {

using program::OpKind;

struct Row {
  OpKind kind;
  Kernel kernel;
};

constexpr Row kTable[] = {
    {OpKind::kZeroFill, zero_fill},    {OpKind::kCopy, copy},          {OpKind::kCast, cast}, {OpKind::kAdd, add},
    {OpKind::kAccumulate, accumulate}, {OpKind::kSumParts, sum_parts},
};

}  // namespace

Kernel kernel_of(OpKind kind) {
  for (const Row& row : kTable) {
    if (row.kind == kind) return row.kernel;
  }
  return nullptr;
}

}  // namespace stepcast::kernels::cuda
