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
    {OpKind::kZeroFill, zero_fill},
    {OpKind::kCopy, copy},
    {OpKind::kCast, cast},
    {OpKind::kAdd, add},
    {OpKind::kAccumulate, accumulate},
    {OpKind::kSumParts, sum_parts},
    // matmul and attention
    {OpKind::kMatmul, matmul},
    {OpKind::kAttentionForward, attention_forward},
    {OpKind::kAttentionBackward, attention_backward},
    {OpKind::kShareAttentionForward, share_attention_forward},
    {OpKind::kShareAttentionBackward, share_attention_backward},
    {OpKind::kAttentionScoresForward, attention_scores_forward},
    {OpKind::kAttentionScoresBackward, attention_scores_backward},
    {OpKind::kAttentionContextForward, attention_context_forward},
    {OpKind::kAttentionContextBackward, attention_context_backward},
};

}  // namespace

Kernel kernel_of(OpKind kind) {
  for (const Row& row : kTable) {
    if (row.kind == kind) return row.kernel;
  }
  return nullptr;
}

}  // namespace stepcast::kernels::cuda
