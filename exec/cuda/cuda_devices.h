// The GPUs of a plan's ranks, for DeviceExecutor. Without a CUDA header: for the program that runs ranks.
#pragma once

#include <functional>

#include "exec/device/device_executor.h"
#include "exec/world.h"

namespace stepcast::exec {

// GPU `ordinal(rank)` for each rank executed here. With `world`, whose processes are the ranks and all call it, a rank
// is a process; else all ranks are here. `world` must outlive them. Throws Error (kExecution) where NCCL fails.
DeviceOptions cuda_devices(const program::Program& p, std::function<int(program::RankId)> ordinal, World* world);

}  // namespace stepcast::exec
