// Sums and maxima over the threads of a warp and of a block, in an order that depends on the block's size alone, so
// that the same operands give the same bytes.
#pragma once

#include "kernels/cuda/launch.h"

namespace stepcast::kernels::cuda {

struct Sum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

// Of the values of each kLanes neighbouring lanes of a warp, a power of two, on each of these; of all 32 unless said
// otherwise. All lanes of the warp call it.
template <class Combine, unsigned kLanes = kWarp, class T>
__device__ T over_warp(T value) {
  for (unsigned distance = kLanes / 2; distance > 0; distance /= 2) {
    value = Combine()(value, __shfl_xor_sync(0xffffffffU, value, static_cast<int>(distance)));
  }
  return value;
}

// Of the values of all threads of a block whose size is a multiple of 32 and at most 1024, on every thread. `neutral`
// changes nothing. All threads call it.
template <class Combine, class T>
__device__ T over_block(T value, T neutral) {
  __shared__ T of_warps[kWarp];
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned warp = threadIdx.x / kWarp;
  value = over_warp<Combine>(value);
  __syncthreads();  // an earlier call's values have been read
  if (lane == 0) of_warps[warp] = value;
  __syncthreads();
  return over_warp<Combine>(lane < blockDim.x / kWarp ? of_warps[lane] : neutral);
}

template <class T>
__device__ T block_sum(T value) {
  return over_block<Sum>(value, T(0));
}

// A block for each row, whose threads sum over its `width` columns; a few columns a thread, so that narrow rows take a
// warp.
inline Grid grid_over_rows(std::int64_t rows, std::int64_t width) {
  return {.blocks = blocks_of_rows(rows), .threads = dim3(threads_for(width, 8, 2 * kBlock))};
}

}  // namespace stepcast::kernels::cuda
