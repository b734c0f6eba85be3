// Statistics of errors, by hand.
#include "report/backtest_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace stepcast::report {
namespace {

BacktestRow row(const std::string& id, const std::string& group, double predicted, double measured, double ideal) {
  BacktestRow r;
  r.id = id;
  r.group = group;
  r.predicted_s = predicted;
  r.measured_s = measured;
  r.ideal_s = ideal;
  return r;
}

BacktestRow skipped(const std::string& id, const std::string& group) {
  BacktestRow r = row(id, group, 0, 5, 0);
  r.skipped = "no such device";
  return r;
}

// Errors -10, +20, -30, +40 %: absolute values 10, 20, 30, 40. Median 25, mean 25, bias 5. Nine of ten of four rows are
// all four: p90 40.
TEST(BacktestReport, SummarisesErrors) {
  const ErrorSummary s = summarise({row("a", "g", 0.9, 1, 0.5), row("b", "g", 2.4, 2, 1), row("c", "g", 2.1, 3, 1.5),
                                    row("d", "g", 5.6, 4, 2), skipped("e", "g")});
  EXPECT_EQ(s.count, 4);
  EXPECT_EQ(s.skipped, 1);
  EXPECT_NEAR(s.median_abs_pct, 25, 1e-9);
  EXPECT_NEAR(s.mean_abs_pct, 25, 1e-9);
  EXPECT_NEAR(s.p90_abs_pct, 40, 1e-9);
  EXPECT_NEAR(s.bias_pct, 5, 1e-9);
  // Ranks 1, 3, 2, 4 of the predictions and 1, 2, 3, 4 of the measured: 1 - 6 * 2 / (4 * 15).
  EXPECT_NEAR(s.spearman, 0.8, 1e-12);
  // Every row took twice the ideal: one efficiency explains all.
  EXPECT_NEAR(s.constant_baseline_mean_abs_pct, 0, 1e-9);
}

// Ten rows with errors of 1 to 10 %: nine of them are at most 9 %.
TEST(BacktestReport, TakesThe90thPercentileByNearestRank) {
  std::vector<BacktestRow> rows;
  for (int i = 1; i <= 10; ++i) rows.push_back(row(std::to_string(i), "g", 1 + i / 100.0, 1, 0.5));
  EXPECT_NEAR(summarise(rows).p90_abs_pct, 9, 1e-9);
  rows.push_back(row("11", "g", 1.11, 1, 0.5));  // nine tenths of 11 rows are 10
  EXPECT_NEAR(summarise(rows).p90_abs_pct, 10, 1e-9);
}

// Efficiencies 0.2, 0.5 and 0.5: with 0.5 the first step is predicted as 0.2 / 0.5 = 0.4 of what it took, an error of
// 60 %, the others exactly: a mean of 20 %. With 0.2 the others are 2.5 times too slow: a mean of 100 %.
TEST(BacktestReport, ComparesWithTheBestConstantEfficiency) {
  const ErrorSummary s = summarise({row("a", "g", 1, 1, 0.2), row("b", "g", 1, 1, 0.5), row("c", "g", 1, 1, 0.5)});
  EXPECT_NEAR(s.constant_baseline_mean_abs_pct, 20, 1e-9);
}

TEST(BacktestReport, RanksWithTies) {
  EXPECT_NEAR(spearman({1, 2, 3}, {10, 20, 30}), 1, 1e-12);
  EXPECT_NEAR(spearman({1, 2, 3}, {30, 20, 10}), -1, 1e-12);
  // Ranks 1, 2.5, 2.5, 4 and 1, 2, 3, 4: covariance 4.5, variances 4.5 and 5.
  EXPECT_NEAR(spearman({1, 2, 2, 3}, {1, 2, 3, 4}), 4.5 / std::sqrt(4.5 * 5), 1e-12);
  EXPECT_EQ(spearman({1, 1}, {1, 2}), 0);
  EXPECT_EQ(spearman({1}, {2}), 0);
}

BacktestReport two_groups() {
  BacktestReport report;
  report.table = "runs.csv";
  report.rows = {row("a", "one", 1.1, 1, 0.5), row("b", "two", 0.8, 1, 0.5), skipped("c", "two"),
                 skipped("d", "three")};
  report.rows[0].assumptions = {"no dropout"};
  finish_backtest(report);
  return report;
}

TEST(BacktestReport, SummarisesGroups) {
  const BacktestReport report = two_groups();
  EXPECT_EQ(report.summary.count, 2);
  EXPECT_EQ(report.summary.skipped, 2);
  EXPECT_NEAR(report.by_group.at("one").bias_pct, 10, 1e-9);
  EXPECT_NEAR(report.by_group.at("two").bias_pct, -20, 1e-9);
  EXPECT_EQ(report.by_group.at("two").skipped, 1);
  EXPECT_EQ(report.by_group.at("three").count, 0);
}

TEST(BacktestReport, WritesTheContractsJson) {
  const auto json = nlohmann::json::parse(backtest_json(two_groups()));
  EXPECT_EQ(json["schema"], "stepcast/backtest/1");
  ASSERT_EQ(json["rows"].size(), 4U);
  EXPECT_NEAR(json["rows"][0]["error_pct"].get<double>(), 10, 1e-9);
  EXPECT_EQ(json["rows"][0]["predicted_step_time_s"], 1.1);
  EXPECT_EQ(json["rows"][0]["measured_step_time_s"], 1.0);
  EXPECT_EQ(json["rows"][0]["assumptions"][0], "no dropout");
  EXPECT_TRUE(json["rows"][0]["skipped"].is_null());
  EXPECT_TRUE(json["rows"][0]["measured_memory_bytes"].is_null());
  EXPECT_EQ(json["rows"][2]["skipped"], "no such device");
  EXPECT_TRUE(json["rows"][2]["error_pct"].is_null());
  EXPECT_EQ(json["summary"]["count"], 2);
  for (const char* key : {"median_abs_error_pct", "mean_abs_error_pct", "p90_abs_error_pct", "bias_pct", "spearman",
                          "constant_baseline_mean_abs_error_pct"}) {
    EXPECT_TRUE(json["summary"][key].is_number()) << key;
  }
  ASSERT_EQ(json["by_group"].size(), 3U);
  EXPECT_EQ(json["by_group"][0]["group"], "one");
  EXPECT_EQ(json["by_group"][1]["group"], "three");
  EXPECT_TRUE(json["by_group"][1]["bias_pct"].is_null());
}

TEST(BacktestReport, ShowsGroupsRowsAndReasons) {
  const std::string screen = backtest_screen(two_groups());
  for (const char* text :
       {"4 rows of runs.csv: 2 predicted, 2 skipped", "one ", "+10.0", "-20.0", "    2 x no such device: c, d"}) {
    EXPECT_NE(screen.find(text), std::string::npos) << text << "\n" << screen;
  }
}

}  // namespace
}  // namespace stepcast::report
