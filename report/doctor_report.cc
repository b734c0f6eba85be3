// See doctor_report.h.
#include "report/doctor_report.h"

namespace stepcast::report {
namespace {

BackendState state_of_program(BackendState state, const RankProgramFacts& program,
                              std::vector<std::string> how_to_build) {
  if (program.path.empty()) {
    state.reason = program.name + " is not built";
    state.help = std::move(how_to_build);
  } else if (!program.failure.empty()) {
    state.reason = program.name + " does not start: " + program.failure;
    state.help = {"build it on this machine, or install the libraries it was built with"};
  }
  return state;
}

BackendState processes_state(const MachineFacts& facts) {
  BackendState state = state_of_program({"cpu", "processes", "", {}}, facts.rank_mpi,
                                        {"install Open MPI (Debian: libopenmpi-dev, openmpi-bin) and build again"});
  if (!state.works()) return state;
  if (facts.mpirun.empty()) {
    state.reason = "mpirun is not on PATH";
    state.help = {"install Open MPI (Debian: openmpi-bin)"};
  } else if (!facts.mpirun_failure.empty()) {
    state.reason = "mpirun cannot start a process: " + facts.mpirun_failure;
    state.help = {"mpirun -n 1 true says more"};
  }
  return state;
}

BackendState cuda_state(const MachineFacts& facts) {
  BackendState state = state_of_program({"cuda", "processes", "", {}}, facts.rank_cuda,
                                        {"install the CUDA toolkit and NCCL, then cmake --preset cuda and "
                                         "ninja -C build/cuda"});
  if (!state.works()) return state;
  if (!facts.cuda) {
    state.reason = "stepcast-rank-cuda does not say what CUDA has";
    state.help = {"build all programs of stepcast from one version"};
  } else if (const std::optional<exec::CudaProblem> problem = exec::why_no_cuda(*facts.cuda, 1)) {
    state.reason = problem->reason;
    state.help = problem->help;
  }
  return state;
}

}  // namespace

std::vector<BackendState> judge_backends(const MachineFacts& facts) {
  return {{"reference", "threads", "", {}},
          state_of_program({"cpu", "threads", "", {}}, facts.rank,
                           {"install oneDNN (Debian: libdnnl-dev) and build the release preset again"}),
          processes_state(facts),
          cuda_state(facts)};
}

}  // namespace stepcast::report
