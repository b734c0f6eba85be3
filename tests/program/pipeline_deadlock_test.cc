// Pipelines as lists of passes, with their messages: 1F1B and GPipe are sound on streams per direction, 1F1B is not on
// one stream unless sends and receives are grouped, and wrong action tables are refused.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/program/problems.h"
#include "tests/program/sketch.h"

namespace stepcast::program {
namespace {

using testing::joined;
using testing::only_problem_has;
using testing::problems_of;
using testing::Sketch;

struct Action {
  bool forward;
  int microbatch;
};
using Table = std::vector<std::vector<Action>>;  // by stage

Table one_f_one_b(int stages, int microbatches) {
  Table table;
  for (int stage = 0; stage < stages; ++stage) {
    std::vector<Action> list;
    const int warm_up = std::min(stages - 1 - stage, microbatches);
    for (int m = 0; m < warm_up; ++m) list.push_back({true, m});
    for (int m = warm_up; m < microbatches; ++m) {
      list.push_back({true, m});
      list.push_back({false, m - warm_up});
    }
    for (int m = microbatches - warm_up; m < microbatches; ++m) list.push_back({false, m});
    table.push_back(list);
  }
  return table;
}

Table gpipe(int stages, int microbatches) {
  std::vector<Action> list;
  for (int m = 0; m < microbatches; ++m) list.push_back({true, m});
  for (int m = 0; m < microbatches; ++m) list.push_back({false, m});
  return Table(static_cast<std::size_t>(stages), list);
}

// Each pass receives its input, computes, and sends its output.
void add_pass(Sketch& s, Action a, bool receives, bool sends, bool one_stream) {
  const std::string name = (a.forward ? "F" : "B") + std::to_string(a.microbatch);
  const ViewId in = s.tensor(name + "in");
  const ViewId out = s.tensor(name + "out");
  const Channel channel = a.forward ? Channel::kActivation : Channel::kGradient;
  const std::int32_t next = a.forward ? 1 : -1;
  const Stream receive = one_stream ? Stream::kSendNext : a.forward ? Stream::kRecvPrev : Stream::kRecvNext;
  const Stream send = one_stream ? Stream::kSendNext : a.forward ? Stream::kSendNext : Stream::kSendPrev;
  if (receives) s.receive(name + "receive", receive, in, -next, channel);
  s.copy(name, in, out);
  if (sends) s.send(name + "send", send, out, next, channel);
}

std::vector<std::string> run(const Table& table, bool one_stream) {
  ProgramBuilder b("pipeline");
  std::vector<RankId> ranks;
  for (std::size_t stage = 0; stage < table.size(); ++stage) {
    Sketch s(b, "stage" + std::to_string(stage));
    const bool first = stage == 0;
    const bool last = stage + 1 == table.size();
    for (const Action a : table[stage])
      add_pass(s, a, a.forward ? !first : !last, a.forward ? !last : !first, one_stream);
    ranks.push_back(s.add_rank());
  }
  b.group(b.role("pp"), ranks);
  return problems_of(b.take());
}

TEST(PipelineDeadlock, IsAbsentWithAStreamPerDirection) {
  for (const int stages : {2, 3, 4, 8}) {
    for (const int microbatches : {1, 2, 4, 9}) {
      EXPECT_EQ(joined(run(one_f_one_b(stages, microbatches), false)), "") << stages << " " << microbatches;
      EXPECT_EQ(joined(run(gpipe(stages, microbatches), false)), "") << stages << " " << microbatches;
    }
  }
}

TEST(PipelineDeadlock, OfOneFOneBOnOneStream) {
  // Stage 0's second send waits for stage 1, whose first gradient waits for stage 0 to receive it.
  const std::vector<std::string> found = run(one_f_one_b(2, 2), true);
  EXPECT_TRUE(
      only_problem_has(found, {"deadlock", "rank 0 F.F1send.op", "rank 1 F.B0send.op", "rank 0 F.B0receive.op"}))
      << joined(found);
  EXPECT_TRUE(only_problem_has(run(one_f_one_b(4, 8), true), {"deadlock"}));
  EXPECT_EQ(joined(run(one_f_one_b(4, 1), true)), "");  // one microbatch goes there and back
}

TEST(PipelineDeadlock, IsAbsentForGpipeOnOneStream) { EXPECT_EQ(joined(run(gpipe(4, 4), true)), ""); }

// The same 1F1B of two stages and two microbatches on one stream, with the send and the receive of the steady state
// grouped.
TEST(PipelineDeadlock, IsAbsentWithGroupedExchange) {
  ProgramBuilder b("grouped");
  Sketch zero(b, "stage0");
  const ViewId f0 = zero.tensor("f0");
  const ViewId f1 = zero.tensor("f1");
  const ViewId b0 = zero.tensor("b0");
  zero.send("f0", Stream::kSendNext, f0, 1, Channel::kActivation);
  zero.exchange("f1b0", Stream::kSendNext, f1, zero.to(1, Channel::kActivation), b0, zero.to(1, Channel::kGradient));
  zero.receive("b1", Stream::kSendNext, zero.tensor("b1"), 1, Channel::kGradient);
  Sketch one(b, "stage1");
  one.receive("f0", Stream::kSendNext, one.tensor("f0"), -1, Channel::kActivation);
  one.exchange("b0f1", Stream::kSendNext, one.tensor("b0"), one.to(-1, Channel::kGradient), one.tensor("f1"),
               one.to(-1, Channel::kActivation));
  one.send("b1", Stream::kSendNext, one.tensor("b1"), -1, Channel::kGradient);
  const std::vector<RankId> ranks = {zero.add_rank(), one.add_rank()};
  b.group(b.role("pp"), ranks);
  EXPECT_EQ(joined(problems_of(b.take())), "");
}

TEST(PipelineDeadlock, OfAWrongActionTable) {
  // Stage 0 wants microbatch 0 back before it forwards 1; stage 1 forwards both first.
  const Table table = {{{true, 0}, {false, 0}, {true, 1}, {false, 1}}, {{true, 0}, {true, 1}, {false, 0}, {false, 1}}};
  const std::vector<std::string> found = run(table, false);
  EXPECT_TRUE(only_problem_has(found, {"deadlock", "rank 0 F.B0.op", "rank 1 F.F1.op"})) << joined(found);
}

TEST(PipelineDeadlock, OfABackwardBeforeItsForward) {
  // The last stage needs no message for B0, but stage 0 gets none before stage 1 runs in the wrong order: 1 waits for
  // stage 2's B1, which waits for F1 from stage 1, which comes after it there.
  Table table = one_f_one_b(3, 2);
  table[1] = {{true, 0}, {false, 0}, {false, 1}, {true, 1}};
  EXPECT_TRUE(only_problem_has(run(table, false), {"deadlock", "rank 1 F.B1.op"}));
}

TEST(PipelineDeadlock, NeverHidesAForgottenPass) {
  Table table = one_f_one_b(3, 2);
  table[1].pop_back();  // B1 of the middle stage: its receive and its send are missing
  EXPECT_EQ(run(table, false).size(), 2U);
}

}  // namespace
}  // namespace stepcast::program
