// `run --backend cuda`: the program `stepcast-rank-cuda` beside this one links CUDA and NCCL; `stepcast` does not.
#pragma once

#include "cli/backends.h"
#include "exec/cuda_facts.h"

namespace stepcast::cli {

// Becomes `stepcast-rank-cuda` beside this program, with the same arguments. Returns only by an Error (kEnvironment):
// where it is not built, or cannot be executed.
[[noreturn]] void become_cuda_rank(const Launch& launch);

// Throws Error (kEnvironment) where `ranks` ranks cannot run on this machine's GPUs: no driver, no device, fewer
// devices than ranks, no NCCL between several.
void require_cuda(const exec::CudaFacts& facts, int ranks);

}  // namespace stepcast::cli
