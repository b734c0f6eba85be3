// Lifetimes and peaks: one timeline by hand, random programs against a count position by position.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "program/lifetimes.h"
#include "tests/program/sketch.h"

namespace stepcast::program {
namespace {

using testing::Sketch;

std::size_t index(MemoryClass c) { return static_cast<std::size_t>(c); }

// Weights 100 B persistent; a 40 B ops 0-1; b 24 B ops 1-2 (activations); g 60 B ops 2-3 (gradients); h on the host.
struct HandExample {
  Program p;
  Resolution res;
  Lifetimes lifetimes;
};

HandExample hand_example() {
  ProgramBuilder b("p");
  Sketch s(b, "r");
  RankProgramBuilder& r = s.builder();
  const ViewId w = r.tensor("w", DType::kF32, {25}, MemoryClass::kWeights, true);
  const ViewId a = r.tensor("a", DType::kF32, {10}, MemoryClass::kActivations);
  const ViewId b_view = r.tensor("b", DType::kF32, {6}, MemoryClass::kActivations);
  const ViewId g = r.tensor("g", DType::kF32, {15}, MemoryClass::kGradients);
  const BufferId host = r.buffer("h", 1000, MemoryClass::kComm, false, Space::kHost);
  const ViewId h = r.view(host, 0, DType::kF32, {15});
  r.tensor("never", DType::kF32, {1000}, MemoryClass::kComm);
  s.op("0", OpKind::kAdd, Stream::kCompute, {{w, Access::kRead}, {a, Access::kWrite}});
  s.op("1", OpKind::kAdd, Stream::kTp, {{a, Access::kRead}, {b_view, Access::kWrite}});
  s.op("2", OpKind::kAdd, Stream::kCompute, {{b_view, Access::kRead}, {g, Access::kWrite}});
  s.op("3", OpKind::kAdd, Stream::kD2h, {{g, Access::kRead}, {h, Access::kWrite}});
  s.add_rank();
  HandExample e{b.take(), {}, {}};
  const RankProgram& program = e.p.rank_programs[RankProgramId(0)];
  e.res = resolve(e.p, program);
  e.lifetimes = derive_lifetimes(e.p, program, e.res);
  return e;
}

TEST(Lifetimes, FollowFirstAndLastIssue) {
  const Lifetimes l = hand_example().lifetimes;
  ASSERT_EQ(l.blocks.size(), 4U);  // w, a, b, g; the host buffer and the untouched one do not count
  EXPECT_TRUE(l.blocks[0].persistent);
  EXPECT_EQ(l.blocks[1].first_op, 0U);
  EXPECT_EQ(l.blocks[1].last_op, 1U);
  EXPECT_EQ(l.blocks[2].first_op, 1U);
  EXPECT_EQ(l.blocks[2].last_op, 2U);
  EXPECT_EQ(l.blocks[3].last_op, 3U);
}

TEST(Lifetimes, FindThePeakAndEachClassesOwn) {
  const Lifetimes l = hand_example().lifetimes;
  // By op: 100 + 40, 100 + 40 + 24 = 164, 100 + 24 + 60 = 184, 100 + 60. The peak is op 2; activations peak at op 1
  // (64).
  EXPECT_EQ(l.peak, 184);
  EXPECT_EQ(l.peak_op, 2U);
  EXPECT_EQ(l.at_peak[index(MemoryClass::kWeights)], 100);
  EXPECT_EQ(l.at_peak[index(MemoryClass::kActivations)], 24);
  EXPECT_EQ(l.at_peak[index(MemoryClass::kGradients)], 60);
  EXPECT_EQ(l.class_peak[index(MemoryClass::kActivations)], 64);
  EXPECT_EQ(l.persistent[index(MemoryClass::kWeights)], 100);
  EXPECT_EQ(l.class_peak[index(MemoryClass::kComm)], 0);
}

TEST(Lifetimes, CountPersistentBuffersOfAnEmptyProgram) {
  ProgramBuilder b("p");
  Sketch s(b, "r");
  s.tensor("w", 4, true);
  s.add_rank();
  const Program p = b.take();
  const RankProgram& r = p.rank_programs[RankProgramId(0)];
  const Lifetimes l = derive_lifetimes(p, r, resolve(p, r));
  EXPECT_EQ(l.peak, 16);  // 4 f32
  EXPECT_EQ(l.blocks.size(), 1U);
}

TEST(Lifetimes, GiveEachCallItsTemps) {
  SegmentBuilder segment("s");
  const Ref x = segment.slot("x", DType::kF32, {4});
  const Ref t = segment.temp("t", DType::kF32, {8}, MemoryClass::kComm);
  segment.temp("unused", DType::kF32, {100}, MemoryClass::kComm);
  segment.op(OpKind::kAdd, Stream::kCompute, "0", {in(x)});
  segment.op(OpKind::kAdd, Stream::kCompute, "1", {out(t)});
  segment.op(OpKind::kAdd, Stream::kCompute, "2", {in(t)});
  ProgramBuilder b("p");
  const SegmentId id = b.segment(segment.take());
  Sketch s(b, "r");
  const ViewId x_view = s.tensor("x");
  s.builder().call(id, {x_view}, {});
  s.builder().call(id, {x_view}, {});
  s.add_rank();
  const Program p = b.take();
  const RankProgram& r = p.rank_programs[RankProgramId(0)];
  const Lifetimes l = derive_lifetimes(p, r, resolve(p, r));
  ASSERT_EQ(l.blocks.size(), 3U);  // x and a temp per call
  EXPECT_TRUE(l.blocks[2].is_temp);
  EXPECT_EQ(l.blocks[2].call, 1U);
  EXPECT_EQ(l.blocks[2].first_op, 4U);  // op 1 of the second call of 3 ops
  EXPECT_EQ(l.blocks[2].last_op, 5U);
  EXPECT_EQ(l.class_peak[index(MemoryClass::kComm)], 32);  // never both at once
}

TEST(Lifetimes, AgreeWithACountAtEveryPosition) {
  for (std::uint64_t round = 0; round < 200; ++round) {
    const RandomStream draw(11, "lifetimes-test");
    std::uint64_t next = round * 1000;
    const auto below = [&](std::uint64_t bound) { return draw.integer_at(next++, bound); };
    ProgramBuilder b("p");
    Sketch s(b, "r");
    std::vector<ViewId> views;
    for (int i = 0; i < 8; ++i) {
      views.push_back(s.builder().tensor("b", DType::kF32, {static_cast<std::int64_t>(1 + below(9))},
                                         static_cast<MemoryClass>(below(kMemoryClassCount)), below(4) == 0));
    }
    std::vector<std::vector<std::size_t>> touched(3 + below(20));  // buffers by op
    for (std::size_t op = 0; op < touched.size(); ++op) {
      std::vector<testing::Use> uses;
      for (std::uint64_t n = below(3); n > 0; --n) {
        touched[op].push_back(below(views.size()));
        uses.push_back({views[touched[op].back()], Access::kRead});
      }
      s.op(std::to_string(op), OpKind::kAdd, Stream::kCompute, uses);
    }
    s.add_rank();
    const Program p = b.take();
    const RankProgram& r = p.rank_programs[RankProgramId(0)];
    const Lifetimes l = derive_lifetimes(p, r, resolve(p, r));
    const std::vector<ClassBytes> bytes = allocated_over_time(l, static_cast<std::uint32_t>(touched.size()));
    std::int64_t peak = 0;
    for (std::size_t op = 0; op < touched.size(); ++op) {
      ClassBytes expected{};
      for (std::size_t v = 0; v < views.size(); ++v) {
        const Buffer& buffer = r.buffers[BufferId(v)];
        // Alive where some op up to here and some op from here on touch it.
        const auto touches = [&](const std::vector<std::size_t>& t) { return std::count(t.begin(), t.end(), v) > 0; };
        const auto here = touched.begin() + static_cast<std::ptrdiff_t>(op);
        const bool alive = std::any_of(touched.begin(), here + 1, touches) && std::any_of(here, touched.end(), touches);
        if (alive || buffer.persistent) expected[index(buffer.memory_class)] += buffer.bytes;
      }
      ASSERT_EQ(bytes[op], expected) << "round " << round << " op " << op;
      peak = std::max(peak, std::accumulate(expected.begin(), expected.end(), std::int64_t{0}));
    }
    ASSERT_EQ(l.peak, peak) << "round " << round;
  }
}

}  // namespace
}  // namespace stepcast::program
