// Statistics of errors.
#include "report/backtest_report.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace stepcast::report {
namespace {

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// `sorted` is not empty; of an even number of values the middle of the two in the middle.
double median_of(const std::vector<double>& sorted) {
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

// The smallest value that at least nine of ten do not exceed.
double p90_of(const std::vector<double>& sorted) { return sorted[(9 * sorted.size() + 9) / 10 - 1]; }

// Ranks from 1, equal values sharing the mean of theirs.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i + 1;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    const double shared = (static_cast<double>(i + 1) + static_cast<double>(end)) / 2;
    for (; i < end; ++i) ranks[order[i]] = shared;
  }
  return ranks;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double mean_a = mean_of(a);
  const double mean_b = mean_of(b);
  double product = 0;
  double square_a = 0;
  double square_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += (a[i] - mean_a) * (b[i] - mean_b);
    square_a += (a[i] - mean_a) * (a[i] - mean_a);
    square_b += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return square_a > 0 && square_b > 0 ? product / std::sqrt(square_a * square_b) : 0;
}

// min over x of mean |x r - 1|, r = ideal / measured: a sum of r |x - 1/r|, so x is the median of the 1/r weighted by
// r. In %.
double baseline_of(std::vector<double> ratios) {
  std::sort(ratios.begin(), ratios.end(), std::greater<>());  // by 1/r, ascending
  const double all = std::accumulate(ratios.begin(), ratios.end(), 0.0);
  double so_far = 0;
  double best = ratios.back();
  for (const double ratio : ratios) {
    so_far += ratio;
    if (2 * so_far >= all) {
      best = ratio;
      break;
    }
  }
  double sum = 0;
  for (const double ratio : ratios) sum += std::abs(ratio / best - 1);
  return 100 * sum / static_cast<double>(ratios.size());
}

}  // namespace

double spearman(const std::vector<double>& a, const std::vector<double>& b) {
  CHECK(a.size() == b.size(), a.size(), b.size());
  return a.size() < 2 ? 0 : correlation(ranks_of(a), ranks_of(b));
}

ErrorSummary summarise(const std::vector<BacktestRow>& rows) {
  std::vector<double> signed_errors;
  std::vector<double> predicted;
  std::vector<double> measured;
  std::vector<double> ratios;
  for (const BacktestRow& row : rows) {
    if (!row.was_predicted()) continue;
    signed_errors.push_back(100 * row.error());
    predicted.push_back(row.predicted_s);
    measured.push_back(row.measured_s);
    ratios.push_back(row.ideal_s / row.measured_s);
  }
  ErrorSummary summary;
  summary.count = static_cast<std::int64_t>(predicted.size());
  summary.skipped = static_cast<std::int64_t>(rows.size() - predicted.size());
  if (predicted.empty()) return summary;
  std::vector<double> absolute;
  for (const double error : signed_errors) absolute.push_back(std::abs(error));
  std::sort(absolute.begin(), absolute.end());
  summary.median_abs_pct = median_of(absolute);
  summary.mean_abs_pct = mean_of(absolute);
  summary.p90_abs_pct = p90_of(absolute);
  summary.bias_pct = mean_of(signed_errors);
  summary.spearman = spearman(predicted, measured);
  summary.constant_baseline_mean_abs_pct = baseline_of(std::move(ratios));
  return summary;
}

void finish_backtest(BacktestReport& backtest) {
  backtest.summary = summarise(backtest.rows);
  std::map<std::string, std::vector<BacktestRow>> groups;
  for (const BacktestRow& row : backtest.rows) groups[row.group].push_back(row);
  for (const auto& [group, rows] : groups) backtest.by_group[group] = summarise(rows);
}

}  // namespace stepcast::report
