// The program `stepcast-rank`: the same commands, with oneDNN's kernels. `stepcast run --backend cpu` becomes it, so
// that nothing else pays for loading that library at every start.
#include "base/heap.h"
#include "cli/command_line.h"
#include "cli/probe.h"
#include "kernels/cpu_fast/fast.h"

int main(int argc, char** argv) {
  if (stepcast::cli::is_probe(argc, argv)) return stepcast::cli::answer_probe(stepcast::kernels::fast_library());
  stepcast::prepare_heap();
  return stepcast::cli::run_command_line({argc, argv, &stepcast::kernels::fast_kernel, &stepcast::kernels::fast_state});
}
