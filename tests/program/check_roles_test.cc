// What a rank program may do with its groups and its operands: streams per peer, parts by an index role, aliasing,
// writes in part, names and symbols.
#include <gtest/gtest.h>

#include "tests/program/problems.h"
#include "tests/program/sketch.h"

namespace stepcast::program {
namespace {

using testing::joined;
using testing::only_problem_has;
using testing::problems_of;
using testing::Sketch;

constexpr Access kR = Access::kRead;
constexpr Access kW = Access::kWrite;
constexpr Access kA = Access::kAccumulate;

// Rank 0 of `members` sends to both neighbours, on two streams; in a group of two they are one rank, which takes both
// messages on one stream.
std::vector<std::string> send_both_ways(std::size_t members, Channel to_next, Channel to_previous) {
  ProgramBuilder b("p");
  std::vector<RankId> ranks;
  for (std::size_t rank = 0; rank < members; ++rank) {
    Sketch s(b, "r" + std::to_string(rank));
    if (rank == 0) s.send("next", Stream::kSendNext, s.tensor("x"), 1, to_next);
    if (rank == 0) s.send("previous", Stream::kSendPrev, s.tensor("y"), -1, to_previous);
    if (rank == 1) s.receive("next", Stream::kRecvPrev, s.tensor("x"), -1, to_next);
    if (rank + 1 == members) s.receive("previous", Stream::kRecvPrev, s.tensor("y"), 1, to_previous);
    ranks.push_back(s.add_rank());
  }
  b.group(b.role("pp"), ranks);
  return problems_of(b.take());
}

TEST(Check, RefusesMessagesToOnePeerOnTwoStreams) {
  EXPECT_TRUE(only_problem_has(send_both_ways(2, Channel::kActivation, Channel::kActivation),
                               {"rank program r0, F.previous.op", "uses pp on channel activation on stream",
                                "a channel lives on one stream per peer and direction"}));
  // Other channels, as in a pipeline of two stages, or two peers.
  EXPECT_EQ(joined(send_both_ways(2, Channel::kActivation, Channel::kGradient)), "");
  EXPECT_EQ(joined(send_both_ways(3, Channel::kActivation, Channel::kActivation)), "");
}

TEST(Check, ComparesOffsetsWithTheSizeOfEachGroup) {
  // One program sends to members +1 and +3: one peer in a group of two, two peers in a group of four.
  for (const std::size_t members : {2, 4}) {
    ProgramBuilder b("p");
    Sketch s(b, "r");
    s.send("one", Stream::kSendNext, s.tensor("x"), 1, Channel::kMain);
    s.send("three", Stream::kSendPrev, s.tensor("x2"), 3, Channel::kMain);
    s.receive("from_one", Stream::kRecvPrev, s.tensor("y"), -1, Channel::kMain);
    s.receive("from_three", Stream::kRecvPrev, s.tensor("y2"), -3, Channel::kMain);
    const RankProgramId id = b.rank_program(s.builder().take());
    std::vector<RankId> ranks;
    for (std::size_t rank = 0; rank < members; ++rank) ranks.push_back(b.rank(id, 0));
    b.group(b.role("pp"), ranks);
    EXPECT_EQ(problems_of(b.take()).empty(), members == 4);
  }
}

// One op with an index role in a group of `members` equal ranks.
std::vector<std::string> indexed(OpKind kind, const std::vector<std::pair<std::int64_t, Access>>& operands,
                                 std::int64_t count, std::size_t members) {
  ProgramBuilder b("p");
  Sketch s(b, "r");
  Op form;
  form.index_role = b.role("dp");
  form.attributes.count = count;
  form.attributes.value = 1;
  std::vector<testing::Use> uses;
  for (const auto& [elements, access] : operands) uses.push_back({s.tensor("x", elements), access});
  s.op("part", kind, Stream::kCompute, uses, form);
  const RankProgramId id = b.rank_program(s.builder().take());
  std::vector<RankId> ranks;
  for (std::size_t rank = 0; rank < members; ++rank) ranks.push_back(b.rank(id, 0));
  b.group(b.role("dp"), ranks);
  return problems_of(b.take());
}

TEST(Check, ComparesPartsWithTheSizeOfTheGroup) {
  const std::vector<std::pair<std::int64_t, Access>> squares = {{8, kR}, {1, kA}};
  EXPECT_EQ(joined(indexed(OpKind::kSumSquares, squares, 4, 4)), "");
  EXPECT_TRUE(only_problem_has(indexed(OpKind::kSumSquares, squares, 4, 2),
                               {"op op: divides by 4, but a group of dp has 2 members"}));
  EXPECT_FALSE(indexed(OpKind::kSumSquares, squares, 1, 2).empty());
  // Moments of 2 elements: a gradient of 8 holds 4 parts; one of 2 is the own part, whatever the group.
  const std::vector<std::pair<std::int64_t, Access>> whole = {{8, kR}, {1, kR}, {2, kA}, {2, kA}, {2, kA}};
  const std::vector<std::pair<std::int64_t, Access>> own = {{2, kR}, {1, kR}, {2, kA}, {2, kA}, {2, kA}};
  EXPECT_EQ(joined(indexed(OpKind::kAdam, whole, 0, 4)), "");
  EXPECT_TRUE(only_problem_has(indexed(OpKind::kAdam, whole, 0, 2), {"divides by 4", "has 2 members"}));
  EXPECT_EQ(joined(indexed(OpKind::kAdam, own, 0, 3)), "");
}

TEST(Check, WantsTheOtherPartsOfAWeightThatAdamWritesInPart) {
  for (const bool filled : {false, true}) {
    ProgramBuilder b("p");
    Sketch s(b, "r");
    const ViewId weight = s.tensor("weight", 4, false);
    if (filled) s.fill("fill", weight);
    Op form;
    form.index_role = b.role("dp");
    s.op("adam", OpKind::kAdam, Stream::kCompute,
         {{s.tensor("grad", 4), kR},
          {s.tensor("factor", 1), kR},
          {s.tensor("m", 2), kA},
          {s.tensor("v", 2), kA},
          {s.tensor("master", 2), kA},
          {weight, kW}},
         form);
    const RankProgramId id = b.rank_program(s.builder().take());
    b.group(b.role("dp"), {b.rank(id, 0), b.rank(id, 1)});
    const std::vector<std::string> found = problems_of(b.take());
    EXPECT_EQ(found.empty(), filled) << joined(found);
  }
}

// A single op on parts of one buffer of 8 elements, given as (begin, count).
std::vector<std::string> on_one_buffer(OpKind kind, const std::vector<std::tuple<int, int, Access>>& parts) {
  ProgramBuilder b("p");
  Sketch s(b, "r");
  const ViewId x = s.tensor("x", 8);
  std::vector<testing::Use> uses;
  for (const auto& [begin, count, access] : parts) uses.push_back({s.part(x, begin, count), access});
  s.op("one", kind, Stream::kCompute, uses);
  s.add_rank();
  return problems_of(b.take());
}

TEST(Check, RefusesOutputsThatOverlapInputs) {
  EXPECT_TRUE(only_problem_has(on_one_buffer(OpKind::kCopy, {{0, 4, kR}, {2, 4, kW}}),
                               {"F.one.op: writes operand 1 onto bytes of operand 0, in buffer x"}));
  EXPECT_TRUE(only_problem_has(on_one_buffer(OpKind::kAdd, {{0, 4, kR}, {4, 4, kR}, {3, 4, kW}}), {"F.one.op"}));
  // Side by side, read twice, or element by element in place.
  EXPECT_EQ(joined(on_one_buffer(OpKind::kCopy, {{0, 4, kR}, {4, 4, kW}})), "");
  EXPECT_EQ(joined(on_one_buffer(OpKind::kAdd, {{0, 4, kR}, {0, 4, kR}, {4, 4, kW}})), "");
  EXPECT_EQ(joined(on_one_buffer(OpKind::kAdd, {{0, 4, kR}, {4, 4, kR}, {4, 4, kW}})), "");
  EXPECT_EQ(joined(on_one_buffer(OpKind::kAccumulate, {{0, 4, kR}, {0, 4, kA}})), "");
}

TEST(Check, RefusesANormsGradientOntoItsInputButNotOntoItsGradient) {
  // Operands dy, x, rstd, weight, dx, residual; dx is the same tensor as operand `shared`.
  for (const std::size_t shared : {0U, 1U, 5U}) {
    ProgramBuilder b("p");
    Sketch s(b, "r");
    const auto matrix = [&](const char* name) {
      return s.builder().tensor(name, DType::kF32, {4, 6}, MemoryClass::kActivations, true);
    };
    std::vector<testing::Use> uses = {{matrix("dy"), kR},     {matrix("x"), kR},  {s.tensor("rstd", 4), kR},
                                      {s.tensor("w", 6), kR}, {matrix("dx"), kW}, {matrix("residual"), kR}};
    uses[4].view = uses[shared].view;
    s.op("norm", OpKind::kRmsNormBackwardInput, Stream::kCompute, uses);
    s.add_rank();
    const std::vector<std::string> found = problems_of(b.take());
    EXPECT_EQ(found.empty(), shared != 1) << joined(found);
  }
}

TEST(Check, RefusesATempThatAnOpReadsAndWrites) {
  SegmentBuilder segment("s");
  const Ref t = segment.temp("t", DType::kF32, {4, 4}, MemoryClass::kComm);
  const Ref w = segment.slot("w", DType::kF32, {4, 4});
  segment.op(OpKind::kZeroFill, Stream::kCompute, "zero", {out(t)});
  segment.op(OpKind::kMatmul, Stream::kCompute, "square", {in(t), in(w), out(t)});
  ProgramBuilder b("p");
  const SegmentId id = b.segment(segment.take());
  Sketch s(b, "r");
  s.builder().call(id, {s.builder().tensor("w", DType::kF32, {4, 4}, MemoryClass::kWeights, true)}, {});
  s.add_rank();
  EXPECT_TRUE(only_problem_has(problems_of(b.take()), {"F.s.square: writes operand 2", "operand 0, in temp t"}));
}

// A fill with the given label and name.
std::vector<std::string> named(const std::string& label, const std::string& name) {
  SegmentBuilder segment(label);
  const Ref x = segment.slot("x", DType::kF32, {4});
  segment.op(OpKind::kZeroFill, Stream::kCompute, name, {out(x)});
  ProgramBuilder b("p");
  const SegmentId id = b.segment(segment.take());
  Sketch s(b, "r");
  s.builder().call(id, {s.tensor("x")}, {});
  s.add_rank();
  return problems_of(b.take());
}

TEST(Check, RefusesDotsInLabelsAndNames) {
  EXPECT_EQ(joined(named("attn", "fill_x")), "");
  EXPECT_TRUE(only_problem_has(named("attn.fill", "x"), {"its label has a dot"}));
  EXPECT_TRUE(only_problem_has(named("attn", "fill.x"), {"op fill.x: its name has a dot"}));
}

TEST(Check, SaysThatSymbolsAreNotMeasuredYet) {
  ProgramBuilder b("p");
  const SymbolId rows = b.symbol({"rows", 8});
  Sketch s(b, "r");
  const ViewId n = s.builder().tensor("n", DType::kI32, {1}, MemoryClass::kActivations, true);
  Op form;
  form.symbol = rows;
  s.op("read", OpKind::kHostRead, Stream::kD2h, {{n, kR}}, form);
  s.add_rank();
  const Program p = b.take();
  EXPECT_TRUE(only_problem_has(problems_of(p), {"symbols are not measured yet"}));
  try {
    const CheckedProgram checked(p);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  }
}

}  // namespace
}  // namespace stepcast::program
