// Order: streams in order, cross-stream edges, the host running ahead and blocking, and what the trace says of it.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "tests/exec/tiny_program.h"

namespace stepcast::exec {
namespace {

using program::ShardKind;
using tiny::Access;
using tiny::OpKind;
using tiny::Stream;
using tiny::World;

// y = x + x, again and again, each time on another stream: after 12 doublings every element is exactly 4096 times its
// start, if and only if each op saw the one before it.
TEST(StreamOrder, ReadsAfterWritesAcrossStreams) {
  World world(1);
  const auto x = world.shard(0, "x", 1, 50, 0, 0, 50);
  const auto y = world.scratch(0, 50);
  for (int i = 0; i < 12; ++i) {
    const auto stream = static_cast<Stream>(i % 5);
    const auto from = i % 2 == 0 ? x : y;
    const auto to = i % 2 == 0 ? y : x;
    world.call(0, OpKind::kAdd, stream, {{from}, {from}, {to, Access::kWrite}});
  }
  const auto checked = world.take();
  Executor executor(checked, {});
  const int steps = 5;
  for (int step = 0; step < steps; ++step) executor.run_step();
  const auto after = tiny::gathered(checked, executor, "x", ShardKind::kWeight);
  for (std::size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(after[i], std::ldexp(tiny::initial("x", static_cast<std::int64_t>(i)), 12 * steps)) << i;
  }
}

// A ring of two slots: the gather stream fills slot i % 2 with row i, the compute stream adds it to the sum. Only the
// write-after-read edge keeps row i + 2 out of the slot until row i has been added.
TEST(StreamOrder, RingIsNotOverwrittenBeforeItIsRead) {
  constexpr std::int64_t kRows = 40;
  constexpr std::int64_t kWidth = 64;
  World world(1);
  const auto sum = world.shard(0, "sum", 1, kWidth, 0, 0, kWidth, tiny::DType::kF32, ShardKind::kGradient);
  const std::array<program::ViewId, 2> ring{world.scratch(0, kWidth), world.scratch(0, kWidth)};
  world.call(0, OpKind::kZeroFill, Stream::kCompute, {{sum, Access::kWrite}});
  for (std::int64_t i = 0; i < kRows; ++i) {
    const auto row = world.shard(0, "x", kRows, kWidth, i, 0, kWidth);
    const auto slot = ring[static_cast<std::size_t>(i % 2)];
    world.call(0, OpKind::kCopy, Stream::kGather, {{row}, {slot, Access::kWrite}});
    world.call(0, OpKind::kAccumulate, Stream::kCompute, {{slot}, {sum, Access::kAccumulate}});
  }
  const auto checked = world.take();
  Executor executor(checked, {.poison = true});
  for (int step = 0; step < 20; ++step) {
    executor.run_step();
    const auto result = tiny::gathered(checked, executor, "sum", ShardKind::kGradient);
    for (std::int64_t c = 0; c < kWidth; ++c) {
      float expected = 0;
      for (std::int64_t i = 0; i < kRows; ++i) expected += tiny::initial("x", i * kWidth + c);
      ASSERT_EQ(result[static_cast<std::size_t>(c)], expected) << step << " " << c;
    }
  }
}

// Ops of one stream never overlap, and an op never begins before its predecessors have ended.
TEST(StreamOrder, TraceRespectsStreamsAndEdges) {
  World world(1);
  const auto x = world.shard(0, "x", 1, 8, 0, 0, 8);
  const auto y = world.scratch(0, 8);
  world.call(0, OpKind::kCopy, Stream::kCompute, {{x}, {y, Access::kWrite}});
  world.call(0, OpKind::kAdd, Stream::kTp, {{x}, {y}, {x, Access::kWrite}});
  world.call(0, OpKind::kZeroFill, Stream::kCompute, {{y, Access::kWrite}});
  world.call(0, OpKind::kJoin, Stream::kDp, {}, "join",
             [](program::Op& op) { op.attributes.join_stream = Stream::kCompute; });
  const auto checked = world.take();
  Executor executor(checked, {});
  executor.run_step();
  const trace::Trace& trace = executor.last_trace();
  EXPECT_EQ(trace.source, "exec");
  EXPECT_EQ(trace.fingerprint, checked.fingerprint());
  EXPECT_EQ(trace.class_of_rank, std::vector<std::uint32_t>{0});
  ASSERT_EQ(trace.tracks.size(), 1U);
  const auto& events = trace.tracks[0].events;
  ASSERT_EQ(events.size(), 4U);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(events[i].id, (trace::OpId{i, 0}));
    EXPECT_LE(events[i].issue, events[i].begin);
    EXPECT_LE(events[i].begin, events[i].end);
    if (i > 0) {
      EXPECT_LE(events[i - 1].issue, events[i].issue);
      EXPECT_LE(events[i - 1].end, events[i].begin);  // each op here depends on the one before it
    }
  }
  EXPECT_EQ(events[3].stream, static_cast<std::uint8_t>(Stream::kDp));
}

TEST(StreamOrder, HostReadBlocksTheHostUntilItIsDone) {
  World world(1);
  const auto x = world.shard(0, "x", 1, 8, 0, 0, 8);
  const auto y = world.shard(0, "y", 1, 8, 0, 0, 8);
  world.call(0, OpKind::kZeroFill, Stream::kCompute, {{x, Access::kWrite}});
  world.call(0, OpKind::kHostRead, Stream::kD2h, {{x}}, "read");
  world.call(0, OpKind::kZeroFill, Stream::kTp, {{y, Access::kWrite}});  // depends on nothing
  const auto checked = world.take();
  Executor executor(checked, {});
  executor.run_step();
  const auto& events = executor.last_trace().tracks[0].events;
  EXPECT_LE(events[0].end, events[1].begin);
  EXPECT_LE(events[1].end, events[2].issue);
}

// A kernel that runs until it is let go: a kernel gets no state of its own, so this one looks at the test's.
std::atomic<bool> released{false};
void wait_for_release(const kernels::KernelContext&) {
  while (!released.load()) std::this_thread::yield();
}
kernels::Kernel held_kernels(OpKind kind) {
  return kind == OpKind::kZeroFill ? &wait_for_release : kernels::reference_kernel(kind);
}

TEST(StreamOrder, HostRunsAheadWithoutBound) {
  constexpr int kOps = 2000;
  World world(1);
  const auto x = world.shard(0, "x", 1, 8, 0, 0, 8);
  const auto y = world.shard(0, "y", 1, 8, 0, 0, 8);
  world.call(0, OpKind::kZeroFill, Stream::kCompute, {{x, Access::kWrite}}, "held");
  for (int i = 0; i < kOps; ++i) world.call(0, OpKind::kAccumulate, Stream::kTp, {{x}, {y, Access::kAccumulate}});
  const auto checked = world.take();
  released = false;
  Executor executor(checked, {.kernel_of = &held_kernels});
  std::thread runner([&] { executor.run_step(); });
  // The host is done while the very first op still runs and the second waits for it.
  const std::string expected = "rank 0: host finished; compute runs F.m0.t.held; tp holds F.m1.t.op until F.m0.t.held";
  while (executor.status().front() != expected) std::this_thread::yield();
  released = true;
  runner.join();
  EXPECT_EQ(executor.status().front(), "rank 0: host finished");
}

// Writes the step, the index and the size of the index role.
void tell_context(const kernels::KernelContext& k) {
  auto* out = static_cast<float*>(k.operands[0].data);
  out[0] = static_cast<float>(k.step);
  out[1] = static_cast<float>(k.index);
  out[2] = static_cast<float>(k.index_count);
}
kernels::Kernel telling_kernels(OpKind) { return &tell_context; }

TEST(StreamOrder, KernelsLearnStepAndIndex) {
  World world(3);
  for (int m = 0; m < 3; ++m) {
    const auto x = world.shard(m, "x", 3, 3, m, 0, 3);
    world.call(m, OpKind::kZeroFill, Stream::kCompute, {{x, Access::kWrite}}, "tell",
               [&](program::Op& op) { op.index_role = world.role(); });
  }
  const auto checked = world.take();
  Executor executor(checked, {.kernel_of = &telling_kernels});
  executor.run_step();
  EXPECT_EQ(tiny::gathered(checked, executor, "x", ShardKind::kWeight),
            (std::vector<float>{1, 0, 3, 1, 1, 3, 1, 2, 3}));
  executor.run_step();
  EXPECT_EQ(tiny::gathered(checked, executor, "x", ShardKind::kWeight),
            (std::vector<float>{2, 0, 3, 2, 1, 3, 2, 2, 3}));
}

}  // namespace
}  // namespace stepcast::exec
