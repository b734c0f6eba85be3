// The NCCL communicators of one rank, and its part in collectives and messages. Sums are NCCL's own, so that their last
// bits depend on the algorithm that it chooses.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "exec/device/comm_layout.h"
#include "exec/device/device.h"

namespace stepcast::exec {

class NcclComms {
 public:
  // `layout` must outlive them. `ids`: by communicator (nccl_ids.h).
  NcclComms(const CommLayout& layout, program::RankId rank, std::shared_ptr<const std::vector<ncclUniqueId>> ids);
  // Waits for nobody: communication under way is ended.
  ~NcclComms();
  NcclComms(const NcclComms&) = delete;
  NcclComms& operator=(const NcclComms&) = delete;

  // Makes the rank's communicators on the current device, in the order of their numbers, as all other ranks do
  // meanwhile; then sends a byte over each link, in their order. NCCL connects two ranks at their first message, and
  // holds the host until both have come: in a step, hosts might wait for each other.
  void connect(cudaStream_t stream);

  void collective(const CollectiveCall& call, cudaStream_t stream);
  void messages(std::span<const Message> messages, cudaStream_t stream);

  // Throws Error (kExecution) when a communicator has failed meanwhile.
  void check();
  // Any thread, any number of times.
  void end_communication();

 private:
  ncclComm_t comm(std::uint32_t communicator) const;
  void gather(const CollectiveCall& call, cudaStream_t stream);
  void scatter(const CollectiveCall& call, void* out, cudaStream_t stream);
  void scatter_columns(const CollectiveCall& call, cudaStream_t stream);
  void exchange_parts(const CollectiveCall& call, cudaStream_t stream);
  std::byte* scratch(std::size_t bytes, cudaStream_t stream);

  const CommLayout& layout_;
  program::RankId rank_;
  std::shared_ptr<const std::vector<ncclUniqueId>> ids_;
  std::mutex mutex_;  // of the list while it is made, checked or aborted
  std::atomic<bool> aborted_{false};
  std::vector<ncclComm_t> comms_;  // by communicator; null where the rank is not a member
  // Where sums lie that then go to columns of a matrix: per stream the latest, the largest, and those before it.
  std::map<cudaStream_t, std::vector<std::pair<std::byte*, std::size_t>>> scratch_;
};

}  // namespace stepcast::exec
