// The CUDA kernels, one function per op kind. Operands, shapes and meaning: program/ops/op.h.
#pragma once

#include "kernels/kernel.h"

namespace stepcast::kernels::cuda {

// The kernel of a kind; nullptr for kinds that exec runs itself.
Kernel kernel_of(program::OpKind kind);

void zero_fill(const KernelContext& context);
void copy(const KernelContext& context);
void cast(const KernelContext& context);
void add(const KernelContext& context);
void sum_parts(const KernelContext& context);
void accumulate(const KernelContext& context);
void matmul(const KernelContext& context);
void attention_forward(const KernelContext& context);
void attention_backward(const KernelContext& context);
void share_attention_forward(const KernelContext& context);
void share_attention_backward(const KernelContext& context);
void attention_scores_forward(const KernelContext& context);
void attention_scores_backward(const KernelContext& context);
void attention_context_forward(const KernelContext& context);
void attention_context_backward(const KernelContext& context);

void token_load(const KernelContext& context);
void embedding_forward(const KernelContext& context);
void embedding_backward(const KernelContext& context);
void position_forward(const KernelContext& context);
void position_backward(const KernelContext& context);

void rms_norm_forward(const KernelContext& context);
void rms_norm_backward_input(const KernelContext& context);
void rms_norm_backward_weight(const KernelContext& context);
void layer_norm_forward(const KernelContext& context);
void layer_norm_backward_input(const KernelContext& context);
void layer_norm_backward_weight(const KernelContext& context);
void bias_backward(const KernelContext& context);
void qk_norm_forward(const KernelContext& context);
void qk_norm_backward_input(const KernelContext& context);
void qk_norm_backward_weight(const KernelContext& context);

void rotary_forward(const KernelContext& context);
void rotary_backward(const KernelContext& context);
void softmax_forward(const KernelContext& context);
void softmax_backward(const KernelContext& context);
void bias_dropout_add(const KernelContext& context);
void dropout_forward(const KernelContext& context);
void dropout_backward(const KernelContext& context);

void swiglu_forward(const KernelContext& context);
void swiglu_backward(const KernelContext& context);
void gelu_forward(const KernelContext& context);
void gelu_backward(const KernelContext& context);
void squared_relu_forward(const KernelContext& context);
void squared_relu_backward(const KernelContext& context);

void own_rows(const KernelContext& context);
void kv_extract(const KernelContext& context);
void kv_accumulate(const KernelContext& context);
void heads_split(const KernelContext& context);
void heads_join(const KernelContext& context);
void shares_join(const KernelContext& context);
void shares_split(const KernelContext& context);
void own_group(const KernelContext& context);
void own_group_backward(const KernelContext& context);

void cross_entropy_max(const KernelContext& context);
void cross_entropy_sum(const KernelContext& context);
void cross_entropy_loss(const KernelContext& context);
void cross_entropy_backward(const KernelContext& context);
void sum_squares(const KernelContext& context);
void clip_factor(const KernelContext& context);
void adam(const KernelContext& context);

}  // namespace stepcast::kernels::cuda
