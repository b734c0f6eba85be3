#include "cli/backends.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/error.h"

namespace stepcast::cli {
namespace {

// A program that is built beside this one, if it is.
std::string program_here(const std::string& name, const std::string& what, const std::vector<std::string>& help) {
  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  const std::filesystem::path program = self.parent_path() / name;
  if (!unknown && std::filesystem::exists(program, unknown)) return program.string();
  throw Error(ErrorKind::kEnvironment, what + " needs the program " + program.string() + ", which is not there", {},
              help);
}

[[noreturn]] void become(const std::string& program, char** argv) {
  ::execv(program.c_str(), argv);
  throw Error(ErrorKind::kEnvironment, "cannot start " + program + ": " + std::strerror(errno));
}

std::string mpi_rank_program() {
  return program_here("stepcast-rank-mpi", "--ranks-as processes",
                      {"install Open MPI (Debian: libopenmpi-dev) and build again", "--ranks-as threads"});
}

// The code of a child that has ended: its own, or that of a real run that failed.
int exit_code_of(int status) {
  constexpr int kInterrupted = 130;
  if (!WIFEXITED(status)) return static_cast<int>(ErrorKind::kExecution);
  const int code = WEXITSTATUS(status);
  const bool own = code <= static_cast<int>(ErrorKind::kExecution) || code == kInterrupted;
  return own ? code : static_cast<int>(ErrorKind::kExecution);
}

}  // namespace

void become_rank_program(const Launch& launch) {
  become(program_here(
             "stepcast-rank", "--backend cpu",
             {"install oneDNN (Debian: libdnnl-dev) and build again", "--backend reference: slow, readable kernels"}),
         launch.argv);
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

void become_mpi_rank(const Launch& launch) { become(mpi_rank_program(), launch.argv); }

int run_mpi_ranks(const Launch& launch, int ranks) {
  const std::string program = mpi_rank_program();
  std::vector<std::string> words = {"mpirun", "--oversubscribe", "--bind-to", "none", "-n", std::to_string(ranks)};
  // Ranks that share cores must let each other run.
  words.insert(words.end(), {"--mca", "mpi_yield_when_idle", "1"});
  if (::geteuid() == 0) words.emplace_back("--allow-run-as-root");
  words.push_back(program);
  words.insert(words.end(), launch.argv + 1, launch.argv + launch.argc);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) break;
  }
  if (child < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 127)) {
    throw Error(ErrorKind::kEnvironment, "cannot start mpirun", {},
                {"install Open MPI (Debian: openmpi-bin)", "--ranks-as threads"});
  }
  return exit_code_of(status);
}

}  // namespace stepcast::cli
