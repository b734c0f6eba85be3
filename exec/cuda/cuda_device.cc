// See cuda_device.h. Streams are non-blocking: the legacy stream, which others wait for, is never used.
#include "exec/cuda/cuda_device.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/quantity.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/cuda_try.h"

namespace stepcast::exec {
namespace {

using Clock = std::chrono::steady_clock;

// The host asks without a pause at first, for ops that last microseconds.
constexpr std::chrono::microseconds kSpin{100};
constexpr std::chrono::microseconds kPause{20};

cudaEvent_t make_event(unsigned flags) {
  cudaEvent_t event = nullptr;
  CUDA_TRY(cudaEventCreateWithFlags(&event, flags));
  return event;
}

cudaStream_t make_stream() {
  cudaStream_t stream = nullptr;
  CUDA_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

// What is not an error stays CUDA's last error otherwise, and whoever looks for errors of a launch would find it.
void forget_last_error() { static_cast<void>(cudaGetLastError()); }

}  // namespace

std::byte* PinnedMemory::allocate(std::int64_t bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaMallocHost(&memory, static_cast<std::size_t>(bytes));
  if (status == cudaErrorMemoryAllocation) {
    forget_last_error();
    return nullptr;
  }
  CUDA_TRY(status);
  return static_cast<std::byte*>(memory);
}

void PinnedMemory::release(std::byte* memory, std::int64_t) { cudaFreeHost(memory); }

void PinnedMemory::fill(std::byte* memory, int value, std::int64_t bytes) {
  std::memset(memory, value, static_cast<std::size_t>(bytes));
}

std::string PinnedMemory::room() const { return "pinned " + HostMemory().room(); }

CudaDevice::CudaDevice(int ordinal, const CommLayout& layout, program::RankId rank,
                       std::shared_ptr<const std::vector<ncclUniqueId>> ids)
    : ordinal_(ordinal), comms_(layout, rank, std::move(ids)) {
  use();
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    streams_[s] = make_stream();
    states_[s] = kernels::cuda_state(streams_[s]);
  }
  own_ = make_stream();
  meeting_ = make_event(cudaEventDisableTiming);
}

// Errors have been reported, or do not matter any more.
CudaDevice::~CudaDevice() {
  cudaSetDevice(ordinal_);
  comms_.end_communication();
  for (const auto& [number, executable] : launched_) cudaGraphExecDestroy(executable);
  for (const Event& e : events_) {
    if (e.timed != nullptr) cudaEventDestroy(e.timed);
    if (e.inner != nullptr) cudaEventDestroy(e.inner);
  }
  if (meeting_ != nullptr) cudaEventDestroy(meeting_);
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    states_[s].reset();
    if (streams_[s] != nullptr) cudaStreamDestroy(streams_[s]);
  }
  if (own_ != nullptr) cudaStreamDestroy(own_);
}

void CudaDevice::use() const { CUDA_TRY(cudaSetDevice(ordinal_)); }

std::byte* CudaDevice::allocate(std::int64_t bytes) {
  use();
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, static_cast<std::size_t>(bytes));
  if (status == cudaErrorMemoryAllocation) {
    forget_last_error();
    return nullptr;
  }
  CUDA_TRY(status);
  return static_cast<std::byte*>(memory);
}

void CudaDevice::release(std::byte* memory, std::int64_t) {
  cudaSetDevice(ordinal_);
  cudaFree(memory);
}

void CudaDevice::fill(std::byte* memory, int value, std::int64_t bytes) {
  use();
  CUDA_TRY(cudaMemsetAsync(memory, value, static_cast<std::size_t>(bytes), own_));
  CUDA_TRY(cudaStreamSynchronize(own_));
}

std::string CudaDevice::room() const {
  use();
  std::size_t free = 0;
  std::size_t total = 0;
  CUDA_TRY(cudaMemGetInfo(&free, &total));
  return "GPU " + std::to_string(ordinal_) + " has " + format_bytes(Bytes(static_cast<std::int64_t>(total))) + ", " +
         format_bytes(Bytes(static_cast<std::int64_t>(free))) + " of them free";
}

void CudaDevice::connect() { comms_.connect(own_); }

void CudaDevice::begin_thread() { use(); }

void CudaDevice::fill(program::Stream s, std::byte* data, int value, std::int64_t bytes) {
  CUDA_TRY(cudaMemsetAsync(data, value, static_cast<std::size_t>(bytes), stream(s)));
}

void CudaDevice::run(program::Stream s, kernels::Kernel kernel, const kernels::KernelContext& context) {
  kernels::KernelContext own = context;
  own.state = states_[static_cast<std::size_t>(s)].get();
  kernel(own);
}

void CudaDevice::collective(program::Stream s, const CollectiveCall& call) { comms_.collective(call, stream(s)); }

void CudaDevice::messages(program::Stream s, std::span<const Message> messages) {
  comms_.messages(messages, stream(s));
}

CudaDevice::Event& CudaDevice::event(EventNumber number) {
  if (number >= events_.size()) events_.resize(number + 1);
  if (events_[number].timed == nullptr) events_[number].timed = make_event(cudaEventDefault);
  return events_[number];
}

void CudaDevice::record(program::Stream s, EventNumber number) {
  Event& e = event(number);
  if (!capturing_) {
    CUDA_TRY(cudaEventRecord(e.timed, stream(s)));
    return;
  }
  if (e.inner == nullptr) e.inner = make_event(cudaEventDisableTiming);
  CUDA_TRY(cudaEventRecordWithFlags(e.timed, stream(s), cudaEventRecordExternal));
  CUDA_TRY(cudaEventRecord(e.inner, stream(s)));
}

void CudaDevice::wait(program::Stream s, EventNumber number) {
  const Event& e = event(number);
  CUDA_TRY(cudaStreamWaitEvent(stream(s), capturing_ ? e.inner : e.timed, 0));
}

bool CudaDevice::happened(EventNumber number) {
  const cudaError_t status = cudaEventQuery(event(number).timed);
  if (status == cudaErrorNotReady) {
    forget_last_error();
    return false;
  }
  CUDA_TRY(status);
  return true;
}

bool CudaDevice::wait_for(EventNumber number, Duration limit) {
  const Clock::time_point start = Clock::now();
  const std::chrono::nanoseconds most(limit.ps / 1000);
  for (;;) {
    if (happened(number)) return true;
    const auto waited = Clock::now() - start;
    if (waited >= most) return false;
    if (waited >= kSpin) std::this_thread::sleep_for(kPause);
  }
}

Duration CudaDevice::elapsed(EventNumber from, EventNumber to) {
  float milliseconds = 0;
  CUDA_TRY(cudaEventElapsedTime(&milliseconds, event(from).timed, event(to).timed));
  return Duration(static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e9));
}

void CudaDevice::first_waits_for_others() {
  for (std::size_t i = 1; i < graph_.streams.size(); ++i) {
    CUDA_TRY(cudaEventRecord(meeting_, graph_.streams[i]));
    CUDA_TRY(cudaStreamWaitEvent(graph_.streams.front(), meeting_, 0));
  }
}

void CudaDevice::others_wait_for_first() {
  CUDA_TRY(cudaEventRecord(meeting_, graph_.streams.front()));
  for (std::size_t i = 1; i < graph_.streams.size(); ++i) {
    CUDA_TRY(cudaStreamWaitEvent(graph_.streams[i], meeting_, 0));
  }
}

void CudaDevice::begin_graph(std::uint32_t number, std::span<const program::Stream> streams) {
  CHECK(!capturing_ && !streams.empty(), number);
  graph_ = {.number = number, .streams = {}};
  for (const program::Stream s : streams) graph_.streams.push_back(stream(s));
  first_waits_for_others();
  // Relaxed: blocks may be taken and other events asked about meanwhile.
  CUDA_TRY(cudaStreamBeginCapture(graph_.streams.front(), cudaStreamCaptureModeRelaxed));
  capturing_ = true;
  others_wait_for_first();
}

void CudaDevice::end_graph() {
  CHECK(capturing_);
  first_waits_for_others();
  cudaGraph_t captured = nullptr;
  CUDA_TRY(cudaStreamEndCapture(graph_.streams.front(), &captured));
  capturing_ = false;
  launch(captured);
  others_wait_for_first();
}

void CudaDevice::launch(cudaGraph_t captured) {
  cudaGraphExec_t& executable = launched_[graph_.number];
  cudaGraphExecUpdateResultInfo why{};
  if (executable != nullptr && cudaGraphExecUpdate(executable, captured, &why) != cudaSuccess) {
    forget_last_error();  // another topology: made anew
    CUDA_TRY(cudaGraphExecDestroy(executable));
    executable = nullptr;
  }
  if (executable == nullptr) CUDA_TRY(cudaGraphInstantiate(&executable, captured, 0));
  CUDA_TRY(cudaGraphDestroy(captured));
  CUDA_TRY(cudaGraphLaunch(executable, graph_.streams.front()));
}

void CudaDevice::copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  use();
  if (bytes == 0) return;
  CUDA_TRY(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, own_));
  CUDA_TRY(cudaStreamSynchronize(own_));
}

void CudaDevice::copy_in(std::byte* to, const std::byte* from, std::int64_t bytes) { copy(to, from, bytes); }

void CudaDevice::copy_out(std::byte* to, const std::byte* from, std::int64_t bytes) { copy(to, from, bytes); }

}  // namespace stepcast::exec
