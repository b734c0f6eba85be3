// Point to point: rings of sends, receives and exchanges, both directions, groups of 1 to 5.
#include <gtest/gtest.h>

#include "tests/exec/tiny_program.h"

namespace stepcast::exec {
namespace {

using program::Channel;
using program::ShardKind;
using tiny::Access;
using tiny::OpKind;
using tiny::Stream;
using tiny::World;

constexpr std::int64_t kCols = 9;

// y [members, kCols] must be x with rows rotated by `offset`: row m holds what member m + offset sent.
void expect_rotated(const std::vector<float>& y, const std::string& source, int members, int offset) {
  ASSERT_EQ(y.size(), static_cast<std::size_t>(members * kCols));
  for (int m = 0; m < members; ++m) {
    const int from = ((m + offset) % members + members) % members;
    for (std::int64_t c = 0; c < kCols; ++c) {
      EXPECT_EQ(y[static_cast<std::size_t>(m * kCols + c)], tiny::initial(source, from * kCols + c)) << m << " " << c;
    }
  }
}

TEST(Messages, RingOfSendsAndReceivesOnStreamsOfTheirOwn) {
  for (int members = 1; members <= 5; ++members) {
    World world(members);
    for (int m = 0; m < members; ++m) {
      const auto x = world.shard(m, "x", members, kCols, m, 0, kCols);
      const auto y = world.shard(m, "y", members, kCols, m, 0, kCols, tiny::DType::kF32, ShardKind::kGradient);
      world.call(m, OpKind::kSend, Stream::kSendNext, {{x}}, "send",
                 [&](program::Op& op) { op.parts = {tiny::part(world, 0, true, 1)}; });
      world.call(m, OpKind::kReceive, Stream::kRecvPrev, {{y, Access::kWrite}}, "receive",
                 [&](program::Op& op) { op.parts = {tiny::part(world, 0, false, -1)}; });
    }
    const auto checked = world.take();
    Executor executor(checked, {});
    executor.run_step();
    expect_rotated(tiny::gathered(checked, executor, "y", ShardKind::kGradient), "x", members, -1);
  }
}

// One op per rank and round: activations to the next rank, gradients to the previous one, both ways at once.
TEST(Messages, ExchangeMovesBothDirections) {
  for (int members = 1; members <= 5; ++members) {
    World world(members);
    for (int m = 0; m < members; ++m) {
      const auto x = world.shard(m, "x", members, kCols, m, 0, kCols);
      const auto g = world.shard(m, "g", members, kCols, m, 0, kCols);
      const auto y = world.shard(m, "y", members, kCols, m, 0, kCols, tiny::DType::kF32, ShardKind::kGradient);
      const auto z = world.shard(m, "z", members, kCols, m, 0, kCols, tiny::DType::kF32, ShardKind::kGradient);
      world.call(m, OpKind::kExchange, Stream::kCp, {{x}, {y, Access::kWrite}, {g}, {z, Access::kWrite}}, "exchange",
                 [&](program::Op& op) {
                   op.parts = {tiny::part(world, 0, true, 1), tiny::part(world, 1, false, -1),
                               tiny::part(world, 2, true, -1, Channel::kGradient),
                               tiny::part(world, 3, false, 1, Channel::kGradient)};
                 });
    }
    const auto checked = world.take();
    Executor executor(checked, {});
    for (int step = 0; step < 20; ++step) executor.run_step();
    expect_rotated(tiny::gathered(checked, executor, "y", ShardKind::kGradient), "x", members, -1);
    expect_rotated(tiny::gathered(checked, executor, "z", ShardKind::kGradient), "g", members, 1);
  }
}

// Rank 0 sends the columns of x one by one; rank 1 receives them one by one: the n-th matches the n-th.
TEST(Messages, MatchInOrder) {
  World world(2);
  const auto x = world.shard(0, "x", 1, kCols, 0, 0, kCols);
  const auto y = world.shard(1, "y", 1, kCols, 0, 0, kCols, tiny::DType::kF32, ShardKind::kGradient);
  for (std::int64_t c = 0; c < kCols; ++c) {
    const auto from = world.at(0).view(world.at(0).at(x).buffer, c * 4, tiny::DType::kF32, {1});
    const auto to = world.at(1).view(world.at(1).at(y).buffer, c * 4, tiny::DType::kF32, {1});
    world.call(0, OpKind::kSend, Stream::kSendNext, {{from}}, "send",
               [&](program::Op& op) { op.parts = {tiny::part(world, 0, true, 1)}; });
    world.call(1, OpKind::kReceive, Stream::kRecvPrev, {{to, Access::kWrite}}, "receive",
               [&](program::Op& op) { op.parts = {tiny::part(world, 0, false, -1)}; });
  }
  const auto checked = world.take();
  Executor executor(checked, {});
  executor.run_step();
  expect_rotated(tiny::gathered(checked, executor, "y", ShardKind::kGradient), "x", 1, 0);
}

}  // namespace
}  // namespace stepcast::exec
