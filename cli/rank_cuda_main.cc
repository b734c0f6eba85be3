// The program `stepcast-rank-cuda`: one or more ranks on the GPUs of this machine. `stepcast run --backend cuda`
// becomes it.
#include "base/heap.h"
#include "cli/command_line.h"
#include "cli/probe.h"
#include "exec/cuda_probe.h"

int main(int argc, char** argv) {
  if (stepcast::cli::is_probe(argc, argv)) {
    return stepcast::cli::answer_probe(stepcast::exec::to_text(stepcast::exec::probe_cuda()));
  }
  stepcast::prepare_heap();
  return stepcast::cli::run_command_line({.argc = argc, .argv = argv, .cuda_facts = &stepcast::exec::probe_cuda});
}
