// What CUDA kernels keep for one stream of one rank.
#pragma once

#include <cstddef>
#include <memory>

#include "base/check.h"
#include "kernels/cuda/cublas_matmul.h"
#include "kernels/cuda/cuda_try.h"
#include "kernels/kernel.h"

namespace stepcast::kernels::cuda {

class CudaState : public StreamState {
 public:
  // The stream belongs to the device that is current when kernels run, and outlives the state.
  explicit CudaState(cudaStream_t stream) : stream_(stream) {}
  ~CudaState() override;

  cudaStream_t stream() const { return stream_; }
  // Device memory for the op being enqueued, usable until the next op of the stream asks; it grows.
  std::byte* scratch(std::size_t bytes);
  // Made, with its workspace, when the stream's first matmul asks.
  CublasMatmuls& matmuls();

 private:
  cudaStream_t stream_;
  std::byte* scratch_ = nullptr;
  std::size_t scratch_bytes_ = 0;
  std::byte* workspace_ = nullptr;
  std::unique_ptr<CublasMatmuls> matmuls_;
};

CudaState& state_of(const KernelContext& context);

}  // namespace stepcast::kernels::cuda
