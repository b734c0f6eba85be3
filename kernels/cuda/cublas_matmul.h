// Matmuls by cuBLASLt, whose matrices are column-major: a row-major c[rows, columns] is a column-major [columns, rows],
// so c = a b is computed as c' = b' a' from the very same memory, b being cuBLASLt's first factor.
//
// Sums are in f32 (CUBLAS_COMPUTE_32F), for f32 factors too: TF32, with its 10 bits of mantissa, is never asked for.
// Partial sums, where an algorithm splits k, are kept in f32 and added in a pass of their own, so that a result is
// rounded once and repeats bit for bit on devices of one kind with one version of the library.
#pragma once

#include <cublasLt.h>

#include <map>
#include <memory>
#include <span>

#include "kernels/cuda/matmul_shape.h"

namespace stepcast::kernels::cuda {

// Device pointers.
struct MatmulOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;
  // What the elements of an 8-bit factor are multiplied by to get its values: one f32 each.
  const float* a_scale = nullptr;
  const float* b_scale = nullptr;
};

// The matmuls of one stream: descriptors and the algorithm are chosen once for a shape and its alignment, and kept.
class CublasMatmuls {
 public:
  // Algorithms may use `workspace`, device memory that outlives this. Throws Error (kExecution).
  CublasMatmuls(cudaStream_t stream, std::span<std::byte> workspace);
  ~CublasMatmuls();
  CublasMatmuls(const CublasMatmuls&) = delete;
  CublasMatmuls& operator=(const CublasMatmuls&) = delete;

  // Enqueues the product; false, and nothing is enqueued, where cuBLASLt has no algorithm: extents or addresses that
  // are not aligned as its kernels need, bf16 factors and bias with an f32 result. `shape` is not empty. 8-bit factors
  // want a not transposed and b transposed (both contiguous along k), extents that are multiples of 16, no bias.
  // Throws Error (kExecution).
  bool multiply(const MatmulShape& shape, const MatmulOperands& operands);

 private:
  struct Plan;
  // Bytes to which addresses are aligned, up to 256.
  struct Key {
    MatmulShape shape;
    std::uint32_t a_alignment = 0;
    std::uint32_t b_alignment = 0;
    std::uint32_t c_alignment = 0;
    std::uint32_t bias_alignment = 0;
    auto operator<=>(const Key&) const = default;
  };

  std::unique_ptr<Plan> plan_of(const Key& key, const MatmulOperands& operands) const;

  cudaStream_t stream_;
  std::span<std::byte> workspace_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<Key, std::unique_ptr<Plan>> plans_;  // null: cuBLASLt has none
};

}  // namespace stepcast::kernels::cuda
