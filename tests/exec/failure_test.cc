// Failures and hangs: every thread ends, and the message says which rank failed where and what the others were at.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "base/check.h"
#include "base/error.h"
#include "tests/exec/tiny_program.h"

namespace stepcast::exec {
namespace {

using tiny::Access;
using tiny::OpKind;
using tiny::Stream;
using tiny::World;

void broken(const kernels::KernelContext&) { throw std::runtime_error("injected fault"); }
kernels::Kernel broken_kernels(OpKind kind) { return kind == OpKind::kAdd ? &broken : kernels::reference_kernel(kind); }
kernels::Kernel no_kernels(OpKind) { return nullptr; }

// The message of the Error that a step ends with.
std::string failure_of(Executor& executor) {
  try {
    executor.run_step();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kExecution);
    EXPECT_EQ(e.problems().size(), 1U);
    return e.problems().front().message;
  }
  ADD_FAILURE() << "the step succeeded";
  return "";
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in:\n" << text;
}

// Four ranks reduce; rank 2 fails before it gets there while the others wait in the collective, for an edge, or in a
// host_read.
program::CheckedProgram one_bad_rank() {
  World world(4);
  for (int m = 0; m < 4; ++m) {
    const auto x = world.shard(m, "x", 4, 8, m, 0, 8);
    if (m == 2) {
      world.call(m, OpKind::kAdd, Stream::kCompute, {{x}, {x}, {x, Access::kWrite}}, "bad");
    } else {
      world.call(m, OpKind::kZeroFill, Stream::kCompute, {{x, Access::kWrite}}, "good");
    }
    world.collective(m, OpKind::kAllReduce, Stream::kTp, {{x, Access::kAccumulate}}, "reduce");
    world.call(m, OpKind::kAccumulate, Stream::kCompute, {{x}, {x, Access::kAccumulate}}, "use");
    world.call(m, OpKind::kHostRead, Stream::kD2h, {{x}}, "read");
  }
  return world.take();
}

TEST(Failure, OfOneRankEndsAllThreadsAndNamesItsCall) {
  const auto checked = one_bad_rank();
  for (int repetition = 0; repetition < 30; ++repetition) {
    Executor executor(checked, {.kernel_of = &broken_kernels});
    const std::string message = failure_of(executor);
    expect_contains(message, "rank 2 failed in F.m0.t.bad: injected fault\n");
    for (int m = 0; m < 4; ++m) expect_contains(message, "\n  rank " + std::to_string(m) + ": host ");
    expect_contains(failure_of(executor), "an earlier step failed");
  }
}

void defective(const kernels::KernelContext&) { CHECK(false, 42); }
kernels::Kernel defective_kernels(OpKind kind) {
  return kind == OpKind::kAdd ? &defective : kernels::reference_kernel(kind);
}

TEST(Failure, OfAnInvariantIsABugOfOursAndNamesItsCall) {
  const auto checked = one_bad_rank();
  Executor executor(checked, {.kernel_of = &defective_kernels});
  try {
    executor.run_step();
    ADD_FAILURE() << "the step succeeded";
  } catch (const InternalError& e) {
    expect_contains(e.what(), "rank 2 failed in F.m0.t.bad: ");
    expect_contains(e.what(), "CHECK(false) failed, with 42");
  }
}

TEST(Failure, OfAMissingKernelNamesTheKind) {
  const auto checked = one_bad_rank();
  Executor executor(checked, {.kernel_of = &no_kernels});
  expect_contains(failure_of(executor), "failed in F.m0.t.");
}

// Rank 0 sends to rank 1 over a link that takes a thousand seconds; both and rank 2 then reduce. Rank 2 waits for them.
TEST(Watchdog, NamesEachRanksCallAndWhatItWaitsFor) {
  World world(3);
  for (int m = 0; m < 3; ++m) {
    const auto x = world.shard(m, "x", 3, 8, m, 0, 8);
    if (m == 0) {
      world.call(m, OpKind::kSend, Stream::kSendNext, {{x}}, "send",
                 [&](program::Op& op) { op.parts = {tiny::part(world, 0, true, 1)}; });
    }
    if (m == 1) {
      world.call(m, OpKind::kReceive, Stream::kRecvPrev, {{x, Access::kWrite}}, "receive",
                 [&](program::Op& op) { op.parts = {tiny::part(world, 0, false, -1)}; });
    }
    world.collective(m, OpKind::kAllReduce, Stream::kTp, {{x, Access::kAccumulate}}, "reduce");
  }
  const auto checked = world.take();
  Executor executor(checked, {.paced_link = PacedLink{Duration(1'000'000'000'000'000), BytesPerSecond(1e9)},
                              .watchdog = Duration(100'000'000'000)});
  EXPECT_EQ(failure_of(executor),
            "no op has completed for 100.0 ms\n"
            "  rank 0: host finished; tp holds F.m1.t.reduce until F.m0.t.send; send_next transfers in F.m0.t.send\n"
            "  rank 1: host finished; tp holds F.m1.t.reduce until F.m0.t.receive; "
            "recv_prev transfers in F.m0.t.receive\n"
            "  rank 2: host finished; tp in F.m0.t.reduce waits for ranks 0, 1");
}

void slow(const kernels::KernelContext&) { std::this_thread::sleep_for(std::chrono::milliseconds(400)); }
kernels::Kernel slow_kernels(OpKind kind) {
  return kind == OpKind::kZeroFill ? &slow : kernels::reference_kernel(kind);
}

// Four times the watchdog in one kernel, with the other rank waiting for it in a collective.
TEST(Watchdog, LeavesALongKernelAlone) {
  World world(2);
  for (int m = 0; m < 2; ++m) {
    const auto x = world.shard(m, "x", 2, 8, m, 0, 8);
    if (m == 0) world.call(m, OpKind::kZeroFill, Stream::kCompute, {{x, Access::kWrite}}, "slow");
    world.collective(m, OpKind::kAllReduce, Stream::kTp, {{x, Access::kAccumulate}}, "reduce");
  }
  const auto checked = world.take();
  Executor executor(checked, {.watchdog = Duration(100'000'000'000), .kernel_of = &slow_kernels});
  EXPECT_GE(executor.run_step().time, Duration(400'000'000'000));
}

// The clock of a step starts when the hosts do, before the first issue.
TEST(Executor, TheStepLastsFromTimeZeroToTheLastEnd) {
  World world(2);
  for (int m = 0; m < 2; ++m) {
    const auto x = world.shard(m, "x", 2, 8, m, 0, 8);
    world.call(m, OpKind::kZeroFill, Stream::kCompute, {{x, Access::kWrite}}, "zero");
    world.collective(m, OpKind::kAllReduce, Stream::kTp, {{x, Access::kAccumulate}}, "reduce");
  }
  const auto checked = world.take();
  Executor executor(checked, {});
  const StepResult result = executor.run_step();
  SimTime last;
  for (const trace::Track& track : executor.last_trace().tracks) {
    for (const trace::Event& event : track.events) last = std::max(last, event.end);
  }
  EXPECT_EQ(result.time, last - SimTime(0));
  EXPECT_EQ(executor.last_trace().step, result.time);
}

TEST(Executor, EndsWithoutHavingRun) {
  const auto checked = one_bad_rank();
  const Executor executor(checked, {});
  EXPECT_TRUE(executor.last_trace().tracks.empty());
  EXPECT_EQ(executor.status().size(), 4U);
  EXPECT_EQ(executor.status().front(), "rank 0: host idle");
}

TEST(Executor, LeavesRoomForOthers) {
  const auto checked = one_bad_rank();
  Executor a(checked, {});
  Executor b(checked, {});
  a.run_step();
  b.run_step();
  a.run_step();
  EXPECT_EQ(a.last_trace().tracks.size(), 4U);
}

}  // namespace
}  // namespace stepcast::exec
