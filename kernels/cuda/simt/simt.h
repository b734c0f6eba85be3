// Blocks of threads on the CPU: runs the kernels of kernels/cuda as a GPU would, one block after the other, for tests
// where there is no GPU. It shows wrong results, reads of shared memory that nobody wrote (it holds NaN at first),
// missing barriers (threads run in another order in each round) and threads that do not meet; not races between blocks,
// and no times.
//
// A thread is a fiber. It runs until it meets others (a barrier, a shuffle) or ends.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <functional>

// NOLINTBEGIN(bugprone-reserved-identifier): CUDA's names are what they are.
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static thread_local
#define __launch_bounds__(...)
// NOLINTEND(bugprone-reserved-identifier)

namespace stepcast::kernels::cuda {

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

// Of the thread that runs; blocks run on the thread that launches them.
inline thread_local dim3 threadIdx;
inline thread_local dim3 blockIdx;
inline thread_local dim3 blockDim;
inline thread_local dim3 gridDim;

namespace simt {

// Runs `body` once for every thread of every block. InternalError when threads of a block wait for others that cannot
// come, or meet although `meets` is false.
void run(dim3 blocks, dim3 threads, std::size_t shared_bytes, bool meets, const std::function<void()>& body);

// The dynamic shared memory of the block that runs.
std::byte* shared_bytes();

// Memory for the op that runs; the next call takes it back.
std::byte* scratch(std::size_t bytes);

void meet_block();
void meet_warp();
// What the thread of lane `lane` of the own warp gave; every thread of the warp calls it. Up to 16 bytes.
void exchange(const void* own, std::size_t bytes, unsigned lane, void* other);
unsigned own_lane();
// Bit i: what lane i gave; every thread of the warp calls it.
unsigned votes(bool own);

template <class T>
T value_of(T own, unsigned lane) {
  T other;
  exchange(&own, sizeof(T), lane, &other);
  return other;
}

}  // namespace simt

// CUDA's names.
// NOLINTBEGIN(bugprone-reserved-identifier)
inline void __syncthreads() { simt::meet_block(); }
inline void __syncwarp() { simt::meet_warp(); }
template <class T>
T __shfl_xor_sync(unsigned, T value, int distance) {
  return simt::value_of(value, simt::own_lane() ^ static_cast<unsigned>(distance));
}
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return simt::value_of(value, static_cast<unsigned>(lane));
}
template <class T>
T __shfl_down_sync(unsigned, T value, unsigned distance) {
  const unsigned lane = simt::own_lane() + distance;
  return simt::value_of(value, lane < 32 ? lane : simt::own_lane());
}

inline unsigned __ballot_sync(unsigned, bool predicate) { return simt::votes(predicate); }
// 1 + the position of the lowest bit that is set; 0 where none is.
inline int __ffs(unsigned bits) { return bits == 0 ? 0 : std::countr_zero(bits) + 1; }
// NOLINTEND(bugprone-reserved-identifier)

}  // namespace stepcast::kernels::cuda
