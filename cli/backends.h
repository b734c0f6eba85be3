// The kernels that `run` executes ranks with. Programs differ in the libraries they link: `stepcast` has the reference
// kernels only, `stepcast-rank` has oneDNN's too.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/world.h"
#include "kernels/kernel.h"

namespace stepcast::cli {

// How a main was called, and what it links.
struct Launch {
  int argc = 0;
  char** argv = nullptr;
  // Of `--backend cpu`; null in a program that does not link them.
  kernels::Kernel (*cpu_kernel_of)(program::OpKind) = nullptr;
  std::unique_ptr<kernels::StreamState> (*cpu_state)(int threads) = nullptr;
  // Joins the processes that a launcher has started; null in a program that does not link MPI.
  std::unique_ptr<exec::World> (*world)() = nullptr;
};

// Paths of the programs that ranks are: `stepcast-rank` for `--backend cpu`, this one for other backends;
// `stepcast-rank-mpi` for ranks that are processes. Throw Error (kEnvironment) where it is not built.
std::string thread_rank_program(const Launch& launch, const std::string& backend);
std::string mpi_rank_program();

// The launcher that has started this process as one of several: "mpirun" or "srun"; empty where there is none.
std::string launcher_here();
// This process's number of those, before MPI has started; none where the launcher does not say.
std::optional<std::size_t> launcher_rank();

// mpirun and its arguments that start `ranks` of `program` on this machine; what follows are the program's.
std::vector<std::string> mpirun_words(const std::string& program, std::size_t ranks);

}  // namespace stepcast::cli
