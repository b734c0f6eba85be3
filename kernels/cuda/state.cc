// See state.h.
#include "kernels/cuda/state.h"

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/cuda_kernels.h"

namespace stepcast::kernels {
namespace cuda {
namespace {

// What cuBLAS takes by itself on Hopper and later (cuBLAS 13 documentation, cublasSetWorkspace).
constexpr std::size_t kWorkspaceBytes = 32 << 20;

std::byte* allocate(std::size_t bytes) {
  void* memory = nullptr;
  CUDA_TRY(cudaMalloc(&memory, bytes));
  return static_cast<std::byte*>(memory);
}

}  // namespace

CudaState::~CudaState() {
  matmuls_.reset();
  if (workspace_ != nullptr) cudaFree(workspace_);  // waits for the device
  if (scratch_ != nullptr) cudaFree(scratch_);
}

std::byte* CudaState::scratch(std::size_t bytes) {
  if (bytes <= scratch_bytes_) return scratch_;
  if (scratch_ != nullptr) CUDA_TRY(cudaFree(scratch_));  // waits for the device, so that earlier ops are done with it
  scratch_ = nullptr;
  scratch_bytes_ = 0;
  scratch_ = allocate(bytes);
  scratch_bytes_ = bytes;
  return scratch_;
}

CublasMatmuls& CudaState::matmuls() {
  if (matmuls_ == nullptr) {
    if (workspace_ == nullptr) workspace_ = allocate(kWorkspaceBytes);
    matmuls_ = std::make_unique<CublasMatmuls>(stream_, std::span(workspace_, kWorkspaceBytes));
  }
  return *matmuls_;
}

CudaState& state_of(const KernelContext& context) {
  auto* state = dynamic_cast<CudaState*>(context.state);
  CHECK(state != nullptr, "CUDA kernels run with a state of cuda_state()", static_cast<int>(context.kind));
  return *state;
}

}  // namespace cuda

Kernel cuda_kernel(program::OpKind kind) { return cuda::kernel_of(kind); }

std::unique_ptr<StreamState> cuda_state(cudaStream_t stream) { return std::make_unique<cuda::CudaState>(stream); }

}  // namespace stepcast::kernels
