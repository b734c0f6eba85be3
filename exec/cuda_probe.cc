// See cuda_probe.h. Without a driver cudaDriverGetVersion succeeds with 0, and cudaGetDeviceCount fails with 35 and
// leaves the count as it was.
#include "exec/cuda_probe.h"

#include <cuda_runtime_api.h>

#ifdef STEPCAST_NCCL
#include <nccl.h>
#endif

namespace stepcast::exec {
namespace {

int nccl_version() {
  int version = 0;
#ifdef STEPCAST_NCCL
  if (ncclGetVersion(&version) != ncclSuccess) version = 0;
#endif
  return version;
}

}  // namespace

CudaFacts probe_cuda() {
  CudaFacts facts;
  facts.nccl_version = nccl_version();
  if (cudaRuntimeGetVersion(&facts.runtime_version) != cudaSuccess) facts.runtime_version = CUDART_VERSION;
  if (cudaDriverGetVersion(&facts.driver_version) != cudaSuccess) facts.driver_version = 0;
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    facts.error = static_cast<int>(error);
    facts.error_text = cudaGetErrorString(error);
    return facts;
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties = {};
    if (cudaGetDeviceProperties(&properties, i) != cudaSuccess) continue;
    facts.devices.push_back({.name = properties.name,
                             .major = properties.major,
                             .minor = properties.minor,
                             .multiprocessors = properties.multiProcessorCount,
                             .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem)});
  }
  return facts;
}

}  // namespace stepcast::exec
