// Statistics of a backtest against sums by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "report/backtest_report.h"

namespace stepcast::report {
namespace {

BacktestRow row(const char* group, double predicted, double measured, double ideal) {
  BacktestRow r;
  r.group = group;
  r.predicted_s = predicted;
  r.measured_s = measured;
  r.ideal_s = ideal;
  return r;
}

// Errors +10, -10 and 0 %: absolute ones in order 0, 10, 10. The smallest value that 9 of 10 do not exceed is the
// third.
TEST(Backtest, SummarisesErrors) {
  BacktestRow skipped = row("a", 0, 4, 1);
  skipped.skipped = "a reason";
  const ErrorSummary s = summarise({row("a", 1.1, 1, 0.5), skipped, row("a", 1.8, 2, 1), row("a", 3, 3, 1.5)});
  EXPECT_EQ(s.count, 3);
  EXPECT_EQ(s.skipped, 1);
  EXPECT_NEAR(s.median_abs_pct, 10, 1e-9);
  EXPECT_NEAR(s.mean_abs_pct, 20.0 / 3, 1e-9);
  EXPECT_NEAR(s.p90_abs_pct, 10, 1e-9);
  EXPECT_NEAR(s.bias_pct, 0, 1e-9);
  EXPECT_NEAR(s.spearman, 1, 1e-12);
  // All runs reach half of the peak, so one constant efficiency predicts each of them.
  EXPECT_NEAR(s.constant_baseline_mean_abs_pct, 0, 1e-9);
}

TEST(Backtest, KeepsGroupsApart) {
  BacktestReport report;
  report.rows = {row("a", 1.1, 1, 1), row("b", 1, 2, 1)};
  finish_backtest(report);
  EXPECT_EQ(report.summary.count, 2);
  EXPECT_NEAR(report.by_group.at("a").bias_pct, 10, 1e-9);
  EXPECT_NEAR(report.by_group.at("b").bias_pct, -50, 1e-9);
}

// Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: deviations from the means (-1.5, 0, 0, 1.5) and (-1.5, -0.5, 0.5, 1.5), so
// 4.5 / sqrt(4.5 * 5).
TEST(Backtest, RanksEqualValuesAlike) {
  EXPECT_NEAR(spearman({1, 2, 2, 4}, {10, 20, 30, 40}), 4.5 / std::sqrt(22.5), 1e-12);
  EXPECT_NEAR(spearman({1, 2, 3}, {3, 2, 1}), -1, 1e-12);
  EXPECT_EQ(spearman({1, 1, 1}, {1, 2, 3}), 0);
}

}  // namespace
}  // namespace stepcast::report
