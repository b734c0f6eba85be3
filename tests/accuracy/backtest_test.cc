// The shipped table of published dense runs through `stepcast backtest`, as a user runs it: how many rows are
// predicted, and that a row skipped says why. Errors are printed for people; no bar of accuracy is set here.
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tests/cli/program_run.h"

namespace stepcast::cli {
namespace {

TEST(Backtest, PredictsPublishedDenseRuns) {
  const ProgramRun run = stepcast("backtest scenarios/measured/published_runs_dense.csv --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  for (const auto& group : json["by_group"]) {
    std::printf("%-27s %4d rows  median %5.1f  p90 %5.1f  bias %+6.1f %%\n", group["group"].get<std::string>().c_str(),
                group["count"].get<int>(), group["median_abs_error_pct"].get<double>(),
                group["p90_abs_error_pct"].get<double>(), group["bias_pct"].get<double>());
  }
  // As many as the table's rows: 567, all of them complete.
  ASSERT_EQ(json["rows"].size(), 567U);
  EXPECT_GE(json["summary"]["count"].get<int>(), 482);  // 85 %
  for (const auto& row : json["rows"]) {
    if (row["skipped"].is_null()) {
      EXPECT_GT(row["predicted_step_time_s"].get<double>(), 0) << row["id"];
      EXPECT_GE(row["assumptions"].size(), 1U) << row["id"];
    } else {
      EXPECT_NE(row["skipped"], "") << row["id"];
    }
  }
}

}  // namespace
}  // namespace stepcast::cli
