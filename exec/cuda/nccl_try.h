// NCCL_TRY(call): an NCCL call that fails is an Error (kExecution) with its text, file and line.
#pragma once

#include <nccl.h>

#include <string>

#include "base/error.h"

namespace stepcast::exec {

inline void require_nccl(ncclResult_t status, const char* call, const char* file, int line) {
  if (status == ncclSuccess) return;
  const char* last = ncclGetLastError(nullptr);
  throw Error(ErrorKind::kExecution, std::string(call) + ": " + ncclGetErrorString(status) +
                                         (last != nullptr && *last != '\0' ? std::string(", ") + last : "") + " (" +
                                         file + ":" + std::to_string(line) + ")");
}

}  // namespace stepcast::exec

#define NCCL_TRY(call) ::stepcast::exec::require_nccl((call), #call, __FILE__, __LINE__)
