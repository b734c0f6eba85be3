// Every collective, run by an executor in groups of 1 to 5 members, against sums worked out here in member order.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "exec/collective.h"
#include "program/ops/rules.h"
#include "tests/exec/tiny_program.h"

namespace stepcast::exec {
namespace {

using program::ShardKind;
using tiny::Access;
using tiny::DType;
using tiny::OpKind;
using tiny::Stream;
using tiny::World;

struct Case {
  int members = 1;
  DType dtype = DType::kF32;
  bool uneven = false;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (int members = 1; members <= 5; ++members) {
    for (const DType dtype : {DType::kF32, DType::kBf16}) {
      all.push_back({members, dtype, false});
      all.push_back({members, dtype, true});
    }
  }
  return all;
}

// Elements per member: all 6, or 1, 3, 5, ...
std::vector<std::int64_t> counts_of(const Case& c) {
  std::vector<std::int64_t> counts;
  for (int m = 0; m < c.members; ++m) counts.push_back(c.uneven ? 2 * m + 1 : 6);
  return counts;
}

std::int64_t sum(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

// Column `col` of x [members, total] summed in member order in binary32, rounded once.
float column_sum(const Case& c, std::int64_t total, std::int64_t col) {
  float value = tiny::initial("x", col, c.dtype);
  for (int m = 1; m < c.members; ++m) value += tiny::initial("x", m * total + col, c.dtype);
  return tiny::rounded(value, c.dtype);
}

TEST(Collective, AllGatherConcatenatesThePartsInMemberOrder) {
  for (const Case& c : cases()) {
    const auto counts = counts_of(c);
    const std::int64_t total = sum(counts);
    World world(c.members);
    std::int64_t begin = 0;
    for (int m = 0; m < c.members; ++m) {
      const std::int64_t count = counts[static_cast<std::size_t>(m)];
      const auto in = world.shard(m, "x", 1, total, 0, begin, count, c.dtype);
      const auto out = world.shard(m, "y", c.members, total, m, 0, total, c.dtype, ShardKind::kGradient);
      world.collective(m, OpKind::kAllGather, Stream::kGather, {{in}, {out, Access::kWrite}}, "gather",
                       [&](program::Op& op) { op.member_counts = c.uneven ? counts : std::vector<std::int64_t>{}; });
      begin += count;
    }
    const auto checked = world.take();
    Executor executor(checked, {});
    executor.run_step();
    const auto y = tiny::gathered(checked, executor, "y", ShardKind::kGradient);
    ASSERT_EQ(y.size(), static_cast<std::size_t>(c.members * total));
    for (std::size_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(y[i], tiny::initial("x", static_cast<std::int64_t>(i) % total, c.dtype)) << c.members << " " << i;
    }
  }
}

TEST(Collective, ReduceScatterGivesEachMemberItsPartOfTheSum) {
  for (const Case& c : cases()) {
    const auto counts = counts_of(c);
    const std::int64_t total = sum(counts);
    World world(c.members);
    std::int64_t begin = 0;
    for (int m = 0; m < c.members; ++m) {
      const std::int64_t count = counts[static_cast<std::size_t>(m)];
      const auto in = world.shard(m, "x", c.members, total, m, 0, total, c.dtype);
      const auto out = world.shard(m, "y", 1, total, 0, begin, count, c.dtype, ShardKind::kGradient);
      world.collective(m, OpKind::kReduceScatter, Stream::kDp, {{in}, {out, Access::kWrite}}, "scatter",
                       [&](program::Op& op) { op.member_counts = c.uneven ? counts : std::vector<std::int64_t>{}; });
      begin += count;
    }
    const auto checked = world.take();
    Executor executor(checked, {});
    executor.run_step();
    const auto y = tiny::gathered(checked, executor, "y", ShardKind::kGradient);
    ASSERT_EQ(y.size(), static_cast<std::size_t>(total));
    for (std::int64_t i = 0; i < total; ++i) {
      EXPECT_EQ(y[static_cast<std::size_t>(i)], column_sum(c, total, i)) << c.members << " " << i;
    }
  }
}

// Two members sum [4,2] each; the parts of two rows go to columns 4 and 5 of [2,6], the third of three blocks.
TEST(Collective, AReduceScatterMayFillABlockOfColumns) {
  program::Op op;
  op.kind = OpKind::kReduceScatter;
  op.operands = {{false, 0, Access::kRead}, {false, 1, Access::kAccumulate}};
  op.group = program::RoleId(0);
  op.attributes.count = 2;
  const std::vector<program::TensorType> types = {{DType::kF32, {4, 2}}, {DType::kF32, {2, 6}}};
  ASSERT_EQ(program::check_operands(op, types), "");
  const std::vector<float> first{1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<float> second{10, 20, 30, 40, 50, 60, 70, 80};
  std::vector<float> to_first(12, -1);
  std::vector<float> to_second(12, -1);
  const std::vector<MemberBuffers> members{{first.data(), to_first.data()}, {second.data(), to_second.data()}};
  perform_collective(collective_spec(op, types, 2), members);
  EXPECT_EQ(to_first, (std::vector<float>{-1, -1, -1, -1, 11, 22, -1, -1, -1, -1, 33, 44}));
  EXPECT_EQ(to_second, (std::vector<float>{-1, -1, -1, -1, 55, 66, -1, -1, -1, -1, 77, 88}));
}

// The second of 4 parts of 12 elements is 3 elements, 12 bytes of the 48.
TEST(Collective, AnAllReduceOfTheOwnPartMovesThatPart) {
  program::Op op;
  op.kind = OpKind::kAllReduce;
  op.operands = {{false, 0, Access::kAccumulate}};
  op.group = program::RoleId(0);
  op.index_role = program::RoleId(1);
  op.attributes.count = 4;
  const std::vector<program::TensorType> whole = {{DType::kF32, {12}}};
  EXPECT_EQ(program::check_operands(op, whole), "");
  EXPECT_EQ(collective_spec(op, whole, 2).elements, 3);
  EXPECT_EQ(program::work_of(op, whole).message, Bytes(12));
  const std::vector<program::TensorType> ragged = {{DType::kF32, {10}}};
  EXPECT_NE(program::check_operands(op, ragged), "");
  op.index_role.reset();
  EXPECT_NE(program::check_operands(op, whole), "");
}

// All ranks run `kind` in place on their row of x [members, total]; returns x afterwards.
std::vector<float> run_in_place(const Case& c, OpKind kind, std::int64_t total,
                                const std::function<void(program::Op&)>& adjust) {
  World world(c.members);
  for (int m = 0; m < c.members; ++m) {
    const auto x = world.shard(m, "x", c.members, total, m, 0, total, c.dtype);
    world.collective(m, kind, Stream::kTp, {{x, Access::kAccumulate}}, "op", adjust);
  }
  const auto checked = world.take();
  Executor executor(checked, {});
  executor.run_step();
  return tiny::gathered(checked, executor, "x", ShardKind::kWeight);
}

TEST(Collective, AllReduceSumsInMemberOrder) {
  constexpr std::int64_t kTotal = 37;
  for (const Case& c : cases()) {
    const auto x = run_in_place(c, OpKind::kAllReduce, kTotal, {});
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(x[i], column_sum(c, kTotal, static_cast<std::int64_t>(i) % kTotal)) << c.members << " " << i;
    }
  }
}

TEST(Collective, AllReduceTakesTheMaximum) {
  constexpr std::int64_t kTotal = 37;
  for (const Case& c : cases()) {
    const auto x = run_in_place(c, OpKind::kAllReduce, kTotal,
                                [](program::Op& op) { op.attributes.reduce = program::Reduce::kMax; });
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::int64_t col = static_cast<std::int64_t>(i) % kTotal;
      float expected = tiny::initial("x", col, c.dtype);
      for (int m = 1; m < c.members; ++m) {
        expected = std::max(expected, tiny::initial("x", m * kTotal + col, c.dtype));
      }
      EXPECT_EQ(x[i], expected) << c.members << " " << i;
    }
  }
}

TEST(Collective, BroadcastCopiesTheRoot) {
  constexpr std::int64_t kTotal = 5;
  for (const Case& c : cases()) {
    const std::int64_t root = c.members - 1;
    const auto x = run_in_place(c, OpKind::kBroadcast, kTotal, [&](program::Op& op) { op.attributes.count = root; });
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::int64_t col = static_cast<std::int64_t>(i) % kTotal;
      EXPECT_EQ(x[i], tiny::initial("x", root * kTotal + col, c.dtype)) << c.members << " " << i;
    }
  }
}

// A bf16 has 8 significant bits: 256 + 1 + 1 is 258, which it holds; rounded after each addition it would stay at 256
// (257 is a tie and goes to the even 256).
TEST(Collective, RoundsABf16SumOnce) {
  std::vector<std::uint16_t> a{0x4380}, b{0x3f80}, c{0x3f80};  // 256, 1, 1
  CollectiveSpec spec{.kind = OpKind::kAllReduce, .dtype = DType::kBf16, .elements = 1, .counts = {}};
  const std::vector<MemberBuffers> members{{a.data(), a.data()}, {b.data(), b.data()}, {c.data(), c.data()}};
  perform_collective(spec, members);
  EXPECT_EQ(a[0], 0x4381);  // 258 = 1.0000001b * 2^8
  EXPECT_EQ(c[0], 0x4381);
}

// In binary32, (2^24 + 1) + 1 is 2^24 twice rounded, 2^24 + (1 + 1) would be 2^24 + 2; in binary64 both are exact.
template <class T>
T sum_of_three(DType dtype, T a, T b, T c) {
  const CollectiveSpec spec{.kind = OpKind::kAllReduce, .dtype = dtype, .elements = 1, .counts = {}};
  perform_collective(spec, std::vector<MemberBuffers>{{&a, &a}, {&b, &b}, {&c, &c}});
  EXPECT_EQ(a, c);
  return b;
}

TEST(Collective, SumsF64InF64AndF32InF32) {
  EXPECT_EQ(sum_of_three<double>(DType::kF64, 16777216.0, 1.0, 1.0), 16777218.0);
  EXPECT_EQ(sum_of_three<float>(DType::kF32, 16777216.0F, 1.0F, 1.0F), 16777216.0F);
}

TEST(Collective, MaximumKeepsNaNOfAnyMember) {
  for (std::size_t at = 0; at < 2; ++at) {
    std::vector<float> values{1.0F, 2.0F};
    values[at] = std::numeric_limits<float>::quiet_NaN();
    CollectiveSpec spec{
        .kind = OpKind::kAllReduce, .dtype = DType::kF32, .reduce = program::Reduce::kMax, .elements = 1, .counts = {}};
    perform_collective(spec, std::vector<MemberBuffers>{{&values[0], &values[0]}, {&values[1], &values[1]}});
    EXPECT_NE(values[0], values[0]);
    EXPECT_NE(values[1], values[1]);
  }
}

TEST(Collective, RefusesToSumIndices) {
  std::int32_t value = 1;
  const CollectiveSpec spec{.kind = OpKind::kAllReduce, .dtype = DType::kI32, .elements = 1, .counts = {}};
  EXPECT_THROW(perform_collective(spec, std::vector<MemberBuffers>{{&value, &value}}), Error);
}

// Of three members with two elements for each: member m's n-th part becomes the m-th of member n.
TEST(Collective, AllToAllTransposesTheParts) {
  std::vector<std::vector<float>> in{{0, 1, 2, 3, 4, 5}, {10, 11, 12, 13, 14, 15}, {20, 21, 22, 23, 24, 25}};
  std::vector<std::vector<float>> out(3, std::vector<float>(6));
  std::vector<MemberBuffers> members;
  for (std::size_t m = 0; m < 3; ++m) members.push_back({in[m].data(), out[m].data()});
  const CollectiveSpec spec{.kind = OpKind::kAllToAll, .dtype = DType::kF32, .elements = 6, .counts = {}};
  perform_collective(spec, members);
  EXPECT_EQ(out[0], (std::vector<float>{0, 1, 10, 11, 20, 21}));
  EXPECT_EQ(out[1], (std::vector<float>{2, 3, 12, 13, 22, 23}));
  EXPECT_EQ(out[2], (std::vector<float>{4, 5, 14, 15, 24, 25}));
}

// The ZeRO layouts: a member's shard is its slice of the flat buffer, gathered or scattered in place.
TEST(Collective, WorksInPlaceOnTheOwnSlice) {
  std::vector<float> a{1, 2, 0, 0}, b{0, 0, 3, 4};
  CollectiveSpec spec{.kind = OpKind::kAllGather, .dtype = DType::kF32, .elements = 4, .counts = {2, 2}};
  perform_collective(spec, std::vector<MemberBuffers>{{a.data(), a.data()}, {b.data() + 2, b.data()}});
  EXPECT_EQ(a, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(b, a);
  spec.kind = OpKind::kReduceScatter;
  perform_collective(spec, std::vector<MemberBuffers>{{a.data(), a.data()}, {b.data(), b.data() + 2}});
  EXPECT_EQ(a, (std::vector<float>{2, 4, 3, 4}));
  EXPECT_EQ(b, (std::vector<float>{1, 2, 6, 8}));
}

}  // namespace
}  // namespace stepcast::exec
