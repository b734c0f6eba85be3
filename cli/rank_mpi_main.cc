// The program `stepcast-rank-mpi`: one rank of several processes, with every backend's kernels.
#include "base/heap.h"
#include "cli/command_line.h"
#include "cli/probe.h"
#include "exec/mpi/mpi_world.h"
#include "kernels/cpu_fast/fast.h"

int main(int argc, char** argv) {
  if (stepcast::cli::is_probe(argc, argv)) return stepcast::cli::answer_probe(stepcast::kernels::fast_library());
  stepcast::prepare_heap();
  const auto world = []() -> std::unique_ptr<stepcast::exec::World> {
    return std::make_unique<stepcast::exec::MpiWorld>();
  };
  return stepcast::cli::run_command_line(
      {argc, argv, &stepcast::kernels::fast_kernel, &stepcast::kernels::fast_state, world});
}
