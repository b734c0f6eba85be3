// Memory of a GPU with a guard on both sides, and what else of CUDA the check is written with.
#pragma once

#include <cublas_v2.h>

#include <cstddef>
#include <string>

#include "kernels/cuda/cuda_try.h"

namespace stepcast::device_check {

// Owns device memory of `bytes`, between guards of known bytes.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::size_t bytes);
  ~GuardedMemory();
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory& operator=(GuardedMemory&&) = delete;
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  void* data() const { return memory_ + kGuard; }
  std::size_t bytes() const { return bytes_; }
  void copy_in(const void* from);
  void copy_out(void* to) const;
  // Throws Error (kExecution) naming `what` where a byte of a guard has changed.
  void check_guards(const std::string& what) const;

 private:
  static constexpr std::size_t kGuard = 4096;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

// Owns a stream of the current device.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }
  void wait() const;

 private:
  cudaStream_t stream_ = nullptr;
};

// Owns two events of a stream, before and behind what is timed.
class Stopwatch {
 public:
  explicit Stopwatch(cudaStream_t stream);
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  void start();
  double seconds();  // since start(), once the stream has come so far

 private:
  cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

// bf16 matmul of n x n by cuBLAS: FLOP/s of the best of several runs.
double best_matmul_rate(cudaStream_t stream, int n);
// Bytes read plus written, per second, of the best of several copies of `bytes` on the device.
double best_copy_rate(cudaStream_t stream, std::size_t bytes);

}  // namespace stepcast::device_check
