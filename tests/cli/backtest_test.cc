// `stepcast backtest` as a user runs it.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program_run.h"

namespace stepcast::cli {
namespace {

const std::string kTable = "backtest scenarios/measured/published_runs_dense.csv ";

// One row that is predicted, one that the table itself excludes.
TEST(Backtest, AnswersInJson) {
  const ProgramRun run = stepcast(kTable + "--only sc21-001,bloom-059 --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["schema"], "stepcast/backtest/1");
  ASSERT_EQ(json["rows"].size(), 2U);
  const auto& row = json["rows"][0];
  EXPECT_EQ(row["id"], "sc21-001");
  EXPECT_EQ(row["measured_step_time_s"], 3.528);  // the row's derived_step_time_s
  const double error = row["predicted_step_time_s"].get<double>() / 3.528 - 1;
  EXPECT_NEAR(row["error_pct"].get<double>(), 100 * error, 1e-6);
  EXPECT_TRUE(row["skipped"].is_null());
  EXPECT_TRUE(json["rows"][1]["predicted_step_time_s"].is_null());
  EXPECT_TRUE(json["rows"][1]["skipped"].is_string());
  EXPECT_EQ(json["summary"]["count"], 1);
  EXPECT_EQ(json["summary"]["skipped"], 1);
  EXPECT_EQ(json["by_group"].size(), 2U);
}

// A skipped row has no error that could be over a threshold, but nothing predicted is not below one either.
TEST(Backtest, FailsOverAThreshold) {
  EXPECT_EQ(stepcast(kTable + "--only sc21-001 --fail-over 0.001").exit_code, 1);
  EXPECT_EQ(stepcast(kTable + "--only sc21-001 --fail-over 99").exit_code, 0);
  EXPECT_EQ(stepcast(kTable + "--only sc21-001,bloom-059 --fail-over 99").exit_code, 0);
  EXPECT_EQ(stepcast(kTable + "--only bloom-059 --fail-over 99").exit_code, 1);
}

TEST(Backtest, RefusesWhatIsNoTable) {
  EXPECT_EQ(stepcast("backtest no-such.csv").exit_code, 3);
  const std::string file = scratch("bad.csv");
  std::ofstream(file) << "id,gpu\nx,H100,more\n";
  const ProgramRun bad = stepcast("backtest " + file);
  EXPECT_EQ(bad.exit_code, 3);
  EXPECT_NE(bad.err.find("bad.csv:2"), std::string::npos) << bad.err;
  EXPECT_EQ(stepcast(kTable + "--only no-such-row").exit_code, 2);
}

}  // namespace
}  // namespace stepcast::cli
