// The program `stepcast-rank-cuda`: one or more ranks on the GPUs of this machine. `stepcast run --backend cuda` starts
// it.
#include "base/check.h"
#include "base/heap.h"
#include "cli/command_line.h"
#include "cli/probe.h"
#include "exec/cuda/cuda_devices.h"
#include "exec/cuda_probe.h"
#include "exec/tcp_world.h"
#include "kernels/cuda/cuda.h"

namespace {

using stepcast::exec::StepRunner;

std::unique_ptr<stepcast::exec::World> join_launched() {
  const auto launched = stepcast::cli::gpu_launch();
  CHECK(launched, "processes have a launcher");
  return std::make_unique<stepcast::exec::TcpWorld>(stepcast::exec::Meeting{.self = *launched});
}

// A process of a launcher has the GPU of its number on the host; threads have one each.
std::unique_ptr<StepRunner> run_on_gpus(const stepcast::program::CheckedProgram& p,
                                        const stepcast::exec::ExecOptions& options, stepcast::exec::World* world) {
  stepcast::exec::ExecOptions own = options;
  own.kernel_of = &stepcast::kernels::cuda_kernel;
  const int local = world != nullptr ? stepcast::cli::gpu_launch()->local_rank : -1;
  const auto ordinal = [local](stepcast::program::RankId rank) {
    return local >= 0 ? local : static_cast<int>(rank.value);
  };
  return std::make_unique<stepcast::exec::DeviceExecutor>(p, own,
                                                          stepcast::exec::cuda_devices(p.program(), ordinal, world));
}

}  // namespace

int main(int argc, char** argv) {
  if (stepcast::cli::is_probe(argc, argv)) {
    return stepcast::cli::answer_probe(stepcast::exec::to_text(stepcast::exec::probe_cuda()));
  }
  stepcast::prepare_heap();
  return stepcast::cli::run_command_line({.argc = argc,
                                          .argv = argv,
                                          .world = &join_launched,
                                          .cuda_facts = &stepcast::exec::probe_cuda,
                                          .cuda_runner = &run_on_gpus});
}
