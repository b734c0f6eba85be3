#include "exec/rank_placement.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

#include "base/error.h"

namespace stepcast::exec {
namespace {

std::vector<int> usable_cores() {
  std::vector<int> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) cores.push_back(core);
    }
  }
  // A machine of more cores than a set holds.
  for (int core = 0; cores.empty() && core < static_cast<int>(std::thread::hardware_concurrency()); ++core) {
    cores.push_back(core);
  }
  if (cores.empty()) cores.push_back(0);
  return cores;
}

}  // namespace

RankPlacement::RankPlacement(const RankCores& wanted, int ranks) : cores_(usable_cores()), bind_(wanted.bind) {
  if (wanted.place) {
    place_ = wanted.place->index;
    ranks = wanted.place->count;
  }
  const int cores = static_cast<int>(cores_.size());
  threads_ = wanted.threads.value_or(std::max(1, cores / std::max(1, ranks)));
  if (threads_ >= 1 && threads_ <= cores) return;
  throw Error(ErrorKind::kUsage, "a rank cannot have " + std::to_string(threads_) + " threads: this process may use " +
                                     std::to_string(cores) + " cores");
}

std::vector<int> RankPlacement::cores_of(program::RankId rank) const {
  if (!bind_) return cores_;
  const auto first = static_cast<std::size_t>(place_.value_or(static_cast<int>(rank.value)) * threads_);
  std::vector<int> own;
  for (std::size_t i = 0; i < static_cast<std::size_t>(threads_); ++i) {
    own.push_back(cores_[(first + i) % cores_.size()]);
  }
  std::sort(own.begin(), own.end());
  return own;
}

void RankPlacement::place_this_thread(program::RankId rank) const {
  if (!bind_) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores_of(rank)) CPU_SET(core, &set);
  const int status = pthread_setaffinity_np(pthread_self(), sizeof set, &set);
  if (status == 0) return;
  throw Error(ErrorKind::kEnvironment, std::string("cannot bind a rank to its cores: ") + std::strerror(status));
}

}  // namespace stepcast::exec
