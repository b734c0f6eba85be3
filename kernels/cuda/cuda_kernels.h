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

}  // namespace stepcast::kernels::cuda
