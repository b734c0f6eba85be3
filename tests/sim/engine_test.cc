// Timelines worked out by hand. Times are picoseconds after the start of the step.
#include "sim/engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "base/error.h"
#include "sim/prediction.h"
#include "tests/sim/tiny_program.h"

namespace stepcast::sim {
namespace {

using program::Channel;
using program::Stream;

// One line per op: "r0 name issue begin transfer end", ranks in order, ops as issued.
std::string timeline(const program::CheckedProgram& p, const CostModel& costs, bool fold = false) {
  std::ostringstream text;
  for (const ClassResult& c : simulate(p, costs, {.fold = fold}).classes) {
    const program::RankProgram& r = p.program().rank_programs[p.program().ranks[c.representative].program];
    for (const trace::Event& e : c.events) {
      const program::Op& op = p.program().segments[r.calls[e.id.call].segment].ops[e.id.op];
      text << "r" << c.representative.value << " " << op.name << " " << e.issue.ps << " " << e.begin.ps << " "
           << e.transfer.ps << " " << e.end.ps << "\n";
    }
  }
  return text.str();
}

TEST(Engine, OrdersOpsByStreamAndEdges) {
  // a (10) writes x; b (5) on the dp stream reads x; c (7) on compute is free of both; d (1) reads b's result.
  // a 0-10, b 10-15, c queues behind a: 10-17, d needs c's stream and b: 17-18.
  TinyProgram t(1, {0});
  t.work(0, "a", {}, "x");
  t.work(0, "b", {"x"}, "y", Stream::kDp);
  t.work(0, "c", {}, "z");
  t.work(0, "d", {"y"}, "w");
  const TableCosts costs({{"a", 10}, {"b", 5}, {"c", 7}, {"d", 1}});
  EXPECT_EQ(timeline(t.checked(), costs),
            "r0 a 0 0 0 10\n"
            "r0 b 0 10 10 15\n"
            "r0 c 0 10 10 17\n"
            "r0 d 0 17 17 18\n");
}

TEST(Engine, AnOpStartsNoEarlierThanItsIssue) {
  // Launches cost 4 each: issues at 4, 8, 12. a (1) 4-5; b (10) 8-18; c waits for its stream: 18-19.
  TinyProgram t(1, {0});
  t.work(0, "a", {}, "x");
  t.work(0, "b", {}, "y");
  t.work(0, "c", {}, "z");
  TableCosts costs({{"a", 1}, {"b", 10}, {"c", 1}});
  costs.launch = 4;
  EXPECT_EQ(timeline(t.checked(), costs),
            "r0 a 4 4 4 5\n"
            "r0 b 8 8 8 18\n"
            "r0 c 12 18 18 19\n");
}

TEST(Engine, AGraphCostsOneLaunch) {
  // a is launched by itself at 4; b and c are one graph of 6: both are issued at 10; d at 14.
  TinyProgram t(1, {0});
  t.work(0, "a", {}, "x");
  const std::uint32_t begin = t.calls(0);
  t.work(0, "b", {}, "y");
  t.work(0, "c", {}, "z");
  t.mark_graph(0, begin);
  t.work(0, "d", {}, "w");
  TableCosts costs({{"b", 1}, {"c", 1}});
  costs.launch = 4;
  costs.graph_launch = 6;
  EXPECT_EQ(timeline(t.checked(), costs),
            "r0 a 4 4 4 4\n"
            "r0 b 10 10 10 11\n"
            "r0 c 10 11 11 12\n"
            "r0 d 14 14 14 14\n");
}

TEST(Engine, ACollectiveMovesDataFromTheLatestMember) {
  // Rank 0 is ready at 10, rank 1 at 30: rank 0 holds its stream from 10, data moves 30-35 for both.
  TinyProgram t(2, {0, 1});
  for (const std::size_t r : {0U, 1U}) {
    t.work(r, r == 0 ? "fast" : "slow", {}, "x");
    t.all_reduce(r, "reduce", "dp", "x", Stream::kDp);
    t.work(r, "use", {"x"}, "y");
  }
  t.group("dp", {0, 1});
  const TableCosts costs({{"fast", 10}, {"slow", 30}, {"reduce", 5}, {"use", 2}});
  EXPECT_EQ(timeline(t.checked(), costs),
            "r0 fast 0 0 0 10\n"
            "r0 reduce 0 10 30 35\n"
            "r0 use 0 35 35 37\n"
            "r1 slow 0 0 0 30\n"
            "r1 reduce 0 30 30 35\n"
            "r1 use 0 35 35 37\n");
}

TEST(Engine, TheNthOpsOfAGroupMatchAndGroupsAreApart) {
  // Groups {0,1} and {2,3} of one role. Ranks 0, 1, 2 take 1 before the first reduction, rank 3 takes 100: only rank 2
  // waits.
  TinyProgram t(2, {0, 0, 0, 1});
  for (const std::size_t r : {0U, 1U}) {
    t.work(r, r == 0 ? "fast" : "slow", {}, "x");
    t.all_reduce(r, "first", "dp", "x", Stream::kDp);
    t.all_reduce(r, "second", "dp", "y", Stream::kDp);
  }
  t.group("dp", {0, 1});
  t.group("dp", {2, 3});
  const TableCosts costs({{"fast", 1}, {"slow", 100}, {"first", 5}, {"second", 7}});
  const std::string expected =
      "r0 fast 0 0 0 1\n"
      "r0 first 0 1 1 6\n"
      "r0 second 0 6 6 13\n"
      "r2 fast 0 0 0 1\n"
      "r2 first 0 1 100 105\n"
      "r2 second 0 105 105 112\n"
      "r3 slow 0 0 0 100\n"
      "r3 first 0 100 100 105\n"
      "r3 second 0 105 105 112\n";
  EXPECT_EQ(timeline(t.checked(), costs, true), expected);
}

TEST(Engine, AMessageWaitsForBothSides) {
  // The receiver holds its stream from 0; the sender computes until 20; the message takes 3.
  TinyProgram t(2, {0, 1});
  t.work(0, "compute", {}, "x");
  t.send(0, "send", {true, "pp", 1, "x"}, Stream::kSendNext);
  t.receive(1, "receive", {false, "pp", -1, "x"}, Stream::kRecvPrev);
  t.work(1, "use", {"x"}, "y");
  t.group("pp", {0, 1});
  TableCosts costs({{"compute", 20}, {"use", 4}});
  costs.message = 3;
  EXPECT_EQ(timeline(t.checked(), costs),
            "r0 compute 0 0 0 20\n"
            "r0 send 0 20 20 23\n"
            "r1 receive 0 0 20 23\n"
            "r1 use 0 23 23 27\n");
}

TEST(Engine, WithTwoStagesNextAndPreviousAreOneRankButDirectionsStayApart) {
  // Stage 0 sends activation a at 10 (offset +1) and receives the gradient (offset +1, from the same rank); stage 1
  // sends it (offset -1) at 13 + 5 = 18. Each message takes 3. If lanes were keyed by peer alone, the two would be
  // mixed up.
  TinyProgram t(2, {0, 1});
  t.work(0, "f", {}, "a");
  t.send(0, "send_a", {true, "pp", 1, "a", Channel::kActivation}, Stream::kSendNext);
  t.receive(0, "recv_g", {false, "pp", 1, "g", Channel::kGradient}, Stream::kRecvNext);
  t.receive(1, "recv_a", {false, "pp", -1, "a", Channel::kActivation}, Stream::kRecvPrev);
  t.work(1, "fb", {"a"}, "g");
  t.send(1, "send_g", {true, "pp", -1, "g", Channel::kGradient}, Stream::kSendPrev);
  t.group("pp", {0, 1});
  TableCosts costs({{"f", 10}, {"fb", 5}});
  costs.message = 3;
  EXPECT_EQ(timeline(t.checked(), costs),
            "r0 f 0 0 0 10\n"
            "r0 send_a 0 10 10 13\n"
            "r0 recv_g 0 0 18 21\n"
            "r1 recv_a 0 0 10 13\n"
            "r1 fb 0 13 13 18\n"
            "r1 send_g 0 18 18 21\n");
}

TEST(Engine, AnExchangeEndsWithItsLastMessage) {
  // Rank 0 exchanges with rank 1 (ready at 10) and rank 2 (ready at 40); a message takes 3. Its messages end at 13 and
  // 43; rank 1 is through at 13. The transfer shown is that of the message that ends last.
  TinyProgram t(3, {0, 1, 2});
  t.exchange(0, "both", {{true, "cp", 1, "x"}, {false, "cp", 2, "y"}}, Stream::kCp);
  t.work(1, "short", {}, "x");
  t.work(1, "again", {"x"}, "y");
  t.receive(1, "receive", {false, "cp", -1, "y"}, Stream::kCp);
  t.work(2, "long", {}, "x");
  t.send(2, "send", {true, "cp", 1, "x"}, Stream::kCp);
  t.group("cp", {0, 1, 2});
  TableCosts costs({{"short", 6}, {"again", 4}, {"long", 40}});
  costs.message = 3;
  EXPECT_EQ(timeline(t.checked(), costs),
            "r0 both 0 0 40 43\n"
            "r1 short 0 0 0 6\n"
            "r1 again 0 6 6 10\n"
            "r1 receive 0 10 10 13\n"
            "r2 long 0 0 0 40\n"
            "r2 send 0 40 40 43\n");
}

// Messages with device 1 take 50, others the table's time.
class SlowLinkCosts : public TableCosts {
 public:
  using TableCosts::TableCosts;
  PathClass path_class(std::span<const std::int32_t> devices) const override {
    return std::count(devices.begin(), devices.end(), 1) > 0 ? 1 : 0;
  }
  TransferCost message_cost(Bytes bytes, PathClass path) const override {
    return path == 1 ? Duration(50) : TableCosts::message_cost(bytes, path);
  }
};

TEST(Engine, AnExchangeTransfersFromItsLatestPartnersStart) {
  // Rank 1 is there at 10 and its message runs 10-60; rank 2 is there at 40 and its message runs 40-43.
  TinyProgram t(3, {0, 1, 2});
  t.exchange(0, "both", {{true, "cp", 1, "x"}, {false, "cp", 2, "y"}}, Stream::kCp);
  t.work(1, "short", {}, "y");
  t.receive(1, "receive", {false, "cp", -1, "y"}, Stream::kCp);
  t.work(2, "long", {}, "x");
  t.send(2, "send", {true, "cp", 1, "x"}, Stream::kCp);
  t.group("cp", {0, 1, 2});
  SlowLinkCosts costs({{"short", 10}, {"long", 40}});
  costs.message = 3;
  EXPECT_EQ(timeline(t.checked(), costs),
            "r0 both 0 0 40 60\n"
            "r1 short 0 0 0 10\n"
            "r1 receive 0 10 10 60\n"
            "r2 long 0 0 0 40\n"
            "r2 send 0 40 40 43\n");
}

TEST(Engine, RefusesAStepOfOver106Days) {
  // Two ops of 5e18 ps: 1e19 does not fit 63 bits (9.2e18).
  TinyProgram t(1, {0});
  t.work(0, "a", {}, "x");
  t.work(0, "b", {}, "y");
  const TableCosts costs({{"a", 5'000'000'000'000'000'000}, {"b", 5'000'000'000'000'000'000}});
  const program::CheckedProgram p = t.checked();
  EXPECT_THROW(simulate(p, costs, {}), Error);
  EXPECT_THROW(relax(p, costs, {}), Error);
}

// 100,000 ops are more than one look; what a look throws ends the run.
TEST(Engine, LetsAWatchLookInAndEndIt) {
  TinyProgram t(1, {0});
  for (int i = 0; i < 100'000; ++i) t.work(0, "a", {}, "x");
  const TableCosts costs({{"a", 10}});
  const program::CheckedProgram p = t.checked();
  std::vector<std::int64_t> looks;
  SimOptions options;
  options.watch = [&looks](std::int64_t ops) { looks.push_back(ops); };
  const Duration step = simulate(p, costs, options).step;
  EXPECT_EQ(step, simulate(p, costs, {}).step);
  ASSERT_EQ(looks.size(), 3u);
  EXPECT_EQ(looks[0], 0);
  EXPECT_EQ(looks[1], kOpsBetweenLooks);
  EXPECT_EQ(looks[1] + looks[2], 100'000);
  struct Enough {};
  options.watch = [](std::int64_t ops) {
    if (ops > 0) throw Enough{};
  };
  EXPECT_THROW(simulate(p, costs, options), Enough);
}

TEST(Workload, NumbersOpsIn32Bits) {
  EXPECT_NO_THROW(check_op_count((1ULL << 32) - 2));
  EXPECT_THROW(check_op_count((1ULL << 32) - 1), Error);  // the number that means no op
}

TEST(Engine, ARingOfEqualRanksFoldsIntoOneThatSendsToItself) {
  // Four ranks of one program pass x to the next: all start at 5 and end at 8, folded or not.
  TinyProgram t(1, {0, 0, 0, 0});
  t.work(0, "compute", {}, "x");
  t.exchange(0, "ring", {{true, "cp", 1, "x"}, {false, "cp", -1, "y"}}, Stream::kCp);
  t.group("cp", {0, 1, 2, 3});
  TableCosts costs({{"compute", 5}});
  costs.message = 3;
  const program::CheckedProgram p = t.checked();
  EXPECT_EQ(timeline(p, costs, true), "r0 compute 0 0 0 5\nr0 ring 0 5 5 8\n");
  EXPECT_EQ(simulate(p, costs, {.fold = false}).step, Duration(8));
}

TEST(Engine, AHostReadHoldsBackWhatIsIssuedAfterIt) {
  // a 0-10; the read (2) waits for a: 10-12; the host goes on at 12, so b, free of everything, starts at 12 + launch 1.
  TinyProgram t(1, {0});
  t.work(0, "a", {}, "x");
  t.host_read(0, "read", "x", Stream::kD2h);
  t.work(0, "b", {}, "y", Stream::kDp);
  TableCosts costs({{"a", 10}, {"read", 2}, {"b", 3}});
  costs.launch = 1;
  EXPECT_EQ(timeline(t.checked(), costs),
            "r0 a 1 1 1 11\n"
            "r0 read 2 11 11 13\n"
            "r0 b 14 14 14 17\n");
}

TEST(Engine, AJoinMakesItsStreamWaitForTheTailOfAnother) {
  // b on dp touches nothing of a's, but the join before it waits for the tail of compute: b 10-13.
  TinyProgram t(1, {0});
  t.work(0, "a", {}, "x");
  t.join(0, "join", Stream::kDp, Stream::kCompute);
  t.work(0, "b", {}, "y", Stream::kDp);
  const TableCosts costs({{"a", 10}, {"b", 3}});
  EXPECT_EQ(timeline(t.checked(), costs),
            "r0 a 0 0 0 10\n"
            "r0 join 0 10 10 10\n"
            "r0 b 0 10 10 13\n");
}

TEST(Engine, AProgramWithoutOpsTakesNoTime) {
  TinyProgram t(1, {0});
  const Prediction prediction = simulate(t.checked(), TableCosts({}), {});
  EXPECT_EQ(prediction.step, Duration(0));
  EXPECT_EQ(prediction.events, 0U);
}

TEST(Prediction, ClassesOfOneRankProgramShareItsLifetimes) {
  TinyProgram t(2, {0, 0, 1});
  for (const std::size_t s : {0U, 1U}) t.work(s, "a", {}, "x");
  const Prediction prediction = simulate(t.checked(), TableCosts({}), {.fold = false});
  const auto whole = [&](std::size_t c) -> const program::Lifetimes& { return prediction.classes[c].lifetimes; };
  EXPECT_EQ(&whole(0), &whole(1));
  EXPECT_NE(&whole(0), &whole(2));
  EXPECT_EQ(prediction.classes[1].lifetimes.peak, whole(1).peak);
}

TEST(Trace, NamesClassesAndSamplesMemoryWhereItChanges) {
  // Two persistent buffers of 16 f32 elements: 128 bytes throughout, hence one sample.
  TinyProgram t(1, {0, 0});
  t.work(0, "a", {}, "x");
  t.work(0, "b", {"x"}, "y");
  const program::CheckedProgram p = t.checked();
  const trace::Trace trace = to_trace(simulate(p, TableCosts({{"a", 2}, {"b", 3}}), {}), p);
  EXPECT_EQ(trace.source, "sim");
  EXPECT_EQ(trace.fingerprint, p.fingerprint());
  EXPECT_EQ(trace.step, Duration(5));
  EXPECT_EQ(trace.class_of_rank, (std::vector<std::uint32_t>{0, 0}));
  ASSERT_EQ(trace.tracks.size(), 1U);
  EXPECT_EQ(trace.tracks[0].name, "stage0");
  EXPECT_EQ(trace.tracks[0].ranks, 2);
  EXPECT_EQ(trace.tracks[0].peak, 128);
  ASSERT_EQ(trace.tracks[0].memory.size(), 1U);
  EXPECT_EQ(trace.tracks[0].memory[0].class_bytes[static_cast<std::size_t>(program::MemoryClass::kActivations)], 128);
}

}  // namespace
}  // namespace stepcast::sim
