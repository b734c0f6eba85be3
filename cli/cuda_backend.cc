#include "cli/cuda_backend.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/error.h"

namespace stepcast::cli {

void become_cuda_rank(const Launch& launch) {
  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  const std::string program = (self.parent_path() / "stepcast-rank-cuda").string();
  ::execv(program.c_str(), launch.argv);
  if (errno == ENOENT) {
    throw Error(ErrorKind::kEnvironment, "--backend cuda needs the program " + program + ", which is not there", {},
                {"install the CUDA toolkit and NCCL, then cmake --preset cuda and ninja -C build/cuda",
                 "stepcast doctor says what else is missing", "--backend cpu"});
  }
  throw Error(ErrorKind::kEnvironment, "cannot start " + program + ": " + std::strerror(errno));
}

void require_cuda(const exec::CudaFacts& facts, int ranks) {
  const std::optional<exec::CudaProblem> problem = exec::why_no_cuda(facts, ranks);
  if (!problem) return;
  std::vector<std::string> help = problem->help;
  help.emplace_back("--backend cpu");
  throw Error(ErrorKind::kEnvironment, "--backend cuda cannot run here: " + problem->reason, {}, help);
}

}  // namespace stepcast::cli
