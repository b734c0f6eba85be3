// Builders store equal parts once and keep memberships.
#include <gtest/gtest.h>

#include "base/check.h"
#include "program/builder.h"
#include "tests/program/sketch.h"

namespace stepcast::program {
namespace {

Segment double_it(const std::string& label) {
  SegmentBuilder b(label);
  const Ref x = b.slot("x", DType::kF32, {4});
  const Ref t = b.temp("t", DType::kF32, {4}, MemoryClass::kComm);
  b.op(OpKind::kCopy, Stream::kCompute, "copy", {in(x), out(t)});
  b.op(OpKind::kAdd, Stream::kCompute, "add", {in(x), in(t), acc(x)});
  return b.take();
}

TEST(SegmentBuilder, KeepsSlotsTempsAndOps) {
  const Segment s = double_it("double");
  ASSERT_EQ(s.ops.size(), 2U);
  EXPECT_EQ(s.ops[0].operands[1], (Operand{true, 0, Access::kWrite}));
  EXPECT_EQ(s.ops[1].operands[2], (Operand{false, 0, Access::kAccumulate}));
  EXPECT_EQ(s.temps[0].memory_class, MemoryClass::kComm);
}

TEST(ProgramBuilder, StoresEqualSegmentsOnce) {
  ProgramBuilder b("p");
  const SegmentId a = b.segment(double_it("a"));
  EXPECT_EQ(b.segment(double_it("a")), a);
  EXPECT_NE(b.segment(double_it("b")), a);
  EXPECT_EQ(b.program().segments.size(), 2U);
}

TEST(ProgramBuilder, StoresEqualRankProgramsOnce) {
  ProgramBuilder b("p");
  const auto make = [&](const std::string& name) {
    testing::Sketch s(b, name);
    s.fill("fill", s.tensor("x"));
    return s.add_rank();
  };
  const RankId first = make("stage0");
  const RankId second = make("stage0");
  const RankId third = make("stage1");
  const Program p = b.take();
  EXPECT_EQ(p.ranks[first].program, p.ranks[second].program);
  EXPECT_NE(p.ranks[first].program, p.ranks[third].program);
  EXPECT_EQ(p.segments.size(), 1U);
}

TEST(ProgramBuilder, SetsMembershipsByPosition) {
  ProgramBuilder b("p");
  testing::Sketch s(b, "r");
  const RankId r0 = s.add_rank();
  const RankId r1 = b.rank(RankProgramId(0), 1);
  const RoleId tp = b.role("tp");
  const RoleId dp = b.role("dp");
  EXPECT_EQ(b.role("tp"), tp);
  const GroupId g = b.group(dp, {r1, r0});
  EXPECT_THROW(b.group(dp, {r0}), InternalError);  // a rank is in one group of a role
  const Program p = b.take();
  EXPECT_EQ(membership(p, r0, dp), (Membership{g, 1}));
  EXPECT_EQ(membership(p, r1, dp), (Membership{g, 0}));
  EXPECT_EQ(p.ranks[r0].memberships.size(), 2U);
  EXPECT_THROW(membership(p, r0, tp), InternalError);
  EXPECT_EQ(find_role(p, "dp"), dp);
  EXPECT_EQ(find_role(p, "ep"), std::nullopt);
}

TEST(ProgramBuilder, StoresAParameterOnceAndRefusesAnother) {
  ProgramBuilder b("p");
  const ParameterId id = b.parameter({"w", 2, 3, Init::kNormal, 0.02});
  EXPECT_EQ(b.parameter({"w", 2, 3, Init::kNormal, 0.02}), id);
  EXPECT_THROW(b.parameter({"w", 2, 4, Init::kNormal, 0.02}), InternalError);
}

TEST(RankProgramBuilder, StoresEqualViewsOnce) {
  RankProgramBuilder b("r");
  const ViewId v = b.tensor("x", DType::kBf16, {2, 6}, MemoryClass::kActivations);
  const ViewId flat = b.view(b.at(v).buffer, 0, DType::kBf16, {12});
  EXPECT_EQ(b.view(b.at(v).buffer, 0, DType::kBf16, {12}), flat);
  EXPECT_NE(flat, v);
  EXPECT_EQ(b.at(flat).type.bytes(), 24);  // 12 elements of 2 bytes
}

TEST(OpPath, NamesTheParts) {
  ProgramBuilder b("p");
  const SegmentId segment = b.segment(double_it("attn"));
  RankProgramBuilder r("r");
  const ViewId x = r.tensor("x", DType::kF32, {4}, MemoryClass::kActivations);
  r.call(segment, {x}, Tag{Pass::kForward, 0, 3, 12});
  r.call(segment, {x}, Tag{Pass::kOptimizer, {}, {}, {}});
  b.rank_program(r.take());
  const Program p = b.take();
  const RankProgram& program = p.rank_programs[RankProgramId(0)];
  EXPECT_EQ(op_path(p, program, 0, 1), "F.c0.m3.L12.attn.add");
  EXPECT_EQ(op_path(p, program, 1, 0), "opt.attn.copy");
}

}  // namespace
}  // namespace stepcast::program
