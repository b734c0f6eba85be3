// The kernels that `run` executes ranks with. Programs differ in the libraries they link: `stepcast` has the reference
// kernels only, `stepcast-rank` has oneDNN's too.
#pragma once

#include <memory>
#include <string>

#include "exec/cuda_facts.h"
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
  // What CUDA says of this machine; null in a program that does not link it.
  exec::CudaFacts (*cuda_facts)() = nullptr;
};

// Becomes the program `stepcast-rank` beside this one, with the same arguments; returns only by an Error
// (kEnvironment), when there is none.
[[noreturn]] void become_rank_program(const Launch& launch);

// The launcher that has started this process as one of several: "mpirun" or "srun"; empty where there is none.
std::string launcher_here();

// Becomes `stepcast-rank-mpi` beside this program, under the launcher that is here.
[[noreturn]] void become_mpi_rank(const Launch& launch);
// Starts `ranks` of it on this machine under mpirun, with the same arguments, and gives their exit code.
int run_mpi_ranks(const Launch& launch, int ranks);

}  // namespace stepcast::cli
