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
    {OpKind::kTokenLoad, token_load},
    {OpKind::kEmbeddingForward, embedding_forward},
    {OpKind::kEmbeddingBackward, embedding_backward},
    {OpKind::kPositionForward, position_forward},
    {OpKind::kPositionBackward, position_backward},
    {OpKind::kRmsNormForward, rms_norm_forward},
    {OpKind::kRmsNormBackwardInput, rms_norm_backward_input},
    {OpKind::kRmsNormBackwardWeight, rms_norm_backward_weight},
    {OpKind::kLayerNormForward, layer_norm_forward},
    {OpKind::kLayerNormBackwardInput, layer_norm_backward_input},
    {OpKind::kLayerNormBackwardWeight, layer_norm_backward_weight},
    {OpKind::kBiasBackward, bias_backward},
    {OpKind::kQkNormForward, qk_norm_forward},
    {OpKind::kQkNormBackwardInput, qk_norm_backward_input},
    {OpKind::kQkNormBackwardWeight, qk_norm_backward_weight},
    {OpKind::kRotaryForward, rotary_forward},
    {OpKind::kRotaryBackward, rotary_backward},
    {OpKind::kSoftmaxForward, softmax_forward},
    {OpKind::kSoftmaxBackward, softmax_backward},
    {OpKind::kBiasDropoutAdd, bias_dropout_add},
    {OpKind::kDropoutForward, dropout_forward},
    {OpKind::kDropoutBackward, dropout_backward},
    {OpKind::kSwiGluForward, swiglu_forward},
    {OpKind::kSwiGluBackward, swiglu_backward},
    {OpKind::kGeluForward, gelu_forward},
    {OpKind::kGeluBackward, gelu_backward},
    {OpKind::kSquaredReluForward, squared_relu_forward},
    {OpKind::kSquaredReluBackward, squared_relu_backward},
    {OpKind::kOwnRows, own_rows},
    {OpKind::kKvExtract, kv_extract},
    {OpKind::kKvAccumulate, kv_accumulate},
    {OpKind::kHeadsSplit, heads_split},
    {OpKind::kHeadsJoin, heads_join},
    {OpKind::kSharesJoin, shares_join},
    {OpKind::kSharesSplit, shares_split},
    {OpKind::kOwnGroup, own_group},
    {OpKind::kOwnGroupBackward, own_group_backward},
    {OpKind::kCrossEntropyMax, cross_entropy_max},
    {OpKind::kCrossEntropySum, cross_entropy_sum},
    {OpKind::kCrossEntropyLoss, cross_entropy_loss},
    {OpKind::kCrossEntropyBackward, cross_entropy_backward},
    {OpKind::kSumSquares, sum_squares},
    {OpKind::kClipFactor, clip_factor},
    {OpKind::kAdam, adam},
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
