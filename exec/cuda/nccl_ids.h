// The ids by which the members of each communicator find each other: the lowest member makes one, and all get it.
#pragma once

#include <nccl.h>

#include <vector>

#include "exec/device/comm_layout.h"
#include "exec/world.h"

namespace stepcast::exec {

// By communicator. With `world`, whose processes are the ranks and all call it; else this process makes all. Throws
// Error (kExecution).
std::vector<ncclUniqueId> nccl_ids(const CommLayout& layout, World* world);

}  // namespace stepcast::exec
