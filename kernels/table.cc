// The explicit table from op kind to CPU reference kernel. A new kind does not compile until it has a line here.
#include "kernels/cpu/reference.h"
#include "kernels/kernel.h"

namespace stepcast::kernels {

Kernel reference_kernel(program::OpKind kind) {
  using program::OpKind;
  switch (kind) {
    case OpKind::kZeroFill:
      return cpu::zero_fill;
    case OpKind::kCopy:
      return cpu::copy;
    case OpKind::kCast:
      return cpu::cast;
    case OpKind::kAdd:
      return cpu::add;
    case OpKind::kAccumulate:
      return cpu::accumulate;
    case OpKind::kTokenLoad:
      return cpu::token_load;
    case OpKind::kEmbeddingForward:
      return cpu::embedding_forward;
    case OpKind::kEmbeddingBackward:
      return cpu::embedding_backward;
    case OpKind::kRmsNormForward:
      return cpu::rms_norm_forward;
    case OpKind::kRmsNormBackwardInput:
      return cpu::rms_norm_backward_input;
    case OpKind::kRmsNormBackwardWeight:
      return cpu::rms_norm_backward_weight;
    case OpKind::kMatmul:
      return cpu::matmul;
    case OpKind::kRotaryForward:
      return cpu::rotary_forward;
    case OpKind::kRotaryBackward:
      return cpu::rotary_backward;
    case OpKind::kAttentionForward:
      return cpu::attention_forward;
    case OpKind::kAttentionBackward:
      return cpu::attention_backward;
    case OpKind::kOwnRows:
      return cpu::own_rows;
    case OpKind::kKvExtract:
      return cpu::kv_extract;
    case OpKind::kKvAccumulate:
      return cpu::kv_accumulate;
    case OpKind::kContextAttentionForward:
      return cpu::context_attention_forward;
    case OpKind::kContextAttentionBackward:
      return cpu::context_attention_backward;
    case OpKind::kSwiGluForward:
      return cpu::swiglu_forward;
    case OpKind::kSwiGluBackward:
      return cpu::swiglu_backward;
    case OpKind::kCrossEntropyMax:
      return cpu::cross_entropy_max;
    case OpKind::kCrossEntropySum:
      return cpu::cross_entropy_sum;
    case OpKind::kCrossEntropyLoss:
      return cpu::cross_entropy_loss;
    case OpKind::kCrossEntropyBackward:
      return cpu::cross_entropy_backward;
    case OpKind::kSumSquares:
      return cpu::sum_squares;
    case OpKind::kClipFactor:
      return cpu::clip_factor;
    case OpKind::kAdam:
      return cpu::adam;
    case OpKind::kAllReduce:
    case OpKind::kAllGather:
    case OpKind::kReduceScatter:
    case OpKind::kBroadcast:
    case OpKind::kSend:
    case OpKind::kReceive:
    case OpKind::kExchange:
    case OpKind::kJoin:
    case OpKind::kHostRead:
      return nullptr;
  }
  return nullptr;
}

}  // namespace stepcast::kernels
