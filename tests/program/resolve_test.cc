// Edges from operands: the three kinds of dependence by hand, and random programs against a pairwise oracle.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "base/random.h"
#include "program/resolve.h"
#include "tests/program/sketch.h"

namespace stepcast::program {
namespace {

using testing::Sketch;
using Edges = std::vector<std::vector<std::uint32_t>>;  // predecessors by op

// Resolves the single rank program of `b`.
Edges edges_of(ProgramBuilder& b, Sketch& s) {
  s.add_rank();
  const Program p = b.take();
  const Resolution res = resolve(p, p.rank_programs[RankProgramId(0)]);
  Edges edges;
  for (std::uint32_t op = 0; op < res.op_count(); ++op) {
    edges.emplace_back(res.predecessors(op).begin(), res.predecessors(op).end());
  }
  return edges;
}

TEST(Resolve, OrdersReadAfterWriteWriteAfterReadAndWriteAfterWrite) {
  ProgramBuilder b("p");
  Sketch s(b, "r");
  const ViewId x = s.tensor("x");
  const ViewId y = s.tensor("y");
  s.fill("a", x);                   // 0 compute
  s.copy("b", x, y, Stream::kTp);   // 1 reads x after 0
  s.fill("c", x, Stream::kDp);      // 2 overwrites x: after its writer 0 and its reader 1
  s.fill("d", y, Stream::kDp);      // 3 overwrites y after 1, which 2 of its stream already waited for
  s.fill("e", y, Stream::kGather);  // 4 after 3
  EXPECT_EQ(edges_of(b, s), (Edges{{}, {0}, {0, 1}, {}, {3}}));
}

TEST(Resolve, LeavesReadersUnordered) {
  ProgramBuilder b("p");
  Sketch s(b, "r");
  const ViewId x = s.tensor("x");
  s.copy("a", x, s.tensor("y"));
  s.copy("b", x, s.tensor("z"), Stream::kTp);
  EXPECT_EQ(edges_of(b, s), (Edges{{}, {}}));
}

TEST(Resolve, SeesPartialOverlapsOnly) {
  ProgramBuilder b("p");
  Sketch s(b, "r");
  const ViewId x = s.tensor("x", 8);
  s.fill("low", s.part(x, 0, 4));                                 // 0
  s.fill("high", s.part(x, 4, 4), Stream::kTp);                   // 1 disjoint
  s.copy("middle", s.part(x, 2, 4), s.tensor("y"), Stream::kDp);  // 2 overlaps both
  s.fill("first", s.part(x, 0, 2), Stream::kGather);              // 3 overlaps 0 alone
  s.fill("third", s.part(x, 2, 1), Stream::kEp);                  // 4 overwrites 0's, read by 2
  EXPECT_EQ(edges_of(b, s), (Edges{{}, {}, {0, 1}, {0}, {0, 2}}));
}

TEST(Resolve, KeepsTheLatestPerStream) {
  ProgramBuilder b("p");
  Sketch s(b, "r");
  const ViewId x = s.tensor("x", 8);
  s.fill("a", s.part(x, 0, 4));  // 0
  s.fill("b", s.part(x, 4, 4));  // 1 same stream
  s.copy("c", x, s.tensor("y", 8), Stream::kTp);
  EXPECT_EQ(edges_of(b, s), (Edges{{}, {}, {1}}));
}

// Unit i is gathered into buffer i % 2 and used on the compute stream: the gather of unit 2 waits for the use of unit
// 0.
TEST(Resolve, MakesARingOfTwoBuffersLimitPrefetch) {
  ProgramBuilder b("p");
  Sketch s(b, "r");
  const ViewId ring[] = {s.tensor("ring0"), s.tensor("ring1")};
  for (int unit = 0; unit < 4; ++unit) {
    s.fill("gather" + std::to_string(unit), ring[unit % 2], Stream::kGather);
    s.copy("use" + std::to_string(unit), ring[unit % 2], s.tensor("y" + std::to_string(unit)));
  }
  // Ops 0 g0, 1 u0, 2 g1, 3 u1, 4 g2, 5 u2, 6 g3, 7 u3.
  EXPECT_EQ(edges_of(b, s), (Edges{{}, {0}, {}, {2}, {1}, {4}, {3}, {6}}));
}

TEST(Resolve, MakesAJoinWaitForTheTailOfItsStream) {
  ProgramBuilder b("p");
  Sketch s(b, "r");
  s.fill("a", s.tensor("x"));
  s.fill("b", s.tensor("y"));
  Op join;
  join.attributes.join_stream = Stream::kCompute;
  s.op("join", OpKind::kJoin, Stream::kDp, {}, join);
  s.fill("c", s.tensor("z"), Stream::kDp);
  EXPECT_EQ(edges_of(b, s), (Edges{{}, {}, {1}, {}}));
}

TEST(Resolve, GivesAnOpNoEdgeToItself) {
  ProgramBuilder b("p");
  Sketch s(b, "r");
  const ViewId x = s.tensor("x", 8);
  s.op("shift", OpKind::kCopy, Stream::kTp, {{s.part(x, 0, 6), Access::kRead}, {s.part(x, 2, 6), Access::kWrite}});
  s.copy("use", x, s.tensor("y", 8));
  EXPECT_EQ(edges_of(b, s), (Edges{{}, {0}}));
}

// The parts of a flat gradient buffer are first written from its end: 200,000 of them take 0.2 s. A list that moved all
// later ranges at each would move 72 B x 200,000^2 / 2 = 1.4 TB, half a minute.
TEST(Resolve, TakesManyPartsOfABufferInAnyOrder) {
  constexpr std::int64_t kParts = 200'000;
  ProgramBuilder b("p");
  Sketch s(b, "r");
  const ViewId x = s.tensor("x", kParts);
  for (std::int64_t i = kParts; i-- > 0;) s.fill("part", s.part(x, i, 1));
  s.copy("use", x, s.tensor("y", kParts), Stream::kDp);
  const std::clock_t start = std::clock();
  const Edges edges = edges_of(b, s);
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 10.0);
  EXPECT_EQ(edges.back(), std::vector<std::uint32_t>{kParts - 1});
}

TEST(Resolve, TakesTempsAsNewInEveryCall) {
  SegmentBuilder segment("s");
  const Ref x = segment.slot("x", DType::kF32, {4});
  const Ref t = segment.temp("t", DType::kF32, {4}, MemoryClass::kComm);
  segment.op(OpKind::kCopy, Stream::kCompute, "out", {in(x), out(t)});
  segment.op(OpKind::kCopy, Stream::kTp, "back", {in(t), out(x)});
  ProgramBuilder b("p");
  const SegmentId id = b.segment(segment.take());
  Sketch s(b, "r");
  const ViewId one = s.tensor("one");
  const ViewId two = s.tensor("two");
  s.builder().call(id, {one}, {});
  s.builder().call(id, {two}, {});
  // Within a call "back" waits for "out"; the second call shares nothing with the first.
  EXPECT_EQ(edges_of(b, s), (Edges{{}, {0}, {}, {2}}));
}

struct RandomAccess {
  std::size_t buffer;
  std::int64_t begin;
  std::int64_t end;
  bool writes;
};
struct RandomOp {
  Stream stream;
  std::vector<RandomAccess> accesses;
};

bool conflict(const RandomOp& a, const RandomOp& b) {
  for (const RandomAccess& x : a.accesses) {
    for (const RandomAccess& y : b.accesses) {
      if (x.buffer == y.buffer && x.begin < y.end && y.begin < x.end && (x.writes || y.writes)) return true;
    }
  }
  return false;
}

// reach[j][i]: op j starts after op i is over, by stream order and edges.
std::vector<std::vector<bool>> reachability(const std::vector<RandomOp>& ops, const Edges& edges) {
  std::vector<std::vector<bool>> reach(ops.size(), std::vector<bool>(ops.size(), false));
  for (std::size_t j = 0; j < ops.size(); ++j) {
    const auto follow = [&](std::size_t i) {
      reach[j][i] = true;
      for (std::size_t k = 0; k < i; ++k) {
        if (reach[i][k]) reach[j][k] = true;
      }
    };
    for (std::size_t i = 0; i < j; ++i) {
      if (ops[i].stream == ops[j].stream) follow(i);
    }
    for (const std::uint32_t i : edges[j]) follow(i);
  }
  return reach;
}

// Up to 40 ops on 4 streams over 3 buffers of 16 elements.
std::vector<RandomOp> random_ops(std::uint64_t round, Sketch& s) {
  const RandomStream draw(7, "resolve-test");
  std::uint64_t next = round * 1000;
  const auto below = [&](std::uint64_t bound) { return draw.integer_at(next++, bound); };
  std::vector<ViewId> buffers;
  for (int i = 0; i < 3; ++i) buffers.push_back(s.tensor("b" + std::to_string(i), 16));
  std::vector<RandomOp> ops(5 + below(36));
  for (std::size_t i = 0; i < ops.size(); ++i) {
    ops[i].stream = static_cast<Stream>(below(4));
    std::vector<testing::Use> uses;
    for (std::uint64_t n = 1 + below(3); n > 0; --n) {
      const std::size_t buffer = below(3);
      const auto begin = static_cast<std::int64_t>(below(16));
      const auto count = static_cast<std::int64_t>(1 + below(static_cast<std::uint64_t>(16 - begin)));
      const auto access = static_cast<Access>(below(3));
      uses.push_back({s.part(buffers[buffer], begin, count), access});
      ops[i].accesses.push_back({buffer, begin, begin + count, access != Access::kRead});
    }
    s.op("op" + std::to_string(i), OpKind::kAdd, ops[i].stream, uses);
  }
  return ops;
}

TEST(Resolve, AgreesWithAPairwiseOracleOnRandomPrograms) {
  for (std::uint64_t round = 0; round < 500; ++round) {
    ProgramBuilder b("p");
    Sketch s(b, "r");
    const std::vector<RandomOp> ops = random_ops(round, s);
    const Edges edges = edges_of(b, s);
    const auto reach = reachability(ops, edges);
    for (std::size_t j = 0; j < ops.size(); ++j) {
      for (std::size_t i = 0; i < j; ++i) {
        const bool ordered = reach[j][i] || !conflict(ops[i], ops[j]);
        ASSERT_TRUE(ordered) << "round " << round << ": " << i << " before " << j;
      }
      std::vector<Stream> streams;
      for (const std::uint32_t i : edges[j]) {
        // No edge without a conflict of its own two ops, none within a stream, one per stream, ascending.
        ASSERT_TRUE(conflict(ops[i], ops[j])) << "round " << round << ": " << i << " and " << j;
        ASSERT_NE(ops[i].stream, ops[j].stream);
        ASSERT_EQ(std::count(streams.begin(), streams.end(), ops[i].stream), 0);
        streams.push_back(ops[i].stream);
      }
      ASSERT_TRUE(std::is_sorted(edges[j].begin(), edges[j].end()));
    }
  }
}

}  // namespace
}  // namespace stepcast::program
