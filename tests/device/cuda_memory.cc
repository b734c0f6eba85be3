#include "tests/device/cuda_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace stepcast::device_check {
namespace {

constexpr int kGuardByte = 0xA5;
constexpr int kRuns = 10;

void require_cublas(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(ErrorKind::kExecution, std::string(call) + ": cuBLAS status " + std::to_string(status));
}

// Owns a handle.
class Cublas {
 public:
  explicit Cublas(cudaStream_t stream) {
    require_cublas(cublasCreate(&handle_), "cublasCreate");
    require_cublas(cublasSetStream(handle_, stream), "cublasSetStream");
  }
  ~Cublas() { cublasDestroy(handle_); }
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;
  cublasHandle_t get() const { return handle_; }

 private:
  cublasHandle_t handle_ = nullptr;
};

}  // namespace

GuardedMemory::GuardedMemory(std::size_t bytes) : bytes_(bytes) {
  void* memory = nullptr;
  CUDA_TRY(cudaMalloc(&memory, bytes + 2 * kGuard));
  memory_ = static_cast<std::byte*>(memory);
  CUDA_TRY(cudaMemset(memory_, kGuardByte, bytes + 2 * kGuard));
}

GuardedMemory::~GuardedMemory() {
  if (memory_ != nullptr) cudaFree(memory_);
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}

void GuardedMemory::copy_in(const void* from) { CUDA_TRY(cudaMemcpy(data(), from, bytes_, cudaMemcpyHostToDevice)); }

void GuardedMemory::copy_out(void* to) const { CUDA_TRY(cudaMemcpy(to, data(), bytes_, cudaMemcpyDeviceToHost)); }

void GuardedMemory::check_guards(const std::string& what) const {
  std::vector<unsigned char> guard(kGuard);
  const std::byte* const guards[] = {memory_, memory_ + kGuard + bytes_};
  for (const std::byte* at : guards) {
    CUDA_TRY(cudaMemcpy(guard.data(), at, kGuard, cudaMemcpyDeviceToHost));
    if (std::all_of(guard.begin(), guard.end(), [](unsigned char byte) { return byte == kGuardByte; })) continue;
    throw Error(ErrorKind::kExecution, what + ": bytes beside it were written");
  }
}

Stream::Stream() { CUDA_TRY(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }

Stream::~Stream() { cudaStreamDestroy(stream_); }

void Stream::wait() const { CUDA_TRY(cudaStreamSynchronize(stream_)); }

Stopwatch::Stopwatch(cudaStream_t stream) : stream_(stream) {
  CUDA_TRY(cudaEventCreate(&begin_));
  CUDA_TRY(cudaEventCreate(&end_));
}

Stopwatch::~Stopwatch() {
  cudaEventDestroy(begin_);
  cudaEventDestroy(end_);
}

void Stopwatch::start() { CUDA_TRY(cudaEventRecord(begin_, stream_)); }

double Stopwatch::seconds() {
  CUDA_TRY(cudaEventRecord(end_, stream_));
  CUDA_TRY(cudaEventSynchronize(end_));
  float milliseconds = 0;
  CUDA_TRY(cudaEventElapsedTime(&milliseconds, begin_, end_));
  return static_cast<double>(milliseconds) / 1e3;
}

double best_matmul_rate(cudaStream_t stream, int n) {
  const std::size_t bytes = static_cast<std::size_t>(n) * static_cast<std::size_t>(n) * 2;
  const GuardedMemory a(bytes);
  const GuardedMemory b(bytes);
  const GuardedMemory c(bytes);
  // Bytes 0x3c3c are 0.0115 in bf16: neither zeros, which take less power, nor infinities.
  for (const GuardedMemory* matrix : {&a, &b}) CUDA_TRY(cudaMemset(matrix->data(), 0x3c, bytes));
  const Cublas cublas(stream);
  const float one = 1;
  const float zero = 0;
  Stopwatch watch(stream);
  double best = 1e30;
  for (int run = 0; run < kRuns; ++run) {
    watch.start();
    require_cublas(
        cublasGemmEx(cublas.get(), CUBLAS_OP_T, CUBLAS_OP_N, n, n, n, &one, a.data(), CUDA_R_16BF, n, b.data(),
                     CUDA_R_16BF, n, &zero, c.data(), CUDA_R_16BF, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
    best = std::min(best, watch.seconds());
  }
  const double extent = n;
  return 2 * extent * extent * extent / best;
}

double best_copy_rate(cudaStream_t stream, std::size_t bytes) {
  const GuardedMemory from(bytes);
  const GuardedMemory to(bytes);
  Stopwatch watch(stream);
  double best = 1e30;
  for (int run = 0; run < kRuns; ++run) {
    watch.start();
    CUDA_TRY(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, stream));
    best = std::min(best, watch.seconds());
  }
  return 2 * static_cast<double>(bytes) / best;
}

}  // namespace stepcast::device_check
