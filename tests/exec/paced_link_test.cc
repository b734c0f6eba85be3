// The paced link: how long a transfer has to take, and that it does. The only tests that sleep.
#include <gtest/gtest.h>

#include "exec/paced_link.h"
#include "tests/exec/tiny_program.h"

namespace stepcast::exec {
namespace {

using tiny::Access;
using tiny::OpKind;
using tiny::Stream;
using tiny::World;

// 4 members, 1,000 bytes: all-reduce 2 * 3/4, gathers 3/4. 3 members, 100 bytes: 2/3 of 100 rounds up to 67.
TEST(PacedLink, CountsRingBytes) {
  EXPECT_EQ(ring_bytes(OpKind::kAllReduce, Bytes(1000), 4).count, 1500);
  EXPECT_EQ(ring_bytes(OpKind::kAllGather, Bytes(1000), 4).count, 750);
  EXPECT_EQ(ring_bytes(OpKind::kReduceScatter, Bytes(100), 3).count, 67);
  EXPECT_EQ(ring_bytes(OpKind::kBroadcast, Bytes(1000), 4).count, 1000);
  EXPECT_EQ(ring_bytes(OpKind::kSend, Bytes(1000), 2).count, 1000);
  EXPECT_EQ(ring_bytes(OpKind::kAllReduce, Bytes(1000), 1).count, 0);
}

// 1 us + 1,500 B / 1 GB/s = 2.5 us.
TEST(PacedLink, AddsLatencyAndBytesOverBandwidth) {
  const std::optional<PacedLink> link = PacedLink{Duration(1'000'000), BytesPerSecond(1e9)};
  EXPECT_EQ(paced_time(link, OpKind::kAllReduce, Bytes(1000), 4).ps, 2'500'000);
  EXPECT_EQ(paced_time(link, OpKind::kAllReduce, Bytes(1000), 1).ps, 0);
  EXPECT_EQ(paced_time(std::nullopt, OpKind::kAllReduce, Bytes(1000), 4).ps, 0);
}

// Two members, 4,000 bytes at 1 MB/s: 2 * 1/2 * 4,000 B take 4 ms, 6 ms with the latency. What follows on the stream
// starts no earlier, and both members agree on transfer and end.
TEST(PacedLink, HoldsTheStreamsUntilTheLastByte) {
  World world(2);
  for (int m = 0; m < 2; ++m) {
    const auto x = world.shard(m, "x", 2, 1000, m, 0, 1000);
    world.collective(m, OpKind::kAllReduce, Stream::kTp, {{x, Access::kAccumulate}}, "reduce");
    world.call(m, OpKind::kZeroFill, Stream::kCompute, {{x, Access::kWrite}}, "zero");
  }
  const auto checked = world.take();
  Executor executor(checked, {.paced_link = PacedLink{Duration(2'000'000'000), BytesPerSecond(1e6)}});
  const StepResult result = executor.run_step();
  EXPECT_GE(result.time.ps, 6'000'000'000);
  const auto& tracks = executor.last_trace().tracks;
  for (const trace::Track& track : tracks) {
    EXPECT_GE((track.events[0].end - track.events[0].transfer).ps, 6'000'000'000);
    EXPECT_GE(track.events[1].begin, track.events[0].end);
  }
  EXPECT_EQ(tracks[0].events[0].end, tracks[1].events[0].end);
  EXPECT_EQ(tracks[0].events[0].transfer, std::max(tracks[0].events[0].begin, tracks[1].events[0].begin));
  EXPECT_EQ(tracks[0].events[0].transfer, tracks[1].events[0].transfer);
}

// 2,000 bytes at 1 MB/s and 1 ms latency: 3 ms for a message.
TEST(PacedLink, PacesMessages) {
  World world(2);
  const auto x = world.shard(0, "x", 1, 500, 0, 0, 500);
  const auto y = world.scratch(1, 500);
  world.call(0, OpKind::kSend, Stream::kSendNext, {{x}}, "send",
             [&](program::Op& op) { op.parts = {tiny::part(world, 0, true, 1)}; });
  world.call(1, OpKind::kReceive, Stream::kRecvPrev, {{y, Access::kWrite}}, "receive",
             [&](program::Op& op) { op.parts = {tiny::part(world, 0, false, -1)}; });
  const auto checked = world.take();
  Executor executor(checked, {.paced_link = PacedLink{Duration(1'000'000'000), BytesPerSecond(1e6)}});
  executor.run_step();
  for (const trace::Track& track : executor.last_trace().tracks) {
    EXPECT_GE((track.events[0].end - track.events[0].transfer).ps, 3'000'000'000);
  }
}

}  // namespace
}  // namespace stepcast::exec
