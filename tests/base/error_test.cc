// Errors: the text, the kind, and that all problems come at once. CHECK: what it prints.
#include "base/error.h"

#include <gtest/gtest.h>

#include <string>

#include "base/check.h"

namespace stepcast {
namespace {

TEST(Error, SaysWhatWhereAndWhatWouldWork) {
  const Error error(ErrorKind::kInput, "unknown key \"tpp\"", {.file = "a.yaml", .line = 12, .field = "plan.tpp"},
                    {"did you mean tp?"});
  EXPECT_STREQ(error.what(), "error: unknown key \"tpp\"\n  --> a.yaml:12: plan.tpp\n  help: did you mean tp?\n");
  EXPECT_EQ(error.exit_code(), 3);
}

TEST(Error, LeavesOutUnknownParts) {
  EXPECT_STREQ(Error(ErrorKind::kUsage, "no command").what(), "error: no command\n");
  EXPECT_STREQ(Error(ErrorKind::kInput, "bad", {.file = "a.yaml", .line = 0, .field = ""}).what(),
               "error: bad\n  --> a.yaml\n");
  EXPECT_STREQ(Error(ErrorKind::kInput, "bad", {.file = "", .line = 0, .field = "plan.tp"}).what(),
               "error: bad\n  --> plan.tp\n");
}

TEST(Error, SaysThatItIsKnownButNotSupported) {
  const Error error(ErrorKind::kUnsupported, "plan.cp");
  EXPECT_STREQ(error.what(), "not supported yet: plan.cp\n");
  EXPECT_EQ(error.exit_code(), 4);
}

TEST(ProblemList, ThrowsAllProblemsAtOnce) {
  ProblemList problems;
  EXPECT_NO_THROW(problems.throw_if_any());
  problems.add(ErrorKind::kUnsupported, "first");
  problems.add(ErrorKind::kInput, "second");
  try {
    problems.throw_if_any();
    FAIL();
  } catch (const Error& error) {
    ASSERT_EQ(error.problems().size(), 2U);
    // Bad input outranks what is not supported yet: it has to be fixed first.
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_NE(std::string(error.what()).find("first"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("second"), std::string::npos);
  }
}

TEST(Check, PrintsTheConditionAndTheValues) {
  const int stages = 3;
  try {
    CHECK(stages == 4, stages, "pp");
    FAIL();
  } catch (const InternalError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("CHECK(stages == 4) failed, with 3 pp"), std::string::npos) << text;
    EXPECT_NE(text.find("error_test.cc:"), std::string::npos) << text;
  }
  EXPECT_NO_THROW(CHECK(stages == 3, stages));
}

}  // namespace
}  // namespace stepcast
