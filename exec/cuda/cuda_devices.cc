// See cuda_devices.h.
#include "exec/cuda/cuda_devices.h"

#include <memory>
#include <utility>

#include "exec/cuda/cuda_device.h"
#include "exec/cuda/nccl_ids.h"

namespace stepcast::exec {

DeviceOptions cuda_devices(const program::Program& p, std::function<int(program::RankId)> ordinal, World* world) {
  const auto ids = std::make_shared<const std::vector<ncclUniqueId>>(nccl_ids(CommLayout(p), world));
  DeviceOptions options;
  options.open = [ids, ordinal = std::move(ordinal)](program::RankId rank, const CommLayout& layout) {
    return std::make_unique<CudaDevice>(ordinal(rank), layout, rank, ids);
  };
  if (world != nullptr) {
    options.meet = [world] {
      world->gather({});
      world->broadcast({});
    };
  }
  return options;
}

}  // namespace stepcast::exec
