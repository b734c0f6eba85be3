#include "cli/cuda_backend.h"

#include <optional>

#include "base/error.h"

namespace stepcast::cli {

void require_cuda(const exec::CudaFacts& facts, int ranks) {
  const std::optional<exec::CudaProblem> problem = exec::why_no_cuda(facts, ranks);
  if (!problem) return;
  std::vector<std::string> help = problem->help;
  help.emplace_back("--backend cpu");
  throw Error(ErrorKind::kEnvironment, "--backend cuda cannot run here: " + problem->reason, {}, help);
}

}  // namespace stepcast::cli
