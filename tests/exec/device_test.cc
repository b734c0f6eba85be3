// Ranks on devices: failures, memory, graphs, and what is planned for them. The devices are fake (fake_device.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "exec/device/comm_layout.h"
#include "exec/device/device_rank.h"
#include "exec/device/wait_plan.h"
#include "tests/exec/fake_device.h"
#include "tests/exec/tiny_program.h"

namespace stepcast::exec {
namespace {

using fake::FakeHub;
using fake::FakeOptions;
using program::Stream;
using tiny::Access;
using tiny::OpKind;
using tiny::World;

std::string failure_of_step(StepRunner& runner) {
  try {
    runner.run_step();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kExecution);
    return e.problems().front().message;
  }
  ADD_FAILURE() << "the step succeeded";
  return "";
}

void expect_in(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in:\n" << text;
}

// Each rank zeroes its row of x, all reduce it, add it to itself and read it.
program::CheckedProgram reduce_and_read(int ranks) {
  World world(ranks);
  for (int m = 0; m < ranks; ++m) {
    const auto x = world.shard(m, "x", ranks, 8, m, 0, 8);
    world.call(m, OpKind::kZeroFill, Stream::kCompute, {{x, Access::kWrite}}, "zero");
    world.collective(m, OpKind::kAllReduce, Stream::kTp, {{x, Access::kAccumulate}}, "reduce");
    world.call(m, OpKind::kAccumulate, Stream::kCompute, {{x}, {x, Access::kAccumulate}}, "use");
    world.call(m, OpKind::kHostRead, Stream::kD2h, {{x}}, "read");
  }
  return world.take();
}

TEST(DeviceFailure, NamesRankAndCallAndEndsCommunication) {
  const auto checked = reduce_and_read(3);
  FakeHub hub({.seed = 1, .late = true, .fails_at = std::pair(program::RankId(1), 0)});
  DeviceExecutor executor(checked, {}, hub.devices());
  const std::string message = failure_of_step(executor);
  expect_in(message, "rank 1 failed in F.m0.t.zero: injected fault\n");
  for (int m = 0; m < 3; ++m) expect_in(message, "\n  rank " + std::to_string(m) + ": host ");
  EXPECT_GE(hub.aborts(), 3);
  expect_in(failure_of_step(executor), "an earlier step failed");
}

TEST(DeviceFailure, OfCommunicationIsFoundWhileWaiting) {
  const auto checked = reduce_and_read(2);
  FakeHub hub({.seed = 1, .stuck = std::pair(program::RankId(0), Stream::kTp), .broken_link = program::RankId(1)});
  DeviceExecutor executor(checked, {}, hub.devices());
  const std::string message = failure_of_step(executor);
  expect_in(message, "rank 1 failed in F.m");
  expect_in(message, ": the link is broken\n");
}

kernels::Kernel no_kernel(OpKind) { return nullptr; }

TEST(DeviceFailure, OfAMissingKernelNamesTheKind) {
  const auto checked = reduce_and_read(1);
  FakeHub hub({});
  DeviceExecutor executor(checked, {.kernel_of = &no_kernel}, hub.devices());
  expect_in(failure_of_step(executor), "rank 0 failed in F.m0.t.zero: no kernel for zero_fill");
}

// The stream of rank 1's collective never starts it.
TEST(DeviceWatchdog, NamesTheFirstUnfinishedOpOfEachStream) {
  const auto checked = reduce_and_read(2);
  FakeHub hub({.seed = 1, .stuck = std::pair(program::RankId(1), Stream::kTp)});
  DeviceExecutor executor(checked, {.watchdog = Duration(200'000'000'000)}, hub.devices());
  EXPECT_EQ(failure_of_step(executor),
            "no event has happened for 200.0 ms\n"
            "  rank 0: host blocked in F.m3.t.read; compute holds F.m2.t.use until F.m1.t.reduce; "
            "tp in F.m1.t.reduce communicates; d2h holds F.m3.t.read until F.m2.t.use\n"
            "  rank 1: host blocked in F.m3.t.read; compute holds F.m2.t.use until F.m1.t.reduce; "
            "tp in F.m1.t.reduce communicates; d2h holds F.m3.t.read until F.m2.t.use");
  EXPECT_GE(hub.aborts(), 2);
}

// x (32 B, of 64 in a block), a and b (32 B each): three blocks of 64 bytes.
program::CheckedProgram three_blocks() {
  World world(1);
  const auto x = world.shard(0, "x", 1, 8, 0, 0, 8);
  const auto a = world.scratch(0, 8);
  const auto b = world.scratch(0, 8);
  world.call(0, OpKind::kCopy, Stream::kCompute, {{x}, {a, Access::kWrite}}, "first");
  world.call(0, OpKind::kCopy, Stream::kCompute, {{a}, {b, Access::kWrite}}, "second");
  world.call(0, OpKind::kCopy, Stream::kCompute, {{b}, {x, Access::kWrite}}, "third");
  return world.take();
}

constexpr const char* kNoRoom =
    "rank 0 failed in F.m1.t.second: out of memory: no room for 'scratch' of 32 B; allocated: weights 32 B, "
    "activations 32 B, in blocks of 128 B; ";

TEST(OutOfMemory, OnADeviceNamesTheBlockAndWhatIsAllocated) {
  const auto checked = three_blocks();
  FakeHub enough({.memory = 192});
  DeviceExecutor fits(checked, {}, enough.devices());
  EXPECT_NO_THROW(fits.run_step());
  FakeHub hub({.memory = 191});
  DeviceExecutor executor(checked, {}, hub.devices());
  expect_in(failure_of_step(executor), std::string(kNoRoom) + "the device has a fake memory\n");
}

TEST(OutOfMemory, OnTheHostNamesTheBlockAndTheLimit) {
  const auto checked = three_blocks();
  Executor fits(checked, {.memory_limit = Bytes(192)});
  EXPECT_NO_THROW(fits.run_step());
  Executor executor(checked, {.memory_limit = Bytes(191)});
  expect_in(failure_of_step(executor), std::string(kNoRoom) + "the rank is limited to 191 B; the host has ");
}

TEST(OutOfMemory, OfAPersistentBufferNamesTheRank) {
  const auto checked = three_blocks();
  FakeHub hub({.memory = 63});
  const auto message = [](const auto& make) {
    try {
      make();
    } catch (const Error& e) {
      return e.problems().front().message;
    }
    return std::string();
  };
  const std::string want = "rank 0: out of memory: no room for 'x' of 32 B; allocated: nothing, in blocks of 0 B; ";
  expect_in(message([&] { DeviceExecutor(checked, {}, hub.devices()); }), want + "the device");
  expect_in(message([&] { Executor(checked, {.memory_limit = Bytes(63)}); }), want + "the rank is limited");
}

// A block whose last use another stream has still to run is waited for, where memory has no room for another one:
// a (compute, then tp), then b on compute, which waits for nothing. x takes one block of 64 bytes.
TEST(OutOfMemory, WaitsForBlocksThatBecomeFree) {
  World world(1);
  const auto x = world.shard(0, "x", 1, 8, 0, 0, 8);
  const auto y = world.shard(0, "y", 1, 8, 0, 0, 8);
  const auto a = world.scratch(0, 8);
  const auto b = world.scratch(0, 8);
  world.call(0, OpKind::kCopy, Stream::kCompute, {{x}, {a, Access::kWrite}});
  world.call(0, OpKind::kCopy, Stream::kTp, {{a}, {y, Access::kWrite}});
  world.call(0, OpKind::kCopy, Stream::kCompute, {{x}, {b, Access::kWrite}});
  world.call(0, OpKind::kCopy, Stream::kCompute, {{b}, {x, Access::kWrite}});
  const auto checked = world.take();
  FakeHub hub({.late = true, .memory = 192});
  DeviceExecutor executor(checked, {.poison = true}, hub.devices());
  executor.run_step();
  EXPECT_EQ(executor.physical_bytes(), std::vector<std::int64_t>{192});
  EXPECT_EQ(tiny::gathered(checked, executor, "y", program::ShardKind::kWeight)[3], tiny::initial("x", 3));
  FakeHub roomy({.late = true});
  DeviceExecutor grown(checked, {}, roomy.devices());
  grown.run_step();
  EXPECT_EQ(grown.physical_bytes(), std::vector<std::int64_t>{256});
}

LastUse used(Stream s, std::uint32_t count) {
  LastUse use{};
  use[static_cast<std::size_t>(s)] = count;
  return use;
}

TEST(BlockPool, GivesABlockToAStreamThatHasWaitedForItsLastUse) {
  HostMemory memory;
  BlockPool pool(memory);
  const StreamProgress nothing_done;
  const auto a = pool.take(100, Stream::kCompute, nothing_done);
  pool.give(a.block, used(Stream::kTp, 3));
  EXPECT_NE(pool.take(100, Stream::kCompute, nothing_done, used(Stream::kTp, 2)).block, a.block);
  EXPECT_NE(pool.take(100, std::nullopt, nothing_done, used(Stream::kTp, 3)).block, a.block);
  const auto b = pool.take(100, Stream::kCompute, nothing_done, used(Stream::kTp, 3));
  EXPECT_EQ(b.block, a.block);
  EXPECT_FALSE(b.idle);
}

DevicePlan plan_of(const program::CheckedProgram& checked, std::size_t rank = 0) {
  const program::RankProgramId id = checked.program().ranks[program::RankId(rank)].program;
  return plan_device(checked.program(), checked.program().rank_programs[id], checked.resolution(id));
}

std::vector<std::uint32_t> waits_of(const DevicePlan& plan, std::uint32_t op) {
  const auto waits = plan.waits.waits_of(op);
  return {waits.begin(), waits.end()};
}

// 0: compute writes a. 1: tp reads a, writes b. 2: d2h reads a and b: its wait for 1 covers 0. 3: compute reads b:
// waits for 1. 4: compute reads b again: covered.
TEST(WaitPlan, LeavesOutWaitsThatOthersCover) {
  World world(1);
  const auto a = world.shard(0, "a", 1, 8, 0, 0, 8);
  const auto b = world.shard(0, "b", 1, 8, 0, 0, 8);
  const auto c = world.shard(0, "c", 1, 8, 0, 0, 8);
  const auto d = world.shard(0, "d", 1, 8, 0, 0, 8);
  world.call(0, OpKind::kZeroFill, Stream::kCompute, {{a, Access::kWrite}});
  world.call(0, OpKind::kCopy, Stream::kTp, {{a}, {b, Access::kWrite}});
  world.call(0, OpKind::kAdd, Stream::kD2h, {{a}, {b}, {c, Access::kWrite}});
  world.call(0, OpKind::kCopy, Stream::kCompute, {{b}, {d, Access::kWrite}});
  world.call(0, OpKind::kCopy, Stream::kCompute, {{b}, {d, Access::kWrite}});
  const auto checked = world.take();
  const DevicePlan plan = plan_of(checked);
  using Ops = std::vector<std::uint32_t>;
  EXPECT_EQ(waits_of(plan, 0), Ops{});
  EXPECT_EQ(waits_of(plan, 1), Ops{0});
  EXPECT_EQ(waits_of(plan, 2), Ops{1});
  EXPECT_EQ(waits_of(plan, 3), Ops{1});
  EXPECT_EQ(waits_of(plan, 4), Ops{});
  const auto at = [&](std::uint32_t op, Stream s) { return plan.waits.covered[op][static_cast<std::size_t>(s)]; };
  EXPECT_EQ(at(2, Stream::kCompute), 1U);
  EXPECT_EQ(at(2, Stream::kTp), 1U);
  EXPECT_EQ(at(4, Stream::kTp), 1U);
  EXPECT_EQ(at(4, Stream::kD2h), 0U);
}

// Calls: 0 zero (compute), 1 reduce (tp), 2 use (compute), 3 read. A marked range is a graph where its first op waits
// for all that its ops wait for.
std::size_t graphs_of(std::uint32_t begin, std::uint32_t end) {
  World world(1);
  const auto x = world.shard(0, "x", 1, 8, 0, 0, 8);
  const auto y = world.shard(0, "y", 1, 8, 0, 0, 8);
  world.call(0, OpKind::kZeroFill, Stream::kTp, {{x, Access::kWrite}});        // 0
  world.call(0, OpKind::kCopy, Stream::kCompute, {{x}, {y, Access::kWrite}});  // 1: waits for 0
  world.call(0, OpKind::kCopy, Stream::kTp, {{y}, {x, Access::kWrite}});       // 2: waits for 1
  world.call(0, OpKind::kZeroFill, Stream::kCompute, {{y, Access::kWrite}});   // 3: waits for 2
  world.call(0, OpKind::kCopy, Stream::kCompute, {{x}, {y, Access::kWrite}});  // 4
  world.call(0, OpKind::kHostRead, Stream::kD2h, {{x}});                       // 5
  world.at(0).mark_graph({begin, end});
  const auto checked = world.take();
  FakeHub hub({});
  DeviceExecutor executor(checked, {}, hub.devices());
  executor.run_step();
  executor.run_step();
  EXPECT_EQ(hub.graphs().size() % 2, 0U);
  return hub.graphs().size() / 2;
}

TEST(DeviceGraph, IsLaunchedWhereItAddsNoWait) {
  EXPECT_EQ(graphs_of(1, 3), 1U);  // 1 waits for 0, which is the tail of tp
  EXPECT_EQ(graphs_of(3, 5), 1U);
  EXPECT_EQ(graphs_of(0, 2), 1U);
  EXPECT_EQ(graphs_of(4, 6), 0U);  // a host_read
}

// 1 needs 0 of tp, which 2 would have to wait for first.
TEST(DeviceGraph, IsNotLaunchedWhereItsFirstOpWouldWaitLonger) {
  World world(1);
  const auto x = world.shard(0, "x", 1, 8, 0, 0, 8);
  const auto y = world.shard(0, "y", 1, 8, 0, 0, 8);
  const auto z = world.shard(0, "z", 1, 8, 0, 0, 8);
  world.call(0, OpKind::kZeroFill, Stream::kTp, {{x, Access::kWrite}});
  world.call(0, OpKind::kZeroFill, Stream::kCompute, {{z, Access::kWrite}});
  world.call(0, OpKind::kCopy, Stream::kCompute, {{x}, {y, Access::kWrite}});
  world.at(0).mark_graph({1, 3});
  const auto checked = world.take();
  FakeHub hub({});
  DeviceExecutor executor(checked, {}, hub.devices());
  executor.run_step();
  EXPECT_TRUE(hub.graphs().empty());
}

// Links of an exchange share a communicator, whose messages the library runs at once; others have their own.
TEST(CommLayout, JoinsTheLinksOfAnExchange) {
  World world(3);
  for (int m = 0; m < 3; ++m) {
    const auto x = world.shard(m, "x", 3, 8, m, 0, 8);
    const auto y = world.shard(m, "y", 3, 8, m, 0, 8);
    world.collective(m, OpKind::kAllReduce, Stream::kTp, {{x, Access::kAccumulate}});
    world.call(m, OpKind::kExchange, Stream::kCp, {{x}, {y, Access::kWrite}}, "ring", [&](program::Op& op) {
      op.parts = {tiny::part(world, 0, true, 1), tiny::part(world, 1, false, -1)};
    });
    if (m == 0) {
      world.call(m, OpKind::kSend, Stream::kSendNext, {{x}}, "send",
                 [&](program::Op& op) { op.parts = {tiny::part(world, 0, true, 1, program::Channel::kGradient)}; });
    }
    if (m == 1) {
      world.call(m, OpKind::kReceive, Stream::kRecvPrev, {{y, Access::kWrite}}, "receive",
                 [&](program::Op& op) { op.parts = {tiny::part(world, 0, false, -1, program::Channel::kGradient)}; });
    }
  }
  const auto checked = world.take();
  const CommLayout layout(checked.program());
  using program::RankId;
  const std::vector<RankId> all{RankId(0), RankId(1), RankId(2)};
  ASSERT_EQ(layout.members().size(), 3U);
  const program::GroupId group(0);
  const auto ring = layout.of_link({group, RankId(0), RankId(1), program::Channel::kActivation});
  EXPECT_EQ(layout.of_link({group, RankId(1), RankId(2), program::Channel::kActivation}), ring);
  EXPECT_EQ(layout.of_link({group, RankId(2), RankId(0), program::Channel::kActivation}), ring);
  EXPECT_EQ(layout.members()[ring], all);
  const auto single = layout.of_link({group, RankId(0), RankId(1), program::Channel::kGradient});
  EXPECT_EQ(layout.members()[single], (std::vector<RankId>{RankId(0), RankId(1)}));
  EXPECT_EQ(layout.position(single, RankId(1)), 1U);
  EXPECT_EQ(layout.members()[layout.of_collective(group, program::Channel::kMain)], all);
  FakeHub hub({.seed = 5});
  DeviceExecutor devices(checked, {}, hub.devices());
  Executor threads(checked, {});
  devices.run_step();
  threads.run_step();
  EXPECT_EQ(tiny::gathered(checked, devices, "y", program::ShardKind::kWeight),
            tiny::gathered(checked, threads, "y", program::ShardKind::kWeight));
}

// Events are used again as soon as their ops are known to be over: fifty reads, each waited for, need few.
TEST(DeviceEvents, AreUsedAgain) {
  World world(1);
  const auto x = world.shard(0, "x", 1, 8, 0, 0, 8);
  for (int i = 0; i < 50; ++i) world.call(0, OpKind::kHostRead, Stream::kD2h, {{x}});
  const auto checked = world.take();
  FakeHub hub({});
  DeviceExecutor executor(checked, {}, hub.devices());
  executor.run_step();
  executor.run_step();
  EXPECT_EQ(hub.events_made(), 3);  // the start's, and two of one op
}

TEST(DeviceExecutor, RefusesAPacedLink) {
  const auto checked = three_blocks();
  FakeHub hub({});
  try {
    DeviceExecutor(checked, {.paced_link = PacedLink{Duration(1), BytesPerSecond(1e9)}}, hub.devices());
    ADD_FAILURE() << "it was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUnsupported);
  }
}

// Host buffers are host memory, and cross by copies.
TEST(DeviceExecutor, KeepsHostBuffersOnTheHost) {
  World world(1);
  const auto x = world.shard(0, "x", 1, 8, 0, 0, 8);
  auto& r = world.at(0);
  const auto host = r.buffer("host", 32, program::MemoryClass::kActivations, false, program::Space::kHost);
  const auto h = r.view(host, 0, tiny::DType::kF32, {8});
  world.call(0, OpKind::kCopy, Stream::kD2h, {{x}, {h, Access::kWrite}});
  world.call(0, OpKind::kCopy, Stream::kH2d, {{h}, {x, Access::kWrite}});
  const auto checked = world.take();
  FakeHub hub({.memory = 64});
  DeviceExecutor executor(checked, {}, hub.devices());
  executor.run_step();
  EXPECT_EQ(executor.last_trace().tracks[0].peak, 32);
  EXPECT_EQ(tiny::gathered(checked, executor, "x", program::ShardKind::kWeight)[5], tiny::initial("x", 5));
}

}  // namespace
}  // namespace stepcast::exec
