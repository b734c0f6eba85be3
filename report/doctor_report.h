// What this machine can do: the facts that cli/ has gathered, what follows from them for each backend, and both as a
// screen and as JSON (stepcast/doctor/1).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "exec/cuda_facts.h"

namespace stepcast::report {

// A program that ranks are, looked for beside stepcast.
struct RankProgramFacts {
  std::string name;
  std::string path;     // empty: not built
  std::string failure;  // why it does not start; empty: it does
};

struct EnvironmentVariable {
  std::string name;
  std::string value;
};

struct MachineFacts {
  std::string version;  // of stepcast
  std::string folder;   // of its programs
  std::string processor;
  int cores = 0;  // that this process may use
  double memory_bytes = 0;
  double available_bytes = 0;  // to a new process
  bool avx512 = false;
  bool bf16 = false;  // AVX-512 instructions of bf16
  RankProgramFacts rank, rank_mpi, rank_cuda;
  std::string onednn;                   // version and instruction set; empty where stepcast-rank does not say
  std::string mpirun;                   // what `mpirun --version` begins with; empty where there is none
  std::string mpirun_failure;           // why it cannot start a process here; empty where it can
  std::optional<exec::CudaFacts> cuda;  // where stepcast-rank-cuda says
  std::string launcher;                 // that has started this process: mpirun, srun, torchrun; empty where none has
  std::vector<EnvironmentVariable> environment;  // set, and read by ranks or by what they link
};

// One way of executing ranks.
struct BackendState {
  std::string backend;   // as --backend has it
  std::string ranks_as;  // threads or processes
  std::string reason;    // why it does not work; empty where it does
  std::vector<std::string> help;
  bool works() const { return reason.empty(); }
};

// reference, cpu in threads, cpu in processes, cuda; always these four.
std::vector<BackendState> judge_backends(const MachineFacts& facts);

struct DoctorReport {
  MachineFacts facts;
  std::vector<BackendState> backends;
  std::optional<BackendState> asked;  // what the user asked about

  bool passes() const { return !asked || asked->works(); }
};

std::string doctor_screen(const DoctorReport& report);
std::string doctor_json(const DoctorReport& report);

}  // namespace stepcast::report
