// The pool's rule for reuse, and counts worked out by hand. Against program/lifetimes: random_program_test.cc.
#include <gtest/gtest.h>

#include <cmath>

#include "exec/allocator.h"
#include "exec/block_pool.h"
#include "tests/exec/tiny_program.h"

namespace stepcast::exec {
namespace {

using program::Stream;
using tiny::Access;
using tiny::OpKind;
using tiny::World;

LastUse used_on(Stream s, std::uint32_t count) {
  LastUse use{};
  use[static_cast<std::size_t>(s)] = count;
  return use;
}

TEST(BlockPool, GivesABlockBackToItsOwnStreamAtOnce) {
  HostMemory memory;
  BlockPool pool(memory);
  const StreamProgress nothing_done;
  const auto a = pool.take(100, Stream::kCompute, nothing_done);
  EXPECT_TRUE(a.idle);
  pool.give(a.block, used_on(Stream::kCompute, 3));
  const auto b = pool.take(100, Stream::kCompute, nothing_done);
  EXPECT_EQ(b.block, a.block);
  EXPECT_FALSE(b.idle);
}

TEST(BlockPool, GrowsForOtherStreamsUntilTheLastUseHasCompleted) {
  HostMemory memory;
  BlockPool pool(memory);
  StreamProgress progress;
  const auto a = pool.take(100, Stream::kCompute, progress);
  pool.give(a.block, used_on(Stream::kCompute, 3));
  const std::int64_t bytes = pool.physical_bytes();
  const auto b = pool.take(100, Stream::kTp, progress);
  EXPECT_NE(b.block, a.block);
  EXPECT_EQ(pool.physical_bytes(), 2 * bytes);
  const auto unanchored = pool.take(100, std::nullopt, progress);
  EXPECT_NE(unanchored.block, a.block);
  progress.completed[static_cast<std::size_t>(Stream::kCompute)] = 2;
  EXPECT_NE(pool.take(100, Stream::kTp, progress).block, a.block);
  progress.completed[static_cast<std::size_t>(Stream::kCompute)] = 3;
  const auto c = pool.take(100, Stream::kTp, progress);
  EXPECT_EQ(c.block, a.block);
  EXPECT_TRUE(c.idle);
}

TEST(BlockPool, SettlesAtTheEndOfAStep) {
  HostMemory memory;
  BlockPool pool(memory);
  const StreamProgress nothing_done;
  const auto a = pool.take(100, Stream::kCompute, nothing_done);
  pool.give(a.block, used_on(Stream::kCompute, 3));
  pool.settle();
  EXPECT_EQ(pool.take(100, Stream::kTp, nothing_done).block, a.block);
}

TEST(BlockPool, DoesNotSpendABigBlockOnASmallOne) {
  HostMemory memory;
  BlockPool pool(memory);
  const StreamProgress nothing_done;
  const auto a = pool.take(1000, Stream::kCompute, nothing_done);
  pool.give(a.block, LastUse{});
  EXPECT_NE(pool.take(100, Stream::kCompute, nothing_done).block, a.block);
}

// x (persistent weight, 32 B) -> a (32 B) -> b (32 B): a lives over ops 0 and 1, b over 1 and 2. While op 1 is issued
// both are: 64 B of activations, 96 B in all.
TEST(Allocator, CountsExactBytesDuringEachIssue) {
  World world(1);
  const auto x = world.shard(0, "x", 1, 8, 0, 0, 8);
  const auto a = world.scratch(0, 8);
  const auto b = world.scratch(0, 8);
  world.call(0, OpKind::kCopy, Stream::kCompute, {{x}, {a, Access::kWrite}});
  world.call(0, OpKind::kCopy, Stream::kTp, {{a}, {b, Access::kWrite}});
  world.call(0, OpKind::kCopy, Stream::kCompute, {{b}, {x, Access::kWrite}});
  const auto checked = world.take();
  Executor executor(checked, {});
  for (int step = 0; step < 2; ++step) {
    executor.run_step();
    const trace::Track& track = executor.last_trace().tracks[0];
    EXPECT_EQ(track.class_peak, (std::array<std::int64_t, 5>{32, 0, 0, 64, 0}));
    EXPECT_EQ(track.peak, 96);
    ASSERT_EQ(track.memory.size(), 3U);
    EXPECT_EQ(track.memory[0].class_bytes[3], 32);
    EXPECT_EQ(track.memory[1].class_bytes[3], 64);
    EXPECT_EQ(track.memory[2].class_bytes[3], 32);
  }
  EXPECT_GE(executor.physical_bytes()[0], 96);
}

TEST(Allocator, DoesNotCountHostBuffers) {
  World world(1);
  const auto x = world.shard(0, "x", 1, 8, 0, 0, 8);
  auto& r = world.at(0);
  const auto host = r.buffer("host", 32, program::MemoryClass::kActivations, false, program::Space::kHost);
  const auto h = r.view(host, 0, tiny::DType::kF32, {8});
  world.call(0, OpKind::kCopy, Stream::kD2h, {{x}, {h, Access::kWrite}});
  world.call(0, OpKind::kCopy, Stream::kH2d, {{h}, {x, Access::kWrite}});
  const auto checked = world.take();
  Executor executor(checked, {});
  executor.run_step();
  EXPECT_EQ(executor.last_trace().tracks[0].peak, 32);
  EXPECT_EQ(tiny::gathered(checked, executor, "x", program::ShardKind::kWeight)[5], tiny::initial("x", 5));
}

void do_nothing(const kernels::KernelContext&) {}
kernels::Kernel idle_zero_fill(OpKind kind) {
  return kind == OpKind::kZeroFill ? &do_nothing : kernels::reference_kernel(kind);
}

// With a zero_fill that does nothing, what the copy reads is what nobody wrote.
TEST(Allocator, PoisonShowsMemoryNobodyWrote) {
  World world(1);
  const auto x = world.shard(0, "x", 1, 8, 0, 0, 8);
  const auto a = world.scratch(0, 8);
  world.call(0, OpKind::kZeroFill, Stream::kCompute, {{a, Access::kWrite}});
  world.call(0, OpKind::kCopy, Stream::kCompute, {{a}, {x, Access::kWrite}});
  const auto checked = world.take();
  Executor executor(checked, {.kernel_of = &idle_zero_fill, .poison = true});
  executor.run_step();
  for (const float v : tiny::gathered(checked, executor, "x", program::ShardKind::kWeight)) EXPECT_TRUE(std::isnan(v));
}

}  // namespace
}  // namespace stepcast::exec
