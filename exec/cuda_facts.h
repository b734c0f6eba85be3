// What CUDA says of this machine, as plain data: a program without CUDA reads what one with it has found
// (cuda_probe.h), and says the same of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepcast::exec {

struct CudaDeviceFacts {
  std::string name;
  int major = 0;  // compute capability
  int minor = 0;
  int multiprocessors = 0;
  std::int64_t memory_bytes = 0;
};

// Versions as CUDA and NCCL number them: 13000 is CUDA 13.0, 22809 is NCCL 2.28.9; 0 where there is none.
struct CudaFacts {
  int runtime_version = 0;
  int driver_version = 0;  // the newest CUDA that the driver runs
  int nccl_version = 0;
  int error = 0;  // of cudaGetDeviceCount
  std::string error_text = {};
  std::vector<CudaDeviceFacts> devices = {};
};

// Why ranks cannot run on GPUs here, and what would help.
struct CudaProblem {
  std::string reason;
  std::vector<std::string> help;
};

// Of `ranks` ranks on this machine, each of which needs a GPU of its own; nothing where they can run.
std::optional<CudaProblem> why_no_cuda(const CudaFacts& facts, int ranks);

// "13.0" of 13000.
std::string cuda_version_text(int version);
// "2.28.9" of 22809; before 2.9, NCCL counted hundreds: 2.8.4 was 2804.
std::string nccl_version_text(int version);

// Lines of "key value", and back. Lines of unknown keys are passed over. Throws Error (kEnvironment) where a line's
// value is not what its key says.
std::string to_text(const CudaFacts& facts);
CudaFacts parse_cuda_facts(const std::string& text);

}  // namespace stepcast::exec
