// What kernels of this folder are written against: CUDA where nvcc compiles them, else blocks of threads on the CPU
// (simt/simt.h), so that every kernel is tested where there is no GPU.
//
// A source of this folder is a .cu that is also C++: it starts kernels with launch() or launch_elements() instead of
// <<< >>>, has dynamic shared memory from shared_memory<T>(), and uses of CUDA's device functions only those that
// simt.h has too. Kernels compute in the accumulate type (element.h); f64 operands are not for them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/cpu/access.h"
#include "kernels/element.h"
#include "kernels/kernel.h"

#ifdef __CUDACC__
#include "kernels/cuda/state.h"
#else
#include "kernels/cuda/simt/simt.h"
#endif

namespace stepcast::kernels::cuda {

using cpu::attributes;
using cpu::dtype;
using cpu::dtype_of;
using cpu::operand;
using cpu::own_part;
using cpu::Rows;
using cpu::rows;

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kBlock = 256;  // threads of a block, where nothing speaks for another number

struct Grid {
  dim3 blocks;
  dim3 threads = dim3(kBlock);
  std::size_t shared_bytes = 0;
  // Threads of a block meet (__syncthreads, shuffles). The CPU runs blocks whose threads do not as plain loops.
  bool meets = true;
};

#ifdef __CUDACC__

// Shared memory whose size the launch gives.
template <class T>
__device__ T* shared_memory() {
  extern __shared__ __align__(16) unsigned char stepcast_shared_memory[];
  return reinterpret_cast<T*>(stepcast_shared_memory);
}

// Enqueues the kernel on the stream of the op. Throws Error (kExecution) when CUDA refuses it.
template <class... Parameters, class... Arguments>
void launch(const KernelContext& context, const Grid& grid, void (*kernel)(Parameters...), Arguments... arguments) {
  if (grid.blocks.x == 0 || grid.blocks.y == 0 || grid.blocks.z == 0) return;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = state_of(context).stream();
  constexpr std::size_t kSharedByDefault = 48 * 1024;  // more has to be asked for
  if (grid.shared_bytes > kSharedByDefault) {
    CUDA_TRY(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(grid.shared_bytes)));
  }
  CUDA_TRY(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

// Memory of the device for the op being enqueued, until the next op of the stream asks. One call an op: a second may
// move it.
inline std::byte* scratch(const KernelContext& context, std::size_t bytes) { return state_of(context).scratch(bytes); }

// Between any two spaces; the host waits for one whose memory on the host is not pinned.
inline void copy_memory(const KernelContext& context, void* out, const void* in, std::int64_t bytes) {
  if (bytes == 0) return;
  CUDA_TRY(cudaMemcpyAsync(out, in, static_cast<std::size_t>(bytes), cudaMemcpyDefault, state_of(context).stream()));
}

inline void zero_memory(const KernelContext& context, void* out, std::int64_t bytes) {
  if (bytes == 0) return;
  CUDA_TRY(cudaMemsetAsync(out, 0, static_cast<std::size_t>(bytes), state_of(context).stream()));
}

#else

template <class T>
T* shared_memory() {
  return reinterpret_cast<T*>(simt::shared_bytes());
}

template <class... Parameters, class... Arguments>
void launch(const KernelContext&, const Grid& grid, void (*kernel)(Parameters...), Arguments... arguments) {
  simt::run(grid.blocks, grid.threads, grid.shared_bytes, grid.meets,
            [=] { kernel(static_cast<Parameters>(arguments)...); });
}

inline std::byte* scratch(const KernelContext&, std::size_t bytes) { return simt::scratch(bytes); }

inline void copy_memory(const KernelContext&, void* out, const void* in, std::int64_t bytes) {
  if (bytes > 0) std::memmove(out, in, static_cast<std::size_t>(bytes));
}

inline void zero_memory(const KernelContext&, void* out, std::int64_t bytes) {
  if (bytes > 0) std::memset(out, 0, static_cast<std::size_t>(bytes));
}

#endif

// A thread of launch_elements() does elements first_element(), + element_stride(), ...
__device__ inline std::int64_t first_element() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t element_stride() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

// For kernels that treat `count` elements one by one.
template <class... Parameters, class... Arguments>
void launch_elements(const KernelContext& context, std::int64_t count, void (*kernel)(Parameters...),
                     Arguments... arguments) {
  constexpr std::int64_t kMostBlocks = 16384;  // enough to fill any GPU many times
  const std::int64_t blocks = std::min((count + kBlock - 1) / kBlock, kMostBlocks);
  launch(context, {.blocks = dim3(static_cast<unsigned>(blocks)), .meets = false}, kernel, arguments...);
}

// Whole warps for `width` columns of which each thread takes `columns` or more, up to `most` threads.
constexpr unsigned threads_for(std::int64_t width, std::int64_t columns, unsigned most) {
  const std::int64_t warps = (width + columns * kWarp - 1) / (columns * kWarp);
  return static_cast<unsigned>(std::clamp<std::int64_t>(warps * kWarp, kWarp, most));
}

// A block for each row, in x: y and z end at 65535.
inline dim3 blocks_of_rows(std::int64_t rows) {
  CHECK(rows >= 0 && rows <= std::numeric_limits<std::int32_t>::max(), rows);
  return dim3(static_cast<unsigned>(rows));
}

// For kernels that treat the elements of rows one by one: a block does row blockIdx.x, a thread of it the columns
// threadIdx.x, + blockDim.x, ...
template <class... Parameters, class... Arguments>
void launch_rows(const KernelContext& context, std::int64_t rows, std::int64_t width, void (*kernel)(Parameters...),
                 Arguments... arguments) {
  launch(context, {.blocks = blocks_of_rows(rows), .threads = dim3(threads_for(width, 1, kBlock)), .meets = false},
         kernel, arguments...);
}

// Calls body.operator()<S>() with the storage type S of `dtype`, f32 or bf16.
template <class Body>
void for_device_storage(program::DType dtype, const Body& body) {
  if (dtype == program::DType::kF32) return body.template operator()<float>();
  CHECK(dtype == program::DType::kBf16, static_cast<int>(dtype));
  body.template operator()<Bf16>();
}

// As cpu::for_source_and_result: the same type, or f32 results of bf16 sources.
template <class Body>
void for_device_source_and_result(program::DType source, program::DType result, const Body& body) {
  if (source == program::DType::kBf16 && result == program::DType::kF32) {
    return body.template operator()<Bf16, float>();
  }
  CHECK(source == result, static_cast<int>(source), static_cast<int>(result));
  for_device_storage(source, [&]<class S>() { body.template operator()<S, S>(); });
}

}  // namespace stepcast::kernels::cuda
