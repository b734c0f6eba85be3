// The explicit table from op kind to CPU reference kernel. A new kind does not compile until it has a line here.
#include <array>

#include "base/check.h"
#include "kernels/cpu/reference.h"
#include "kernels/kernel.h"

namespace stepcast::kernels {
namespace {

using program::OpKind;

struct Row {
  OpKind kind;
  Kernel kernel;
};

// In the order of OpKind.
constexpr Row kTable[] = {
    {OpKind::kZeroFill, cpu::zero_fill},
    {OpKind::kCopy, cpu::copy},
    {OpKind::kCast, cpu::cast},
    {OpKind::kAdd, cpu::add},
    {OpKind::kAccumulate, cpu::accumulate},
    {OpKind::kTokenLoad, cpu::token_load},
    {OpKind::kEmbeddingForward, cpu::embedding_forward},
    {OpKind::kEmbeddingBackward, cpu::embedding_backward},
    {OpKind::kRmsNormForward, cpu::rms_norm_forward},
    {OpKind::kRmsNormBackwardInput, cpu::rms_norm_backward_input},
    {OpKind::kRmsNormBackwardWeight, cpu::rms_norm_backward_weight},
    {OpKind::kMatmul, cpu::matmul},
    {OpKind::kRotaryForward, cpu::rotary_forward},
    {OpKind::kRotaryBackward, cpu::rotary_backward},
    {OpKind::kAttentionForward, cpu::attention_forward},
    {OpKind::kAttentionBackward, cpu::attention_backward},
    {OpKind::kSwiGluForward, cpu::swiglu_forward},
    {OpKind::kSwiGluBackward, cpu::swiglu_backward},
    {OpKind::kCrossEntropyMax, cpu::cross_entropy_max},
    {OpKind::kCrossEntropySum, cpu::cross_entropy_sum},
    {OpKind::kCrossEntropyLoss, cpu::cross_entropy_loss},
    {OpKind::kCrossEntropyBackward, cpu::cross_entropy_backward},
    {OpKind::kSumSquares, cpu::sum_squares},
    {OpKind::kClipFactor, cpu::clip_factor},
    {OpKind::kAdam, cpu::adam},
    {OpKind::kAllReduce, nullptr},
    {OpKind::kAllGather, nullptr},
    {OpKind::kReduceScatter, nullptr},
    {OpKind::kBroadcast, nullptr},
    {OpKind::kSend, nullptr},
    {OpKind::kReceive, nullptr},
    {OpKind::kExchange, nullptr},
    {OpKind::kJoin, nullptr},
    {OpKind::kHostRead, nullptr},
    {OpKind::kLayerNormForward, cpu::layer_norm_forward},
    {OpKind::kLayerNormBackwardInput, cpu::layer_norm_backward_input},
    {OpKind::kLayerNormBackwardWeight, cpu::layer_norm_backward_weight},
    {OpKind::kBiasBackward, cpu::bias_backward},
    {OpKind::kGeluForward, cpu::gelu_forward},
    {OpKind::kGeluBackward, cpu::gelu_backward},
    {OpKind::kSquaredReluForward, cpu::squared_relu_forward},
    {OpKind::kSquaredReluBackward, cpu::squared_relu_backward},
    {OpKind::kBiasDropoutAdd, cpu::bias_dropout_add},
    {OpKind::kDropoutForward, cpu::dropout_forward},
    {OpKind::kDropoutBackward, cpu::dropout_backward},
    {OpKind::kPositionForward, cpu::position_forward},
    {OpKind::kPositionBackward, cpu::position_backward},
    {OpKind::kAttentionScoresForward, cpu::attention_scores_forward},
    {OpKind::kAttentionScoresBackward, cpu::attention_scores_backward},
    {OpKind::kSoftmaxForward, cpu::softmax_forward},
    {OpKind::kSoftmaxBackward, cpu::softmax_backward},
    {OpKind::kAttentionContextForward, cpu::attention_context_forward},
    {OpKind::kAttentionContextBackward, cpu::attention_context_backward},
    {OpKind::kOwnRows, cpu::own_rows},
    {OpKind::kKvExtract, cpu::kv_extract},
    {OpKind::kKvAccumulate, cpu::kv_accumulate},
    {OpKind::kShareAttentionForward, cpu::share_attention_forward},
    {OpKind::kShareAttentionBackward, cpu::share_attention_backward},
    {OpKind::kQkNormForward, cpu::qk_norm_forward},
    {OpKind::kQkNormBackwardInput, cpu::qk_norm_backward_input},
    {OpKind::kQkNormBackwardWeight, cpu::qk_norm_backward_weight},
    {OpKind::kSumParts, cpu::sum_parts},
    {OpKind::kAllToAll, nullptr},
    {OpKind::kHeadsSplit, cpu::heads_split},
    {OpKind::kHeadsJoin, cpu::heads_join},
    {OpKind::kSharesJoin, cpu::shares_join},
    {OpKind::kSharesSplit, cpu::shares_split},
    {OpKind::kOwnGroup, cpu::own_group},
    {OpKind::kOwnGroupBackward, cpu::own_group_backward},
    {OpKind::kQuantise, nullptr},
    {OpKind::kAbsMax, nullptr},
    {OpKind::kTranspose, nullptr},
    {OpKind::kUnscale, nullptr},
};

constexpr bool lists_every_kind_in_order() {
  for (std::size_t i = 0; i < std::size(kTable); ++i) {
    if (static_cast<std::size_t>(kTable[i].kind) != i) return false;
  }
  return std::size(kTable) == program::kOpKindCount;
}
static_assert(lists_every_kind_in_order());

}  // namespace

Kernel reference_kernel(OpKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  CHECK(index < std::size(kTable), index);
  return kTable[index].kernel;
}

}  // namespace stepcast::kernels
