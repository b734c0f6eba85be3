// The text form: round trip, readability, errors with their line.
#include <gtest/gtest.h>

#include "base/error.h"
#include "program/text.h"
#include "tests/program/sample_program.h"

namespace stepcast::program {
namespace {

using testing::sample_program;

TEST(Text, RoundTripsEveryField) {
  const Program p = sample_program();
  const std::string text = to_text(p);
  const Program back = parse_text(text, "sample.txt");
  EXPECT_EQ(back, p);
  EXPECT_EQ(to_text(back), text);
  EXPECT_EQ(fingerprint(back), fingerprint(p));
}

TEST(Text, RoundTripsAnEmptyProgram) { EXPECT_EQ(parse_text(to_text(Program{}), "empty.txt"), Program{}); }

// Written out in full once: what people read and scripts may rely on.
TEST(Text, ReadsLikeThis) {
  SegmentBuilder s("mlp");
  const Ref x = s.slot("x", DType::kBf16, {4, 6});
  const Ref w = s.slot("w", DType::kBf16, {8, 6});
  const Ref t = s.temp("y", DType::kBf16, {4, 8}, MemoryClass::kActivations);
  s.op(OpKind::kMatmul, Stream::kCompute, "up", {in(x), in(w), out(t)});
  Op& reduce = s.op(OpKind::kAllReduce, Stream::kTp, "reduce", {acc(t)});
  ProgramBuilder b("tiny");
  reduce.group = b.role("tp");
  const SegmentId segment = b.segment(s.take());
  RankProgramBuilder r("stage0");
  const ViewId x_view = r.tensor("x", DType::kBf16, {4, 6}, MemoryClass::kActivations);
  const ViewId w_view = r.tensor("w", DType::kBf16, {8, 6}, MemoryClass::kWeights, true);
  r.call(segment, {x_view, w_view}, Tag{Pass::kForward, 0, 1, 2});
  b.group(b.role("tp"), {b.rank(b.rank_program(r.take()), 0)});
  EXPECT_EQ(to_text(b.take()), R"(stepcast-program 1
program "tiny" seed 0
role "tp"  # r0
segment "mlp"  # s0
  slot "x" bf16 [4, 6]
  slot "w" bf16 [8, 6]
  temp "y" bf16 [4, 8] activations
  op "up" matmul compute (0 read, 1 read, t0 write)  # "x" "w" "y"
  op "reduce" all_reduce tp (t0 accumulate) group=r0  # "y"
rank_program "stage0"  # k0
  buffer "x" 48 device activations  # b0
  buffer "w" 96 device weights persistent  # b1
  view b0 at 0 bf16 [4, 6]  # v0
  view b1 at 0 bf16 [8, 6]  # v1
  call F c0 m1 L2 s0 (v0, v1)  # "mlp"
rank k0 device 0 (g0 0)  # 0
group r0 (0)  # g0
)");
}

// Parses `lines` behind a sound start and returns the problems.
std::vector<Problem> problems_in(const std::string& lines) {
  try {
    parse_text("stepcast-program 1\nprogram \"p\" seed 0\n" + lines, "p.txt");
  } catch (const Error& error) {
    return error.problems();
  }
  return {};
}

TEST(Text, SaysFileLineAndWhatWasExpected) {
  const std::vector<Problem> problems = problems_in("role tp\nsegment \"s\"\n  slot \"x\" f12 [4]\n");
  ASSERT_EQ(problems.size(), 2U);  // both lines are reported
  EXPECT_EQ(problems[0].where.file, "p.txt");
  EXPECT_EQ(problems[0].where.line, 3);
  EXPECT_EQ(problems[0].message, "expected a quoted string, found \"tp\"");
  EXPECT_EQ(problems[1].where.line, 5);
  EXPECT_EQ(problems[1].message,
            "expected an element type (f32, bf16, f64, i32, u8, f16, f8, f8_block, mxf8, nvf4), found \"f12\"");
}

TEST(Text, RefusesMalformedLines) {
  for (const char* line : {"program \"again\" seed 1",
                           "role \"a\" \"b\"",
                           "role \"a",
                           "role \"\\q\"",
                           "role \"\\xg0\"",
                           "nonsense",
                           "slot \"x\" f32 [4]",
                           "segment \"s\"\nslot \"x\" f32 [4, 4, 4, 4]",
                           "segment \"s\"\nslot \"x\" f32 [4",
                           "segment \"s\"\nslot \"x\" f32 [99999999999999999999]",
                           "segment \"s\"\nop \"o\" add compute (65536 read)",
                           "segment \"s\"\nop \"o\" add compute () heads=2147483648",
                           "segment \"s\"\nop \"o\" add compute () colour=1",
                           "segment \"s\"\nop \"o\" add compute () counts=[]",
                           "rank_program \"r\"\nloss v0\nloss v0",
                           "rank_program \"r\"\ncall F c65536 s0 ()",
                           "rank_program \"r\"\nbuffer \"b\" 1e3 device weights",
                           "rank k0 device 4294967296 ()",
                           "group r0 (4294967296)",
                           "role \"a\"\nbuffer \"b\" 1 device weights",
                           "symbol \"y\" bound \"4\"",
                           "parameter \"w\" rows 1 cols 1 normal x",
                           "\x01"}) {
    EXPECT_FALSE(problems_in(line).empty()) << line;
  }
}

TEST(Text, RefusesAnotherHeaderOrNone) {
  EXPECT_THROW(parse_text("", "f"), Error);
  EXPECT_THROW(parse_text("stepcast-program 2\nprogram \"p\" seed 0\n", "f"), Error);
  EXPECT_THROW(parse_text("stepcast-program 1\n", "f"), Error);
}

TEST(Text, IgnoresCommentsBlankLinesAndIndentation) {
  const Program p = parse_text("stepcast-program 1\n# all\n\n\t program   \"p # not a comment\" seed 3 # c\n", "f");
  EXPECT_EQ(p.name, "p # not a comment");
  EXPECT_EQ(p.seed, 3U);
}

TEST(Text, StopsAfterManyProblems) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "nonsense\n";
  EXPECT_EQ(problems_in(text).size(), 20U);
}

}  // namespace
}  // namespace stepcast::program
