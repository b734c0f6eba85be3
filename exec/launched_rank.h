// Which rank of a job this process is, by the variables that torchrun (torch.distributed.run) or srun (Slurm) sets, and
// where the job's processes meet (tcp_world.h).
//
// torchrun: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT. torchrun's own store listens at
// MASTER_PORT, so ranks meet at the next port.
// srun: SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID, SLURM_JOB_ID and the first host of SLURM_STEP_NODELIST (of the job's
// list where the step has none). They meet at port 20,000 + (job id mod 10,000), so that jobs that share a host
// rarely meet. A batch script has SLURM_PROCID too, but only what srun starts has a step's number.
// Of both: STEPCAST_PORT is another port, STEPCAST_HOST another host of rank 0.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace stepcast::exec {

struct LaunchedRank {
  std::string launcher;  // torchrun or srun
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // on its host
  std::string host;    // of rank 0
  int port = 0;
};

// The value of a variable, null where it is not set.
using Environment = std::function<const char*(const char*)>;

// Nothing where neither launcher has started this process. Throws Error (kEnvironment) where variables of one are
// missing or are no numbers in their range.
std::optional<LaunchedRank> launched_rank(const Environment& variable);

// The hosts of Slurm's list: "n[001-003,7],login" is n001, n002, n003, n7, login; a bracket keeps leading zeros.
// Source: what Slurm's `scontrol show hostnames` prints. Throws Error (kEnvironment) for what is no list, or one of
// more than a million hosts.
std::vector<std::string> hosts_of(const std::string& list);

}  // namespace stepcast::exec
