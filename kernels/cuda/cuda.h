// The CUDA kernels: the same functions of the same operands as the reference kernels (cpu/reference.h), within
// rounding, on device memory. Storage is f32 or bf16; nothing here takes f64.
#pragma once

#include <driver_types.h>

#include <memory>

#include "kernels/kernel.h"

namespace stepcast::kernels {

// The kernel of a kind, which enqueues its work on the stream of KernelContext::state; nullptr for kinds exec runs
// itself. It needs a state made by cuda_state(). Throws Error (kExecution) when CUDA refuses.
Kernel cuda_kernel(program::OpKind kind);

// The state of one stream of the current device; the stream must outlive it.
std::unique_ptr<StreamState> cuda_state(cudaStream_t stream);

}  // namespace stepcast::kernels
