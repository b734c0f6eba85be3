#include "cli/backends.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/error.h"

namespace stepcast::cli {
namespace {

std::filesystem::path self_program() {
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self/exe", unknown);
}

// A program that is built beside this one, if it is.
std::string program_here(const std::string& name, const std::string& what, const std::vector<std::string>& help) {
  std::error_code unknown;
  const std::filesystem::path program = self_program().parent_path() / name;
  if (std::filesystem::exists(program, unknown)) return program.string();
  throw Error(ErrorKind::kEnvironment, what + " needs the program " + program.string() + ", which is not there", {},
              help);
}

}  // namespace

std::string thread_rank_program(const Launch& launch, const std::string& backend) {
  if (backend == "cuda" && launch.cuda_runner == nullptr) {
    return program_here("stepcast-rank-cuda", "--backend cuda",
                        {"install the CUDA toolkit and NCCL, then cmake --preset cuda and ninja -C build/cuda",
                         "stepcast doctor says what else is missing", "--backend cpu"});
  }
  if (backend != "cpu" || launch.cpu_kernel_of != nullptr) return self_program().string();
  return program_here(
      "stepcast-rank", "--backend cpu",
      {"install oneDNN (Debian: libdnnl-dev) and build again", "--backend reference: slow, readable kernels"});
}

std::string mpi_rank_program() {
  return program_here("stepcast-rank-mpi", "--ranks-as processes",
                      {"install Open MPI (Debian: libopenmpi-dev) and build again", "--ranks-as threads"});
}

std::string launcher_here() {
  const auto several = [](const char* size) {
    const char* text = std::getenv(size);
    return text != nullptr && std::atoi(text) > 1;
  };
  if (several("OMPI_COMM_WORLD_SIZE")) return "mpirun";
  // A batch script sees the tasks too, but only what srun starts has a number of its own.
  if (std::getenv("PMIX_RANK") != nullptr && several("SLURM_NTASKS")) return "srun";
  return "";
}

std::optional<exec::LaunchedRank> gpu_launch() {
  return exec::launched_rank([](const char* name) -> const char* { return std::getenv(name); });
}

std::optional<std::size_t> launcher_rank() {
  for (const char* name : {"PMIX_RANK", "OMPI_COMM_WORLD_RANK"}) {
    const char* text = std::getenv(name);
    if (text != nullptr && *text >= '0' && *text <= '9') return static_cast<std::size_t>(std::atoi(text));
  }
  return std::nullopt;
}

std::vector<std::string> mpirun_words(const std::string& program, std::size_t ranks) {
  std::vector<std::string> words = {"mpirun", "--oversubscribe", "--bind-to", "none", "-n", std::to_string(ranks)};
  // Ranks that share cores must let each other run.
  words.insert(words.end(), {"--mca", "mpi_yield_when_idle", "1"});
  if (::geteuid() == 0) words.emplace_back("--allow-run-as-root");
  words.push_back(program);
  return words;
}

}  // namespace stepcast::cli
