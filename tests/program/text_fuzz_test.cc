// parse_text and program/check on damaged texts: a Program or stepcast::Error, nothing else.
#include <gtest/gtest.h>

#include "base/error.h"
#include "program/check.h"
#include "program/text.h"
#include "tests/fuzz/mutate.h"
#include "tests/program/sample_program.h"
#include "tests/program/sketch.h"
#include "tests/random_cases.h"

namespace stepcast::program {
namespace {

// Sound, so that mutations reach the deeper checks.
Program small_sound_program() {
  ProgramBuilder b("small");
  testing::Sketch zero(b, "zero");
  const ViewId x = zero.tensor("x", 4, false);
  zero.fill("fill", x);
  zero.send("send", Stream::kSendNext, x, 1, Channel::kActivation);
  zero.all_reduce("reduce", Stream::kTp, x, "tp");
  testing::Sketch one(b, "one");
  const ViewId y = one.tensor("y", 4, false);
  one.receive("receive", Stream::kRecvPrev, y, -1, Channel::kActivation);
  one.host_read("read", y);
  one.all_reduce("reduce", Stream::kTp, y, "tp");
  Op shift;
  shift.index_role = b.role("tp");
  one.op("shift", OpKind::kCopy, Stream::kCompute, {{y, Access::kRead, 2, 1}, {y, Access::kWrite, 2, 0}}, shift);
  const std::vector<RankId> ranks = {zero.add_rank(), one.add_rank()};
  b.group(b.role("pp"), ranks);
  b.group(b.role("tp"), ranks);
  return b.take();
}

const std::vector<std::string> kWords = {
    "r0",     "r7",         "s0",         "s1",         "v0",        "v3",         "b0",   "g0",       "k1",
    "t0",     "read",       "write",      "tp",         "pp",        "all_gather", "send", "exchange", "f32",
    "bf16",   "y0",         "(0)",        "4294967295", "c1",        "opt",        "-",    "[4]",      "group=r1",
    "member", "persistent", "accumulate", "join",       "host_read", "part",       "(1 2)"};

TEST(TextFuzz, ParsesOrThrowsErrorAndRoundTripsWhatItParses) {
  const fuzz::Mutator mutator(20240611, {to_text(testing::sample_program()), to_text(small_sound_program())}, kWords);
  std::uint64_t parsed = 0;
  std::uint64_t sound = 0;
  const std::uint64_t cases = stepcast::testing::random_cases(6000);
  for (std::uint64_t i = 0; i < cases; ++i) {
    const std::string text = mutator.text_at(i);
    try {
      Program p = parse_text(text, "fuzz.txt");
      ++parsed;
      const Program back = parse_text(to_text(p), "again.txt");
      const bool has_nan = !(p == p);  // the one value that differs from itself
      ASSERT_TRUE(has_nan || back == p) << "case " << i;
      const CheckedProgram checked(std::move(p));
      ++sound;
    } catch (const Error& error) {
      ASSERT_FALSE(error.problems().empty()) << "case " << i;
    }
  }
  // Mutations of each outcome occur.
  EXPECT_GT(parsed, cases / 12);
  EXPECT_GT(sound, cases / 120);
  EXPECT_LT(parsed, cases / 12 * 11);
}

}  // namespace
}  // namespace stepcast::program
