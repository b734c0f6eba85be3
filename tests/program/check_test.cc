// Well-formedness: every rule is broken once, in a program that is otherwise sound.
#include <gtest/gtest.h>

#include "base/check.h"
#include "tests/program/problems.h"
#include "tests/program/sketch.h"

namespace stepcast::program {
namespace {

using testing::joined;
using testing::only_problem_has;
using testing::problems_of;
using testing::Sketch;

// Two ranks: 0 sends x to 1, both reduce y over tp. The builder's program, before take().
struct Pair {
  ProgramBuilder b{"pair"};

  Program make() {
    Sketch first(b, "first");
    const ViewId x = first.tensor("x", 4, false);
    first.fill("fill", x);
    first.send("send", Stream::kSendNext, x, 1, Channel::kActivation);
    first.all_reduce("reduce", Stream::kTp, first.tensor("y"), "tp");
    Sketch second(b, "second");
    const ViewId in = second.tensor("in", 4, false);
    second.receive("receive", Stream::kRecvPrev, in, -1, Channel::kActivation);
    second.copy("use", in, second.tensor("z"));
    second.all_reduce("reduce", Stream::kTp, second.tensor("y"), "tp");
    const std::vector<RankId> ranks = {first.add_rank(), second.add_rank()};
    b.group(b.role("pp"), ranks);
    b.group(b.role("tp"), ranks);
    return b.take();
  }
};

RankProgram& program_of(Program& p, std::uint32_t rank) { return p.rank_programs[p.ranks[RankId(rank)].program]; }
Op& op_of(Program& p, std::uint32_t rank, std::size_t call) {
  return p.segments[program_of(p, rank).calls[call].segment].ops[0];
}
// Gives a call a segment of its own, since equal ones are shared.
Segment& own_segment(Program& p, std::uint32_t rank, std::size_t call) {
  Call& c = program_of(p, rank).calls[call];
  const Segment copy = p.segments[c.segment];
  c.segment = p.segments.push(copy);
  return p.segments[c.segment];
}

TEST(Check, AcceptsTheSoundPair) { EXPECT_EQ(joined(problems_of(Pair().make())), ""); }

TEST(Check, RefusesAViewOutsideItsBuffer) {
  Program p = Pair().make();
  program_of(p, 0).buffers[BufferId(0)].bytes = 12;  // the view has 16
  EXPECT_TRUE(only_problem_has(problems_of(p), {"16 bytes at 0", "buffer x of 12"}));
}

TEST(Check, RefusesAnOffsetBetweenElements) {
  Program p = Pair().make();
  program_of(p, 0).buffers[BufferId(0)].bytes = 64;
  program_of(p, 0).views[ViewId(0)].byte_offset = 2;
  EXPECT_TRUE(only_problem_has(problems_of(p), {"view 0", "element size"}));
}

TEST(Check, RefusesAnArgumentOfAnotherType) {
  Program p = Pair().make();
  program_of(p, 0).views[ViewId(0)].type.shape = {2, 2};
  const std::vector<std::string> problems = problems_of(p);
  EXPECT_EQ(problems.size(), 2U) << joined(problems);  // two calls use the view
  EXPECT_NE(problems[0].find("argument 0 is f32 [2, 2], but slot x of segment fill is f32 [4]"), std::string::npos);
}

TEST(Check, RefusesIndicesOutOfRange) {
  const auto refused = [](auto change, const std::string& text) {
    Program p = Pair().make();
    change(p);
    const std::string found = joined(problems_of(p));
    EXPECT_NE(found.find(text), std::string::npos) << found;
  };
  refused([](Program& p) { program_of(p, 0).calls[0].segment = SegmentId(99); }, "segment that does not exist");
  refused([](Program& p) { program_of(p, 0).calls[0].args[0] = ViewId(99); }, "view that does not exist");
  refused([](Program& p) { program_of(p, 0).calls[0].args.clear(); }, "0 arguments for the 1 slots");
  refused([](Program& p) { program_of(p, 0).views[ViewId(0)].buffer = BufferId(99); }, "buffer that does not exist");
  refused([](Program& p) { op_of(p, 0, 0).operands[0].index = 9; }, "no slot or temp");
  refused([](Program& p) { op_of(p, 0, 0).operands[0].temp = true; }, "no slot or temp");
  refused([](Program& p) { op_of(p, 0, 2).group = RoleId(9); }, "role that does not exist");
  refused([](Program& p) { op_of(p, 0, 1).parts[0].operand = 7; }, "operand that does not exist");
  refused([](Program& p) { p.ranks[RankId(0)].program = RankProgramId(9); }, "rank program that does not exist");
  refused([](Program& p) { p.groups[GroupId(0)].members[0] = RankId(9); }, "rank that does not exist");
  refused([](Program& p) { program_of(p, 0).graphs = {{2, 1}}; }, "disjoint, ascending");
  refused([](Program& p) { program_of(p, 0).graphs = {{0, 9}}; }, "within the calls");
  refused([](Program& p) { program_of(p, 0).loss = ViewId(0); }, "persistent f32 [1]");
  refused([](Program& p) { program_of(p, 0).shards.push_back({}); }, "parameter that does not exist");
  refused([](Program& p) { p.ranks[RankId(0)].memberships[0]->index = 1; }, "does not agree");
  refused([](Program& p) { p.segments[SegmentId(0)].slots[0].type.shape = {1LL << 40, 1LL << 40}; }, "2^62 bytes");
}

TEST(Check, CollectsAllProblems) {
  Program p = Pair().make();
  program_of(p, 0).buffers[BufferId(0)].bytes = 12;
  program_of(p, 1).calls[0].args.clear();
  EXPECT_EQ(problems_of(p).size(), 2U);
}

TEST(Check, RefusesOperandsThatDoNotFitTheirOp) {
  Program p = Pair().make();
  op_of(p, 0, 0).operands[0].access = Access::kRead;
  const std::string found = joined(problems_of(p));
  EXPECT_NE(found.find("zero_fill: out (operand 0) has access read, expected write"), std::string::npos) << found;
}

TEST(Check, RefusesEqualPaths) {
  Program p = Pair().make();
  program_of(p, 0).calls.push_back(program_of(p, 0).calls[0]);
  EXPECT_TRUE(only_problem_has(problems_of(p), {"two ops have the path F.fill.op"}));
}

TEST(Check, RefusesAChannelOnTwoStreams) {
  Program p = Pair().make();
  Call again = program_of(p, 0).calls[2];
  again.tag.microbatch = 1;
  for (const std::uint32_t rank : {0U, 1U}) program_of(p, rank).calls.push_back(again);
  program_of(p, 1).calls.back().args = program_of(p, 1).calls[2].args;
  EXPECT_EQ(joined(problems_of(p)), "");
  own_segment(p, 0, 3).ops[0].stream = Stream::kDp;
  EXPECT_TRUE(only_problem_has(problems_of(p), {"uses tp on channel main on stream dp", "F.reduce.op on stream tp"}));
}

TEST(Check, RefusesAReadOfUnwrittenBytes) {
  Program p = Pair().make();
  program_of(p, 0).calls.erase(program_of(p, 0).calls.begin());
  EXPECT_TRUE(only_problem_has(problems_of(p), {"F.send.op: reads buffer x where nothing wrote it"}));
}

TEST(Check, TakesTwoHalvesWrittenForAWhole) {
  for (const std::int64_t second_half : {2, 1}) {
    ProgramBuilder b("p");
    Sketch s(b, "r");
    const ViewId x = s.tensor("x", 4, false);
    s.fill("high", s.part(x, second_half, 2));
    s.fill("low", s.part(x, 0, 2));
    s.copy("use", x, s.tensor("y"));
    s.add_rank();
    // Elements 2-3 and 0-1 cover all four; 1-2 and 0-1 leave out the last.
    EXPECT_EQ(problems_of(b.take()).empty(), second_half == 2);
  }
}

TEST(Check, RefusesATempReadBeforeItIsWritten) {
  SegmentBuilder segment("s");
  const Ref x = segment.slot("x", DType::kF32, {4});
  const Ref t = segment.temp("t", DType::kF32, {4}, MemoryClass::kComm);
  segment.op(OpKind::kCopy, Stream::kCompute, "op", {in(t), out(x)});
  ProgramBuilder b("p");
  const SegmentId id = b.segment(segment.take());
  Sketch s(b, "r");
  s.builder().call(id, {s.tensor("x")}, {});
  s.add_rank();
  EXPECT_TRUE(only_problem_has(problems_of(b.take()), {"segment s, op op: reads temp t before"}));
}

TEST(Check, RefusesAMissingMembership) {
  Program p = Pair().make();
  p.groups = {};
  for (Rank& rank : p.ranks) rank.memberships.assign(2, std::nullopt);
  EXPECT_EQ(problems_of(p).size(), 4U);  // pp and tp on both ranks
}

TEST(Check, RefusesASendWithoutAReceive) {
  Program p = Pair().make();
  program_of(p, 1).calls.erase(program_of(p, 1).calls.begin(), program_of(p, 1).calls.begin() + 2);
  EXPECT_TRUE(only_problem_has(problems_of(p), {"rank 0 F.send.op: a send without a receive"}));
}

TEST(Check, RefusesAReceiveWithoutASend) {
  Program p = Pair().make();
  program_of(p, 0).calls.erase(program_of(p, 0).calls.begin() + 1);
  EXPECT_TRUE(only_problem_has(problems_of(p), {"rank 1 F.receive.op: a receive without a send"}));
}

TEST(Check, RefusesMessagesOnOtherChannels) {
  Program p = Pair().make();
  op_of(p, 1, 0).parts[0].channel = Channel::kGradient;
  EXPECT_EQ(problems_of(p).size(), 2U);  // the send and the receive both lack a partner
}

TEST(Check, RefusesUnequalMessages) {
  ProgramBuilder b("p");
  Sketch first(b, "first");
  first.send("send", Stream::kSendNext, first.tensor("x", 4), 1, Channel::kActivation);
  Sketch second(b, "second");
  second.receive("receive", Stream::kRecvPrev, second.tensor("x", 5), -1, Channel::kActivation);
  b.group(b.role("pp"), {first.add_rank(), second.add_rank()});
  EXPECT_TRUE(only_problem_has(problems_of(b.take()), {"sends f32 [4]", "receives f32 [5]"}));
}

// Changes rank 1's all-reduce.
std::vector<std::string> with_other_collective(void (*change)(Op&)) {
  Program p = Pair().make();
  change(own_segment(p, 1, 2).ops[0]);
  return problems_of(p);
}

TEST(Check, RefusesCollectivesThatDisagree) {
  EXPECT_TRUE(only_problem_has(with_other_collective([](Op& op) { op.attributes.reduce = Reduce::kMax; }),
                               {"collective 0 disagrees", "rank 0 F.reduce.op", "another reduction"}));
  EXPECT_TRUE(only_problem_has(with_other_collective([](Op& op) { op.kind = OpKind::kBroadcast; }),
                               {"all_reduce against broadcast"}));
  const std::vector<std::string> other_channel = with_other_collective([](Op& op) { op.channel = Channel::kWeights; });
  EXPECT_EQ(other_channel.size(), 2U) << joined(other_channel);  // one is missing on either channel
}

TEST(Check, RefusesCollectivesOfOtherSizes) {
  ProgramBuilder b("p");
  std::vector<RankId> ranks;
  for (const std::int64_t elements : {4, 5}) {
    Sketch s(b, "r" + std::to_string(elements));
    s.all_reduce("reduce", Stream::kTp, s.tensor("x", elements), "tp");
    ranks.push_back(s.add_rank());
  }
  b.group(b.role("tp"), ranks);
  EXPECT_TRUE(only_problem_has(problems_of(b.take()), {"4 elements against 5"}));
}

TEST(Check, RefusesAMissingCollective) {
  Program p = Pair().make();
  program_of(p, 1).calls.pop_back();
  EXPECT_TRUE(only_problem_has(problems_of(p), {"rank 0 issues 1 collectives, rank 1 0", "rank 0 F.reduce.op"}));
}

// A gather over two ranks of `part` elements into `whole`; counts are given to both.
std::vector<std::string> gather(std::int64_t part0, std::int64_t part1, std::int64_t whole,
                                const std::vector<std::int64_t>& counts) {
  ProgramBuilder b("p");
  std::vector<RankId> ranks;
  for (const std::int64_t part : {part0, part1}) {
    Sketch s(b, ranks.empty() ? "first" : "second");
    Op form;
    form.group = b.role("dp");
    form.member_counts = counts;
    s.op("gather", OpKind::kAllGather, Stream::kGather,
         {{s.tensor("part", part), Access::kRead}, {s.tensor("whole", whole), Access::kWrite}}, form);
    ranks.push_back(s.add_rank());
  }
  b.group(b.role("dp"), ranks);
  return problems_of(b.take());
}

TEST(Check, ComparesGathersWithTheGroupsSize) {
  EXPECT_EQ(joined(gather(4, 4, 8, {})), "");
  EXPECT_TRUE(only_problem_has(gather(4, 4, 12, {}), {"the whole is 12 elements, expected 2 members times 4"}));
  EXPECT_EQ(joined(gather(5, 3, 8, {5, 3})), "");
  EXPECT_TRUE(only_problem_has(gather(5, 4, 8, {5, 3}), {"its part is 4 elements, its member count 3"}));
  EXPECT_TRUE(only_problem_has(gather(5, 3, 8, {5, 2, 1}), {"3 member counts for a group of 2"}));
  // The first member is right; the second would gather a quarter of the whole.
  EXPECT_TRUE(only_problem_has(gather(4, 2, 8, {}),
                               {"rank 1 F.gather.op", "the whole is 8 elements, expected 2 members times 2"}));
}

TEST(Check, RefusesABroadcastRootOutsideTheGroup) {
  ProgramBuilder b("p");
  Sketch s(b, "r");
  Op form;
  form.group = b.role("dp");
  form.attributes.count = 1;
  s.op("broadcast", OpKind::kBroadcast, Stream::kDp, {{s.tensor("x"), Access::kAccumulate}}, form);
  b.group(b.role("dp"), {s.add_rank()});
  EXPECT_TRUE(only_problem_has(problems_of(b.take()), {"root 1 of a group of 1"}));
}

TEST(CheckedProgram, KeepsResolutionsAndFingerprint) {
  const Program p = Pair().make();
  const CheckedProgram checked(p);
  EXPECT_EQ(checked.fingerprint(), fingerprint(p));
  EXPECT_EQ(checked.resolution(p.ranks[RankId(1)].program).op_count(), 3U);
  EXPECT_EQ(checked.program(), p);
}

TEST(FindProblems, NeedsResolutionsOfASoundStructureOnly) {
  Program p = Pair().make();
  EXPECT_THROW(find_problems(p, {}), InternalError);
  program_of(p, 0).calls[0].args.clear();
  EXPECT_EQ(find_problems(p, {}).size(), 1U);
}

}  // namespace
}  // namespace stepcast::program
