// CUDA_TRY(call): a CUDA call that fails is an Error (kExecution) with its text, file and line.
#pragma once

#include <cuda_runtime_api.h>

#include "base/error.h"

namespace stepcast::kernels::cuda {

inline void require_success(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  throw Error(ErrorKind::kExecution,
              std::string(call) + ": " + cudaGetErrorString(status) + " (" + file + ":" + std::to_string(line) + ")");
}

}  // namespace stepcast::kernels::cuda

#define CUDA_TRY(call) ::stepcast::kernels::cuda::require_success((call), #call, __FILE__, __LINE__)
