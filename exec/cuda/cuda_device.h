// A GPU of NVIDIA as a Device: CUDA streams and events, memory of cudaMalloc, communication by NCCL.
//
// A graph is captured anew in every step, as addresses may differ, and updates the one launched before. While a graph
// is captured an event is recorded twice: for those in the graph who wait for it, and as a node of the graph that tells
// the time.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/cuda/nccl_comms.h"
#include "exec/device/device.h"

namespace stepcast::exec {

// Memory of the host that is not paged out.
class PinnedMemory : public PhysicalMemory {
 public:
  std::byte* allocate(std::int64_t bytes) override;
  void release(std::byte* memory, std::int64_t bytes) override;
  void fill(std::byte* memory, int value, std::int64_t bytes) override;
  std::string room() const override;
};

class CudaDevice : public Device {
 public:
  // GPU number `ordinal` of those that this process sees, for one rank. Throws Error (kExecution).
  CudaDevice(int ordinal, const CommLayout& layout, program::RankId rank,
             std::shared_ptr<const std::vector<ncclUniqueId>> ids);
  ~CudaDevice() override;

  std::byte* allocate(std::int64_t bytes) override;
  void release(std::byte* memory, std::int64_t bytes) override;
  void fill(std::byte* memory, int value, std::int64_t bytes) override;
  std::string room() const override;
  PhysicalMemory& host_memory() override { return pinned_; }

  void connect() override;
  void begin_thread() override;

  void fill(program::Stream s, std::byte* data, int value, std::int64_t bytes) override;
  void run(program::Stream s, kernels::Kernel kernel, const kernels::KernelContext& context) override;
  void collective(program::Stream s, const CollectiveCall& call) override;
  void messages(program::Stream s, std::span<const Message> messages) override;

  void record(program::Stream s, EventNumber event) override;
  void wait(program::Stream s, EventNumber event) override;
  bool happened(EventNumber event) override;
  bool wait_for(EventNumber event, Duration limit) override;
  Duration elapsed(EventNumber from, EventNumber to) override;

  void begin_graph(std::uint32_t graph, std::span<const program::Stream> streams) override;
  void end_graph() override;

  void copy_in(std::byte* to, const std::byte* from, std::int64_t bytes) override;
  void copy_out(std::byte* to, const std::byte* from, std::int64_t bytes) override;

  void check_communication() override { comms_.check(); }
  void end_communication() override { comms_.end_communication(); }

 private:
  struct Event {
    cudaEvent_t timed = nullptr;
    cudaEvent_t inner = nullptr;  // in a graph that is captured
  };
  struct Graph {
    std::uint32_t number = 0;
    std::vector<cudaStream_t> streams;  // the first one is captured, the others join it
  };

  cudaStream_t stream(program::Stream s) const { return streams_[static_cast<std::size_t>(s)]; }
  void use() const;
  Event& event(EventNumber number);
  void first_waits_for_others();
  void others_wait_for_first();
  void launch(cudaGraph_t captured);
  void copy(std::byte* to, const std::byte* from, std::int64_t bytes);

  int ordinal_;
  PinnedMemory pinned_;
  std::array<cudaStream_t, program::kStreamCount> streams_{};
  cudaStream_t own_ = nullptr;  // of fills and copies that the host waits for
  std::array<std::unique_ptr<kernels::StreamState>, program::kStreamCount> states_;
  std::vector<Event> events_;
  cudaEvent_t meeting_ = nullptr;
  Graph graph_;
  bool capturing_ = false;
  std::map<std::uint32_t, cudaGraphExec_t> launched_;  // by graph number
  NcclComms comms_;
};

}  // namespace stepcast::exec
