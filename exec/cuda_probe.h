// Asks CUDA what this machine has. Of the library stepcast_cuda_probe, which is there with STEPCAST_CUDA only.
#pragma once

#include "exec/cuda_facts.h"

namespace stepcast::exec {

// Works without a driver and without a GPU: what fails is part of the answer.
CudaFacts probe_cuda();

}  // namespace stepcast::exec
