// Which cores the threads of a rank use, and how many threads a kernel of it may have.
#pragma once

#include <optional>
#include <vector>

#include "exec/executor.h"
#include "program/program.h"

namespace stepcast::exec {

class RankPlacement {
 public:
  // For `ranks` ranks on the cores that this process may use, or for one of `wanted.place.count`. Throws Error (kUsage)
  // when fewer than one thread is asked for, or more than there are cores.
  RankPlacement(const RankCores& wanted, int ranks);

  // Threads of one kernel.
  int threads() const { return threads_; }
  // The cores of a rank, ascending; all of them where ranks are not bound.
  std::vector<int> cores_of(program::RankId rank) const;
  // Binds the calling thread, and threads it starts later, to its rank's cores; does nothing where ranks are not bound.
  void place_this_thread(program::RankId rank) const;

 private:
  std::vector<int> cores_;  // that this process may use
  bool bind_;
  std::optional<int> place_;  // of the only rank here
  int threads_;
};

}  // namespace stepcast::exec
