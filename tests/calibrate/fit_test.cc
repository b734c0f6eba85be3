// The fitter against problems whose answers follow by hand, and against constants recovered from synthetic tables.
#include "calibrate/fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace stepcast::calibrate {
namespace {

// ln(predicted / measured) = ln a + x ln b - y: linear in the logarithms.
FitProblem line(const std::vector<double>& x, const std::vector<double>& y) {
  FitProblem problem;
  problem.parameters = {{"a", 1, 1e-3, 1e3, 0}, {"b", 1, 1e-3, 1e3, 0}};
  problem.rows = x.size();
  problem.log_ratios = [x, y](std::span<const double> v, std::span<double> r) {
    for (std::size_t i = 0; i < x.size(); ++i) r[i] = std::log(v[0]) + x[i] * std::log(v[1]) - y[i];
  };
  return problem;
}

TEST(Fit, LinearProblemHasTheNormalEquationsAnswerAndCovariance) {
  // x = -1, 0, 1 and y = 0, 0.03, 0: intercept 0.01, slope 0. Residuals are 0.01, -0.02, 0.01: s^2 = 6e-4 / (3 - 2);
  // J'J = diag(3, 2), so the standard errors are sqrt(6e-4 / 3) and sqrt(6e-4 / 2).
  const FitResult found = fit(line({-1, 0, 1}, {0, 0.03, 0}));
  EXPECT_TRUE(found.converged);
  EXPECT_NEAR(std::log(found.values[0]), 0.01, 1e-7);
  EXPECT_NEAR(std::log(found.values[1]), 0, 1e-7);
  EXPECT_NEAR(found.standard_errors[0], std::sqrt(2e-4), 1e-6);
  EXPECT_NEAR(found.standard_errors[1], std::sqrt(3e-4), 1e-6);
  EXPECT_TRUE(found.warnings.empty());
}

TEST(Fit, OutlierPullsNoHarderThanTheBend) {
  // One parameter, residual ln a - y. Nine rows at 0 and one at 5, bend 0.1: at the minimum 9 ln a = 0.1, where least
  // squares would have 5 / 10.
  FitProblem problem;
  problem.parameters = {{"a", 1, 1e-3, 1e3, 0}};
  problem.rows = 10;
  problem.log_ratios = [](std::span<const double> v, std::span<double> r) {
    for (std::size_t i = 0; i < r.size(); ++i) r[i] = std::log(v[0]) - (i == 4 ? 5 : 0);
  };
  EXPECT_NEAR(std::log(fit(problem).values[0]), 0.1 / 9, 1e-6);
}

TEST(Fit, PriorCountsAsRowsOfItsPrecision) {
  // Four rows at 0.08 with noise 0.05; a prior of deviation 0.025 around 1 weighs as (0.05 / 0.025)^2 = 4 rows at 0.
  FitProblem problem;
  problem.parameters = {{"a", 1, 1e-3, 1e3, 0.025}};
  problem.rows = 4;
  problem.noise = 0.05;
  problem.log_ratios = [](std::span<const double> v, std::span<double> r) {
    for (double& ratio : r) ratio = std::log(v[0]) - 0.08;
  };
  EXPECT_NEAR(std::log(fit(problem).values[0]), 0.04, 1e-6);
}

// Times of shapes of 1 to 2^15 under a rate, a latency and a half size: the usual kind of curve.
double curve(double size, double rate, double latency, double half) { return latency + (size + half) / rate; }

TEST(Fit, RecoversConstantsThroughNoiseAndOutliers) {
  // +-2 % that alternate in the bits of the row's number, and every tenth row 1.6 times too long.
  constexpr std::size_t kRows = 160;
  std::vector<double> size, measured;
  for (std::size_t i = 0; i < kRows; ++i) {
    size.push_back(std::exp2(static_cast<double>(i) / 10));
    const double noise = ((i ^ (i >> 1) ^ (i >> 3)) & 1) != 0 ? 1.02 : 0.98;
    measured.push_back(curve(size[i], 40, 6, 0) * noise * (i % 10 == 3 ? 1.6 : 1));
  }
  FitProblem problem;
  problem.parameters = {{"rate", 10, 0.1, 1e4, 0}, {"latency", 1, 0.01, 1e3, 0}};
  problem.rows = kRows;
  problem.log_ratios = [&](std::span<const double> v, std::span<double> r) {
    for (std::size_t i = 0; i < kRows; ++i) r[i] = std::log(curve(size[i], v[0], v[1], 0) / measured[i]);
  };
  const FitResult found = fit(problem);
  // A tenth of the rows pull by the bend, 0.1, against nine tenths: 0.1 / 9 = 1.1 %.
  EXPECT_NEAR(found.values[0], 40, 40 * 0.02);
  EXPECT_NEAR(found.values[1], 6, 6 * 0.02);
  EXPECT_LT(found.standard_errors[0], 0.02);
  EXPECT_NEAR(found.after.median, 0.02, 0.015);
  EXPECT_GT(found.before.median, 0.3);
}

TEST(Fit, SaysWhatRowsDoNotTell) {
  // Only the product of a and b is seen, and c not at all.
  FitProblem problem;
  problem.parameters = {{"a", 1, 1e-3, 1e3, 0.5}, {"b", 1, 1e-3, 1e3, 0.5}, {"c", 1, 1e-3, 1e3, 0}};
  problem.rows = 20;
  problem.log_ratios = [](std::span<const double> v, std::span<double> r) {
    for (std::size_t i = 0; i < r.size(); ++i) r[i] = std::log(v[0] * v[1]) - (i % 2 == 0 ? 0.19 : 0.21);
  };
  const FitResult found = fit(problem);
  EXPECT_EQ(found.standard_errors[2], std::numeric_limits<double>::infinity());
  ASSERT_EQ(found.warnings.size(), 2U);
  EXPECT_EQ(found.warnings[0], "c: no row depends on it");
  EXPECT_EQ(found.warnings[1], "a and b are told apart poorly: correlation -1.00");
}

TEST(Fit, StopsAtBoundsAndSaysSo) {
  FitProblem problem = line({-1, 0, 1, 2}, {1, 1, 1, 1});
  problem.parameters[0].max = 2;  // e is out of reach
  const FitResult found = fit(problem);
  EXPECT_DOUBLE_EQ(found.values[0], 2);
  ASSERT_FALSE(found.warnings.empty());
  EXPECT_EQ(found.warnings[0], "a is at the end of its range");
}

TEST(Fit, RefusesTooFewRowsAndStartsOutOfRange) {
  EXPECT_THROW(fit(line({1}, {1})), Error);
  FitProblem problem = line({-1, 0, 1}, {0, 0, 0});
  problem.parameters[0].start = 1e4;
  EXPECT_THROW(fit(problem), Error);
}

TEST(Fit, QuantilesLieBetweenRows) {
  // Errors 1, 2, 3, 4 %: the median is 2.5 %, the 90th percentile at place 2.7 of 0 to 3 is 3.7 %.
  const ErrorQuantiles q =
      error_quantiles(std::vector<double>{std::log(1.02), std::log(0.96), std::log(1.01), std::log(0.97)});
  EXPECT_NEAR(q.median, 0.025, 1e-12);
  EXPECT_NEAR(q.p90, 0.037, 1e-12);
}

}  // namespace
}  // namespace stepcast::calibrate
