// Command names: help in both forms, later commands, misspellings.
#include "cli/arguments.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace stepcast::cli {
namespace {

using Words = std::vector<std::string>;

TEST(Arguments, TurnsHelpIntoTheOption) {
  EXPECT_EQ(prepared_arguments({"help"}), (Words{"--help"}));
  EXPECT_EQ(prepared_arguments({"help", "run"}), (Words{"run", "--help"}));
  EXPECT_EQ(prepared_arguments({"help", "exit-codes"}), (Words{"help", "exit-codes"}));
  EXPECT_EQ(prepared_arguments({"simulate", "a.yaml"}), (Words{"simulate", "a.yaml"}));
  EXPECT_EQ(prepared_arguments({}), Words{});
}

TEST(Arguments, SaysThatALaterCommandIsNotSupportedYet) {
  try {
    prepared_arguments({"compare", "a.yaml"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  }
}

TEST(Arguments, SuggestsTheNearestCommand) {
  try {
    prepared_arguments({"simualte"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_EQ(error.problems()[0].help[0], "did you mean simulate?");
  }
}

TEST(Arguments, SuggestsNothingForAWordLikeNoCommand) {
  try {
    prepared_arguments({"xyzzy"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.problems()[0].help,
              (Words{"commands: simulate, check, sweep, diff, run, dump, coll, hardware, "
                     "calibrations, models, import, explain, calibrate, backtest, doctor, help"}));
  }
}

}  // namespace
}  // namespace stepcast::cli
