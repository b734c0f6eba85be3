// Where each picosecond goes, on timelines worked out by hand.
#include "sim/accounting.h"

#include <gtest/gtest.h>

#include "sim/prediction.h"
#include "tests/sim/tiny_program.h"

namespace stepcast::sim {
namespace {

using program::Stream;

TimeParts parts_of(const program::CheckedProgram& p, const CostModel& costs, std::uint32_t rank) {
  const Prediction prediction = simulate(p, costs, {.fold = false});
  EXPECT_EQ(prediction.classes[rank].time.sum(), prediction.step);
  return prediction.classes[rank].time;
}

Duration exposed(const TimeParts& parts, Exposed kind) { return parts.exposed[static_cast<std::size_t>(kind)]; }

TEST(Accounting, SplitsAWaitForACollectiveIntoBubbleAndBytes) {
  // Rank 0: compute 0-10, waits for rank 1 until 30 (bubble 20), bytes 30-35 (exposed tp 5), compute 35-37.
  // Rank 1: compute 0-30, exposed 5, compute 35-37.
  TinyProgram t(2, {0, 1});
  for (const std::size_t r : {0U, 1U}) {
    t.work(r, r == 0 ? "fast" : "slow", {}, "x");
    t.all_reduce(r, "reduce", "tp", "x", Stream::kTp);
    t.work(r, "use", {"x"}, "y");
  }
  t.group("tp", {0, 1});
  const TableCosts costs({{"fast", 10}, {"slow", 30}, {"reduce", 5}, {"use", 2}});
  const program::CheckedProgram p = t.checked();
  const TimeParts first = parts_of(p, costs, 0);
  EXPECT_EQ(first.compute, Duration(12));
  EXPECT_EQ(first.bubble, Duration(20));
  EXPECT_EQ(exposed(first, Exposed::kTp), Duration(5));
  const TimeParts second = parts_of(p, costs, 1);
  EXPECT_EQ(second.compute, Duration(32));
  EXPECT_EQ(second.bubble, Duration(0));
  EXPECT_EQ(exposed(second, Exposed::kTp), Duration(5));
}

TEST(Accounting, OnTheComputeStreamTheRoleNamesTheKind) {
  // The role's name is all that tells: 5 of tp, 7 of ep, 11 of a role of no kind of its own (dp).
  TinyProgram t(1, {0});
  t.all_reduce(0, "a", "tp", "x", Stream::kCompute);
  t.all_reduce(0, "b", "ep", "x", Stream::kCompute);
  t.all_reduce(0, "c", "world", "x", Stream::kCompute);
  for (const char* role : {"tp", "ep", "world"}) t.group(role, {0});
  const TimeParts parts = parts_of(t.checked(), TableCosts({{"a", 5}, {"b", 7}, {"c", 11}}), 0);
  EXPECT_EQ(exposed(parts, Exposed::kTp), Duration(5));
  EXPECT_EQ(exposed(parts, Exposed::kEp), Duration(7));
  EXPECT_EQ(exposed(parts, Exposed::kDp), Duration(11));
}

TEST(Accounting, HiddenCommunicationCostsNothing) {
  // The reduction (5) runs 10-15 beside "other" 10-22; "use" starts at 22 for its stream's sake: nothing is exposed.
  TinyProgram t(1, {0});
  t.work(0, "a", {}, "x");
  t.all_reduce(0, "reduce", "dp", "x", Stream::kDp);
  t.work(0, "other", {}, "z");
  t.work(0, "use", {"x"}, "y");
  t.group("dp", {0});
  const TimeParts parts = parts_of(t.checked(), TableCosts({{"a", 10}, {"reduce", 5}, {"other", 12}, {"use", 1}}), 0);
  EXPECT_EQ(parts.compute, Duration(23));
  EXPECT_EQ(parts.sum(), parts.compute);
}

TEST(Accounting, AWaitBehindOtherCommunicationIsExposedToThat) {
  // dp: first 10-30, second queued behind it 30-35, "use" waits for the second only. The gap 12-35 is bytes throughout:
  // the first's 12-30 and the second's 30-35, 23 in all, although the first is nothing "use" needs.
  TinyProgram t(1, {0});
  t.work(0, "a", {}, "x");
  t.all_reduce(0, "first", "dp", "x", Stream::kDp);
  t.all_reduce(0, "second", "dp", "y", Stream::kDp);
  t.work(0, "b", {}, "z");
  t.work(0, "use", {"y"}, "w");
  t.group("dp", {0});
  const TimeParts parts =
      parts_of(t.checked(), TableCosts({{"a", 10}, {"first", 20}, {"second", 5}, {"b", 2}, {"use", 1}}), 0);
  EXPECT_EQ(parts.compute, Duration(13));
  EXPECT_EQ(exposed(parts, Exposed::kDp), Duration(23));
}

TEST(Accounting, AReceiveIsBubbleUntilTheSenderIsThere) {
  // Rank 1 waits 0-20 for the sender (bubble), 20-23 for the bytes (pp); then computes 4. Rank 0 computes 20, its own
  // send runs 20-23 (pp, after its last compute op), and it waits 23-27 for rank 1 to end the step (bubble).
  TinyProgram t(2, {0, 1});
  t.work(0, "compute", {}, "x");
  t.send(0, "send", {true, "pp", 1, "x"}, Stream::kSendNext);
  t.receive(1, "receive", {false, "pp", -1, "x"}, Stream::kRecvPrev);
  t.work(1, "use", {"x"}, "y");
  t.group("pp", {0, 1});
  TableCosts costs({{"compute", 20}, {"use", 4}});
  costs.message = 3;
  const program::CheckedProgram p = t.checked();
  const TimeParts sender = parts_of(p, costs, 0);
  EXPECT_EQ(sender.compute, Duration(20));
  EXPECT_EQ(exposed(sender, Exposed::kPp), Duration(3));
  EXPECT_EQ(sender.bubble, Duration(4));
  const TimeParts receiver = parts_of(p, costs, 1);
  EXPECT_EQ(receiver.compute, Duration(4));
  EXPECT_EQ(exposed(receiver, Exposed::kPp), Duration(3));
  EXPECT_EQ(receiver.bubble, Duration(20));
}

TEST(Accounting, GapsOfSlowLaunchesAreHost) {
  // Launch 4: a is issued at 4 and runs 4-5; b is issued at 8 and runs 8-18. Host: 0-4 and 5-8.
  TinyProgram t(1, {0});
  t.work(0, "a", {}, "x");
  t.work(0, "b", {}, "y");
  TableCosts costs({{"a", 1}, {"b", 10}});
  costs.launch = 4;
  const TimeParts parts = parts_of(t.checked(), costs, 0);
  EXPECT_EQ(parts.compute, Duration(11));
  EXPECT_EQ(parts.host, Duration(7));
}

TEST(Accounting, AHostBlockedInAReadIsWaitingForTheRead) {
  // Launch 1. a 1-11; the read waits for a and copies 11-13 (copy 2); the host goes on and launches b at 14 (host 1).
  // With the launch before a: host 2 in all.
  TinyProgram t(1, {0});
  t.work(0, "a", {}, "x");
  t.host_read(0, "read", "x", Stream::kD2h);
  t.work(0, "b", {}, "y");
  TableCosts costs({{"a", 10}, {"read", 2}, {"b", 3}});
  costs.launch = 1;
  const TimeParts parts = parts_of(t.checked(), costs, 0);
  EXPECT_EQ(parts.compute, Duration(13));
  EXPECT_EQ(exposed(parts, Exposed::kCopy), Duration(2));
  EXPECT_EQ(parts.host, Duration(2));
}

TEST(Accounting, ComputeOfTheOptimizerPassIsOptimizer) {
  TinyProgram t(1, {0});
  t.work(0, "a", {}, "x");
  t.set_pass(program::Pass::kOptimizer);
  t.work(0, "adam", {}, "y");
  const TimeParts parts = parts_of(t.checked(), TableCosts({{"a", 10}, {"adam", 3}}), 0);
  EXPECT_EQ(parts.compute, Duration(10));
  EXPECT_EQ(parts.optimizer, Duration(3));
}

TEST(Accounting, AnExchangeIsBubbleBetweenItsMessages) {
  // Messages of 3 with rank 1 (there at 10: 10-13) and rank 2 (there at 40: 40-43): 6 of bytes, 0-10 and 13-40 bubble.
  TinyProgram t(3, {0, 1, 2});
  t.exchange(0, "both", {{true, "cp", 1, "x"}, {false, "cp", 2, "y"}}, Stream::kCp);
  t.work(0, "use", {"y"}, "z");
  t.work(1, "short", {}, "y");
  t.receive(1, "receive", {false, "cp", -1, "y"}, Stream::kCp);
  t.work(2, "long", {}, "x");
  t.send(2, "send", {true, "cp", 1, "x"}, Stream::kCp);
  t.group("cp", {0, 1, 2});
  TableCosts costs({{"short", 10}, {"long", 40}, {"use", 1}});
  costs.message = 3;
  const TimeParts parts = parts_of(t.checked(), costs, 0);
  EXPECT_EQ(exposed(parts, Exposed::kCp), Duration(6));
  EXPECT_EQ(parts.bubble, Duration(37));
  EXPECT_EQ(parts.compute, Duration(1));
}

}  // namespace
}  // namespace stepcast::sim
