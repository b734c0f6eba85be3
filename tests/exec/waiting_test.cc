// Who waits for whom, from boards that are set by hand as a job that has stopped moving leaves them.
#include "exec/waiting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/exec/tiny_program.h"

namespace stepcast::exec {
namespace {

using program::RankId;
using tiny::Access;
using tiny::OpKind;
using tiny::Stream;
using tiny::World;

// Rank 0 sends to 1, 1 to 2; then all three reduce twice. Flat ops of rank 0: send, reduce, reduce; of rank 1: receive,
// send, reduce, reduce; of rank 2: receive, reduce, reduce.
program::CheckedProgram chain() {
  World world(3);
  for (int m = 0; m < 3; ++m) {
    const auto x = world.shard(m, "x", 3, 8, m, 0, 8);
    if (m > 0) {
      world.call(m, OpKind::kReceive, Stream::kRecvPrev, {{x, Access::kWrite}}, "receive",
                 [&](program::Op& op) { op.parts = {tiny::part(world, 0, false, -1)}; });
    }
    if (m < 2) {
      world.call(m, OpKind::kSend, Stream::kSendNext, {{x}}, "send",
                 [&](program::Op& op) { op.parts = {tiny::part(world, 0, true, 1)}; });
    }
    world.collective(m, OpKind::kAllReduce, Stream::kTp, {{x, Access::kAccumulate}}, "first");
    world.collective(m, OpKind::kAllReduce, Stream::kTp, {{x, Access::kAccumulate}}, "second");
  }
  return world.take();
}

class WaitingTest : public ::testing::Test {
 protected:
  WaitingTest() : checked_(chain()), boards_(3) {
    for (StatusBoard& board : boards_) board.begin_step(1);
  }

  Waiting waiting(std::vector<std::size_t> unseen = {}) {
    return {checked_, [this, unseen](RankId rank) -> const StatusBoard* {
              const bool hidden = std::find(unseen.begin(), unseen.end(), rank.value) != unseen.end();
              return hidden ? nullptr : &boards_[rank.value];
            }};
  }
  static std::vector<std::size_t> values(const std::vector<RankId>& ranks) {
    std::vector<std::size_t> numbers;
    for (const RankId rank : ranks) numbers.push_back(rank.value);
    return numbers;
  }
  static bool always(RankId) { return true; }

  program::CheckedProgram checked_;
  std::vector<StatusBoard> boards_;
};

using Ranks = std::vector<std::size_t>;

// Ranks 0 and 2 are in the second reduction, rank 1 still holds the first one back.
TEST_F(WaitingTest, CountsCollectivesOfAGroup) {
  boards_[0].set_stream(Stream::kTp, StreamPhase::kWaitingPeers, 2);
  boards_[1].set_stream(Stream::kTp, StreamPhase::kWaitingEdge, 2, 1);
  boards_[2].set_stream(Stream::kTp, StreamPhase::kWaitingPeers, 1);
  EXPECT_EQ(values(waiting().awaited(RankId(0))), (Ranks{1, 2}));
  EXPECT_EQ(values(waiting().awaited(RankId(2))), (Ranks{1}));
  // It has arrived there, and in the first one for good.
  boards_[1].set_stream(Stream::kTp, StreamPhase::kWaitingPeers, 3);
  EXPECT_EQ(values(waiting().awaited(RankId(0))), (Ranks{2}));
  EXPECT_EQ(values(waiting().awaited(RankId(2))), (Ranks{}));
}

TEST_F(WaitingTest, TellsStepsApart) {
  boards_[0].begin_step(2);
  boards_[0].set_stream(Stream::kTp, StreamPhase::kWaitingPeers, 1);
  boards_[1].set_stream(Stream::kTp, StreamPhase::kIdle, 3);  // of the step before
  boards_[2].begin_step(3);
  EXPECT_EQ(values(waiting().awaited(RankId(0))), (Ranks{1}));
}

TEST_F(WaitingTest, BeforeAStepIsForThoseThatHaveNotBegunIt) {
  boards_[0].begin_step(2);
  boards_[0].set_host(HostPhase::kMeeting, 0);
  boards_[2].begin_step(2);
  EXPECT_EQ(values(waiting().awaited(RankId(0))), (Ranks{1}));
}

// Rank 2 waits for the message of 1, which waits for that of 0, which runs a kernel: 0 holds both.
TEST_F(WaitingTest, FindsTheOneThatAllWaitFor) {
  boards_[0].set_stream(Stream::kCompute, StreamPhase::kRunning, 0);
  boards_[1].set_stream(Stream::kRecvPrev, StreamPhase::kWaitingPeers, 0);
  boards_[2].set_stream(Stream::kRecvPrev, StreamPhase::kWaitingPeers, 0);
  EXPECT_EQ(values(waiting().awaited(RankId(2))), (Ranks{1}));
  EXPECT_EQ(waiting().holder(RankId(2), always), RankId(0));
  // Not while it moves.
  EXPECT_EQ(waiting().holder(RankId(2), [](RankId rank) { return rank != RankId(0); }), std::nullopt);
  EXPECT_EQ(waiting().current_call(RankId(0)), "F.m0.t.send");
}

// A rank in a kernel also waits, on another stream, for one that waits for it: it is not a circle.
TEST_F(WaitingTest, ARankInAKernelHoldsOthersWhateverItsStreamsWaitFor) {
  boards_[0].set_stream(Stream::kTp, StreamPhase::kWaitingPeers, 1);
  boards_[1].set_stream(Stream::kRecvPrev, StreamPhase::kWaitingPeers, 0);
  boards_[1].set_stream(Stream::kCompute, StreamPhase::kRunning, 0);
  boards_[2].set_stream(Stream::kTp, StreamPhase::kWaitingPeers, 1);
  EXPECT_EQ(waiting().holder(RankId(0), always), RankId(1));
}

TEST_F(WaitingTest, ACircleHasNoHolder) {
  boards_[0].set_stream(Stream::kTp, StreamPhase::kWaitingPeers, 1);
  boards_[1].set_stream(Stream::kRecvPrev, StreamPhase::kWaitingPeers, 0);
  boards_[2].set_stream(Stream::kTp, StreamPhase::kWaitingPeers, 1);
  EXPECT_EQ(waiting().holder(RankId(0), always), std::nullopt);
}

TEST_F(WaitingTest, ARankThatCannotBeSeenIsWaitedFor) {
  boards_[0].set_stream(Stream::kTp, StreamPhase::kWaitingPeers, 1);
  EXPECT_EQ(values(waiting({1, 2}).awaited(RankId(0))), (Ranks{1, 2}));
  EXPECT_EQ(waiting({1, 2}).holder(RankId(0), always), RankId(1));
  EXPECT_NE(waiting({1, 2}).line(RankId(0)).find("tp in F.m1.t.first waits for ranks 1, 2"), std::string::npos);
}

}  // namespace
}  // namespace stepcast::exec
