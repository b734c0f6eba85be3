// Which cores ranks get, and that their threads stay there.
#include "exec/rank_placement.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "tests/exec/tiny_program.h"

namespace stepcast::exec {
namespace {

using program::Access;
using program::OpKind;
using program::RankId;
using program::Stream;
using tiny::World;

std::vector<int> cores_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

TEST(RankPlacement, GivesEveryRankItsShareOfTheCores) {
  const int cores = static_cast<int>(cores_of_this_thread().size());
  EXPECT_EQ(RankPlacement({}, 1).threads(), cores);
  EXPECT_EQ(RankPlacement({}, cores).threads(), 1);
  EXPECT_EQ(RankPlacement({}, 100 * cores).threads(), 1);
  EXPECT_EQ(RankPlacement({.threads = 1}, 1).threads(), 1);
}

TEST(RankPlacement, RefusesThreadsThatThereAreNoCoresFor) {
  const int cores = static_cast<int>(cores_of_this_thread().size());
  EXPECT_THROW(RankPlacement({.threads = 0}, 1), Error);
  EXPECT_THROW(RankPlacement({.threads = cores + 1}, 1), Error);
}

TEST(RankPlacement, BindsRanksToCoresInTurn) {
  const std::vector<int> all = cores_of_this_thread();
  const int cores = static_cast<int>(all.size());
  const RankPlacement bound({.threads = 1, .bind = true}, 2 * cores);
  for (int rank = 0; rank < 2 * cores; ++rank) {
    const std::vector<int> own = {all[static_cast<std::size_t>(rank % cores)]};
    EXPECT_EQ(bound.cores_of(RankId(static_cast<std::size_t>(rank))), own) << rank;
  }
  EXPECT_EQ(RankPlacement({.threads = cores, .bind = true}, 2).cores_of(RankId(1)), all);
  EXPECT_EQ(RankPlacement({}, 2).cores_of(RankId(1)), all);
}

// A rank that is a process is placed among those that share its cores, whatever its number in the job: the third of
// three on this host, say, is rank 2 of one job and rank 11 of another.
TEST(RankPlacement, PlacesAProcessAmongThoseThatShareItsCores) {
  const std::vector<int> all = cores_of_this_thread();
  const auto cores = all.size();
  const RankPlacement third({.threads = 1, .bind = true, .place = HostPlace{.index = 2, .count = 3}}, 16);
  EXPECT_EQ(third.cores_of(RankId(std::size_t{2})), std::vector<int>{all[2 % cores]});
  EXPECT_EQ(third.cores_of(RankId(std::size_t{11})), std::vector<int>{all[2 % cores]});
  EXPECT_EQ(RankPlacement({.place = HostPlace{.index = 2, .count = 3}}, 16).cores_of(RankId(std::size_t{11})), all);
}

// Its share of them is counted among those processes, not among all ranks: alone on its cores it has all of them.
TEST(RankPlacement, SharesCoresAmongProcessesOfTheHost) {
  const int cores = static_cast<int>(cores_of_this_thread().size());
  EXPECT_EQ(RankPlacement({.place = HostPlace{.index = 0, .count = 1}}, 16 * cores).threads(), cores);
  EXPECT_EQ(RankPlacement({.place = HostPlace{.index = 0, .count = cores}}, 1).threads(), 1);
}

// Writes the first core that the kernel may run on, and how many there are.
void tell_cores(const kernels::KernelContext& k) {
  const std::vector<int> cores = cores_of_this_thread();
  auto* out = static_cast<float*>(k.operands[0].data);
  out[0] = static_cast<float>(cores.front());
  out[1] = static_cast<float>(cores.size());
}
kernels::Kernel telling_cores(OpKind) { return &tell_cores; }

TEST(RankPlacement, KernelsRunOnTheirRanksCores) {
  const std::vector<int> all = cores_of_this_thread();
  World world(2);
  for (int m = 0; m < 2; ++m) {
    const auto x = world.shard(m, "x", 2, 2, m, 0, 2);
    world.call(m, OpKind::kZeroFill, Stream::kCompute, {{x, Access::kWrite}});
  }
  const auto checked = world.take();
  Executor bound(checked, {.kernel_of = &telling_cores, .cores = {.threads = 1, .bind = true}});
  bound.run_step();
  const auto first = static_cast<float>(all[0]);
  const auto second = static_cast<float>(all[1 % all.size()]);
  EXPECT_EQ(tiny::gathered(checked, bound, "x", program::ShardKind::kWeight),
            (std::vector<float>{first, 1, second, 1}));
  EXPECT_EQ(bound.threads_per_rank(), 1);
  // Binding is the ranks' threads' alone.
  EXPECT_EQ(cores_of_this_thread(), all);
}

// Counts what is asked of it.
struct CountedState final : kernels::StreamState {
  void begin_thread() override { ++threads_begun; }
  int threads_begun = 0;
};
std::unique_ptr<kernels::StreamState> counted_state(int) { return std::make_unique<CountedState>(); }

// Writes how many threads have begun with the state of the op's stream.
void tell_threads(const kernels::KernelContext& k) {
  static_cast<float*>(k.operands[0].data)[0] = static_cast<float>(static_cast<CountedState*>(k.state)->threads_begun);
}
kernels::Kernel telling_threads(OpKind) { return &tell_threads; }

TEST(StreamState, IsOneForEachStreamAndLivesBetweenSteps) {
  World world(1);
  const auto x = world.shard(0, "x", 1, 1, 0, 0, 1);
  const auto y = world.shard(0, "y", 1, 1, 0, 0, 1);
  world.call(0, OpKind::kZeroFill, Stream::kCompute, {{x, Access::kWrite}});
  world.call(0, OpKind::kZeroFill, Stream::kTp, {{y, Access::kWrite}});
  const auto checked = world.take();
  Executor executor(checked, {.kernel_of = &telling_threads, .stream_state = &counted_state});
  for (const float step : {1.0F, 2.0F}) {
    executor.run_step();
    EXPECT_EQ(tiny::gathered(checked, executor, "x", program::ShardKind::kWeight), std::vector<float>{step});
    EXPECT_EQ(tiny::gathered(checked, executor, "y", program::ShardKind::kWeight), std::vector<float>{step});
  }
}

}  // namespace
}  // namespace stepcast::exec
