// What `run --backend cuda` needs of a machine.
#pragma once

#include "exec/cuda_facts.h"

namespace stepcast::cli {

// Throws Error (kEnvironment) where `ranks` ranks cannot run on this machine's GPUs: no driver, no device, fewer
// devices than ranks, no NCCL between several.
void require_cuda(const exec::CudaFacts& facts, int ranks);

}  // namespace stepcast::cli
