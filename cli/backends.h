// The kernels that `run` executes ranks with. Programs differ in the libraries they link: `stepcast` has the reference
// kernels only, `stepcast-rank` has oneDNN's too.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/plan_run.h"
#include "exec/cuda_facts.h"
#include "exec/launched_rank.h"
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
  // Joins the processes that a launcher has started, by MPI or, of ranks on GPUs, by sockets; null in a program that
  // has neither.
  std::unique_ptr<exec::World> (*world)() = nullptr;
  // What CUDA says of this machine, and ranks on its GPUs; null in a program that does not link it.
  exec::CudaFacts (*cuda_facts)() = nullptr;
  MakeRunner cuda_runner = nullptr;
};

// Paths of the programs that ranks are: `stepcast-rank` for `--backend cpu`, `stepcast-rank-cuda` for `--backend cuda`,
// this one for the reference; `stepcast-rank-mpi` for ranks that are processes on cores. Throw Error (kEnvironment)
// where it is not built.
std::string thread_rank_program(const Launch& launch, const std::string& backend);
std::string mpi_rank_program();

// The launcher that has started this process as one of several: "mpirun" or "srun"; empty where there is none.
std::string launcher_here();
// What torchrun or srun says of this process, which is how ranks on GPUs find each other.
std::optional<exec::LaunchedRank> gpu_launch();
// This process's number of those, before MPI has started; none where the launcher does not say.
std::optional<std::size_t> launcher_rank();

// mpirun and its arguments that start `ranks` of `program` on this machine; what follows are the program's.
std::vector<std::string> mpirun_words(const std::string& program, std::size_t ranks);

}  // namespace stepcast::cli
