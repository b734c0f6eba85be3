// The verdict of `check`: broken rules against what is known but not supported yet.
#include "report/check_output.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace stepcast::report {
namespace {

plan::ReadScenario read_with(const std::vector<ErrorKind>& kinds) {
  plan::ReadScenario read;
  read.scenario.name = "by-hand";
  for (const ErrorKind kind : kinds) read.violations.push_back({kind, "a reason", {"", 0, "plan.tp"}, {}});
  return read;
}

TEST(CheckOutput, SaysUnsupportedOnlyWhenNoRuleIsBroken) {
  const plan::ReadScenario unsupported = read_with({ErrorKind::kUnsupported, ErrorKind::kUnsupported});
  EXPECT_TRUE(only_unsupported(unsupported));
  const std::string screen = check_screen(unsupported, false);
  EXPECT_TRUE(screen.starts_with("UNSUPPORTED  by-hand: 2 choices known, not supported yet\n")) << screen;
  const plan::ReadScenario mixed = read_with({ErrorKind::kUnsupported, ErrorKind::kInput});
  EXPECT_FALSE(only_unsupported(mixed));
  EXPECT_TRUE(check_screen(mixed, false).starts_with("INVALID  by-hand: 2 rules broken\n"));
  EXPECT_FALSE(only_unsupported(read_with({})));
}

TEST(CheckOutput, GivesTheKindOfEachProblem) {
  const auto json = nlohmann::json::parse(check_json(read_with({ErrorKind::kUnsupported, ErrorKind::kInput})));
  ASSERT_EQ(json["violations"].size(), 2U);
  EXPECT_EQ(json["violations"][0]["kind"], "unsupported");
  EXPECT_EQ(json["violations"][1]["kind"], "input");
}

}  // namespace
}  // namespace stepcast::report
