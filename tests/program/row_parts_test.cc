// Operands that are one member's part of a tensor's rows: what they depend on, what the checks refuse, their text.
#include <gtest/gtest.h>

#include <functional>

#include "base/random.h"
#include "program/resolve.h"
#include "program/text.h"
#include "tests/program/problems.h"

namespace stepcast::program {
namespace {

using testing::joined;
using testing::only_problem_has;
using testing::problems_of;

constexpr std::int64_t kMembers = 3;
constexpr std::int64_t kWidth = 2;

// Ranks of one ring, each with one segment: `write` fills it over x, y [1,2] and ring [3,2], all persistent but ring.
struct Ring {
  ProgramBuilder b{"ring"};
  Ref x, y, ring;

  Program make(const std::function<void(SegmentBuilder&, Ring&)>& write, std::int64_t members = kMembers) {
    SegmentBuilder s("s");
    x = s.slot("x", DType::kF32, {1, kWidth});
    y = s.slot("y", DType::kF32, {1, kWidth});
    ring = s.slot("ring", DType::kF32, {kMembers, kWidth});
    write(s, *this);
    const SegmentId segment = b.segment(s.take());
    RankProgramBuilder r("r");
    const ViewId vx = r.tensor("x", DType::kF32, {1, kWidth}, MemoryClass::kActivations, true);
    const ViewId vy = r.tensor("y", DType::kF32, {1, kWidth}, MemoryClass::kActivations, true);
    const ViewId ring_view = r.tensor("ring", DType::kF32, {kMembers, kWidth}, MemoryClass::kActivations);
    r.call(segment, {vx, vy, ring_view}, {});
    const RankProgramId id = b.rank_program(r.take());
    std::vector<RankId> ranks;
    for (std::int64_t m = 0; m < members; ++m) ranks.push_back(b.rank(id, static_cast<std::int32_t>(m)));
    b.group(b.role("tp"), ranks);
    return b.take();
  }
  Op& copy(SegmentBuilder& s, const std::string& name, Operand from, Operand to, Stream stream = Stream::kCompute) {
    Op& op = s.op(OpKind::kCopy, stream, name, {from, to});
    if (from.is_part() || to.is_part()) op.index_role = b.role("tp");
    return op;
  }
};

Operand part(Operand o, std::int64_t before) { return part_of(o, kMembers, before); }

// x travels round the ring of `t` while each chunk is summed into y; afterwards ring holds what passed.
void travel(SegmentBuilder& s, Ring& r) {
  r.copy(s, "own", in(r.x), part(out(r.ring), 0));
  for (std::int64_t step = 1; step < kMembers; ++step) {
    Op& op = s.op(OpKind::kExchange, Stream::kTp, "pass" + std::to_string(step),
                  {part(in(r.ring), step - 1), part(out(r.ring), step)});
    op.parts = {{0, true, r.b.role("tp"), 1, Channel::kActivation},
                {1, false, r.b.role("tp"), -1, Channel::kActivation}};
    op.index_role = r.b.role("tp");
    r.copy(s, "use" + std::to_string(step - 1), part(in(r.ring), step - 1), out(r.y));
  }
  s.op(OpKind::kSumParts, Stream::kCompute, "sum", {in(r.ring), out(r.y)});
}

// 0 own, 1 pass1 (after own), 2 use0 (beside pass1), 3 pass2 (beside use0), 4 use1 (after pass1), 5 sum: all parts,
// after pass2.
TEST(RowParts, AreIndependentOfTheOtherParts) {
  const Program p = Ring().make(travel);
  EXPECT_EQ(joined(problems_of(p)), "");
  const Resolution res = resolve(p, p.rank_programs[RankProgramId(0)]);
  std::vector<std::vector<std::uint32_t>> edges;
  for (std::uint32_t op = 0; op < res.op_count(); ++op) {
    edges.emplace_back(res.predecessors(op).begin(), res.predecessors(op).end());
  }
  EXPECT_EQ(edges, (std::vector<std::vector<std::uint32_t>>{{}, {0}, {}, {}, {1}, {3}}));
}

// One op of a random program: two accesses to `ring`, each of a part or of the whole.
struct RandomUse {
  Stream stream;
  Operand from, to;
};

std::vector<RandomUse> random_uses(std::uint64_t seed) {
  const RandomStream random(seed, "row parts");
  std::vector<RandomUse> ops;
  for (std::uint64_t i = 0; i < 30; ++i) {
    const auto pick = [&](std::uint64_t draw, std::uint64_t n) { return random.integer_at(8 * i + draw, n); };
    constexpr Stream kStreams[] = {Stream::kCompute, Stream::kTp, Stream::kDp};
    RandomUse op{kStreams[pick(0, 3)], {false, 0, Access::kRead}, {false, 1, Access::kWrite}};
    if (pick(1, 4) > 0) op.from = part(op.from, static_cast<std::int64_t>(pick(2, kMembers)));
    if (pick(3, 4) > 0) op.to = part(op.to, static_cast<std::int64_t>(pick(4, kMembers)));
    if (op.from.parts != op.to.parts) op.from.parts = op.to.parts, op.from.before = op.to.before;
    if (pick(5, 2) == 0) std::swap(op.from.index, op.to.index);
    ops.push_back(op);
  }
  return ops;
}

// The ops over two tensors [3,2]; with an index, every part is a view of the bytes it has at that index.
std::vector<std::vector<std::uint32_t>> edges_of(const std::vector<RandomUse>& ops, std::optional<std::int64_t> index) {
  ProgramBuilder b("random");
  RankProgramBuilder r("r");
  const BufferId buffers[] = {r.buffer("a", 24, MemoryClass::kActivations, true),
                              r.buffer("b", 24, MemoryClass::kActivations, true)};
  for (const RandomUse& op : ops) {
    SegmentBuilder s("s");
    std::vector<ViewId> args;
    std::vector<Operand> operands;
    for (Operand o : {op.from, op.to}) {
      const bool cut = o.is_part() && index;
      const std::int64_t rows = cut ? 1 : kMembers;
      const std::int64_t offset = cut ? 8 * part_number(o, *index) : 0;
      args.push_back(r.view(buffers[o.index], offset, DType::kF32, {rows, kWidth}));
      const Ref slot = s.slot("x", DType::kF32, {rows, kWidth});
      o.index = slot.index;
      if (cut) o.parts = 1, o.before = 0;
      operands.push_back(o);
    }
    s.op(OpKind::kCopy, op.stream, "op", {operands[0], operands[1]}).index_role = b.role("tp");
    r.call(b.segment(s.take()), args, {});
  }
  b.group(b.role("tp"), {b.rank(b.rank_program(r.take()), 0)});
  const Program p = b.take();
  const Resolution res = resolve(p, p.rank_programs[RankProgramId(0)]);
  std::vector<std::vector<std::uint32_t>> edges;
  for (std::uint32_t op = 0; op < res.op_count(); ++op) {
    edges.emplace_back(res.predecessors(op).begin(), res.predecessors(op).end());
  }
  return edges;
}

// What the derivation rests on: at every index the parts lie elsewhere and the same of them overlap.
TEST(RowParts, HaveTheEdgesOfTheirBytesAtEveryIndex) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<RandomUse> ops = random_uses(seed);
    const auto edges = edges_of(ops, std::nullopt);
    for (std::int64_t index = 0; index < kMembers; ++index) EXPECT_EQ(edges, edges_of(ops, index)) << seed << index;
  }
}

TEST(RowParts, MustAllBeWrittenBeforeTheWholeIsRead) {
  const Program p = Ring().make([](SegmentBuilder& s, Ring& r) {
    r.copy(s, "own", in(r.x), part(out(r.ring), 0));
    r.copy(s, "next", in(r.x), part(out(r.ring), 2));
    s.op(OpKind::kSumParts, Stream::kCompute, "sum", {in(r.ring), out(r.y)});
  });
  EXPECT_TRUE(only_problem_has(problems_of(p), {"F.s.sum", "reads buffer ring where nothing wrote it"}));
}

TEST(RowParts, OfATempMustBeWrittenBeforeTheyAreRead) {
  const Program p = Ring().make([](SegmentBuilder& s, Ring& r) {
    const Ref t = s.temp("t", DType::kF32, {kMembers, kWidth}, MemoryClass::kActivations);
    r.copy(s, "own", in(r.x), part(out(t), 0));
    r.copy(s, "use", part(in(t), 1), out(r.y));
  });
  EXPECT_TRUE(only_problem_has(problems_of(p), {"op use: reads temp t before anything wrote it"}));
}

TEST(RowParts, MayNotBeReadWhereTheOpWritesThem) {
  const auto with = [](std::int64_t read, std::int64_t written) {
    return Ring().make([&](SegmentBuilder& s, Ring& r) {
      travel(s, r);
      Op& op = s.op(OpKind::kExchange, Stream::kTp, "again", {part(in(r.ring), read), part(out(r.ring), written)});
      op.parts = {{0, true, r.b.role("tp"), 1, Channel::kActivation},
                  {1, false, r.b.role("tp"), -1, Channel::kActivation}};
      op.index_role = r.b.role("tp");
    });
  };
  EXPECT_EQ(joined(problems_of(with(0, 1))), "");
  EXPECT_TRUE(only_problem_has(problems_of(with(1, 1)), {"F.s.again", "onto bytes of operand 0"}));
}

TEST(RowParts, AreAsManyAsTheGroupHasMembers) {
  EXPECT_TRUE(joined(problems_of(Ring().make(travel, 2))).find("divides by 3, but a group of tp has 2 members") !=
              std::string::npos);
}

TEST(RowParts, RefuseWhatTheyCannotBe) {
  const auto broken = [](const std::function<void(Op&)>& change) {
    Program p = Ring().make(travel);
    change(p.segments[SegmentId(0)].ops[2]);  // use0
    return joined(problems_of(p));
  };
  const auto has = [](const std::string& text, const char* piece) { return text.find(piece) != std::string::npos; };
  EXPECT_TRUE(has(broken([](Op& op) { op.operands[0].before = 3; }), "is no part of as many as it says"));
  EXPECT_TRUE(has(broken([](Op& op) { op.operands[0].parts = 1, op.operands[0].before = 2; }), "is no part of"));
  EXPECT_TRUE(has(broken([](Op& op) { op.operands[0].parts = 2; }), "has no rows to cut into 2 parts"));
  EXPECT_TRUE(has(broken([](Op& op) { op.index_role.reset(); }), "that another op cuts into other parts"));
  EXPECT_TRUE(has(broken([](Op& op) { op.kind = OpKind::kCast; }), "which is for matmul, copy"));
}

// Ops 0 and 1 fill blocks 0 and 1 (of three: two before the first), 2 reads block 0, 3 block 1.
TEST(RowParts, WithoutARoleAreTheSameBlocksForAllRanks) {
  const Program p = Ring().make([](SegmentBuilder& s, Ring& r) {
    s.op(OpKind::kCopy, Stream::kCompute, "fill0", {in(r.x), part(out(r.ring), 0)});
    s.op(OpKind::kCopy, Stream::kTp, "fill1", {in(r.x), part(out(r.ring), 2)});
    s.op(OpKind::kCopy, Stream::kDp, "use0", {part(in(r.ring), 0), out(r.y)});
    s.op(OpKind::kCopy, Stream::kGather, "use1", {part(in(r.ring), 2), out(r.y)});
  });
  EXPECT_EQ(joined(problems_of(p)), "");
  const Resolution res = resolve(p, p.rank_programs[RankProgramId(0)]);
  std::vector<std::vector<std::uint32_t>> edges;
  for (std::uint32_t op = 0; op < res.op_count(); ++op) {
    edges.emplace_back(res.predecessors(op).begin(), res.predecessors(op).end());
  }
  EXPECT_EQ(edges, (std::vector<std::vector<std::uint32_t>>{{}, {}, {0}, {1, 2}}));  // 3 writes y after 2
}

// Derived as if the index was 0, a part of the ring and its first row would overlap for one member alone.
TEST(RowParts, GoWithNoOtherViewOfTheSameBytes) {
  Program p = Ring().make(travel);
  RankProgram& r = p.rank_programs[RankProgramId(0)];
  const View row{r.views[ViewId(2)].buffer, 0, r.views[ViewId(0)].type};
  SegmentBuilder s("row");
  const Ref x = s.slot("x", DType::kF32, {1, kWidth});
  const Ref y = s.slot("y", DType::kF32, {1, kWidth});
  s.op(OpKind::kCopy, Stream::kCompute, "copy", {in(x), out(y)});
  r.calls.push_back({p.segments.push(s.take()), {r.views.push(row), ViewId(1)}, {}});
  EXPECT_TRUE(only_problem_has(problems_of(p), {"F.row.copy", "buffer ring", "another op cuts into other parts"}));
}

TEST(RowParts, RoundTripAsText) {
  const Program p = Ring().make(travel);
  const std::string text = to_text(p);
  EXPECT_NE(text.find("op \"use1\" copy compute (2 read part(1 3), 1 write) index=r0"), std::string::npos) << text;
  EXPECT_EQ(parse_text(text, "ring.txt"), p);
}

TEST(RowParts, AreInTheFingerprint) {
  const Program p = Ring().make(travel);
  Program other = p;
  other.segments[SegmentId(0)].ops[2].operands[0].before = 2;
  EXPECT_NE(fingerprint(p), fingerprint(other));
}

}  // namespace
}  // namespace stepcast::program
