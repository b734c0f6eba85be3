// Predictions of published runs beside what was measured: the error of each, and of groups of them.
//
// error = (predicted - measured) / measured. The constant baseline is the best that one efficiency could do for the
// group: steps of ideal / e, where ideal is the model's FLOPs (full attention, no recompute) over the peak of all
// devices and e the constant that makes the mean absolute error least; it has seen the times, so a model that does
// not beat it has explained nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stepcast::report {

struct BacktestRow {
  std::string id;
  std::string model;
  std::string gpu;
  std::int64_t gpus = 0;
  std::string group;
  double measured_s = 0;
  double predicted_s = 0;            // 0: skipped
  double ideal_s = 0;                // at the peak, by the model's FLOPs alone
  std::int64_t measured_bytes = 0;   // of one device, as its source counts; 0: not stated
  std::int64_t predicted_bytes = 0;  // allocated, the largest of all ranks
  std::string skipped = {};          // why; empty: predicted
  std::vector<std::string> assumptions = {};
  std::vector<std::string> warnings = {};

  bool was_predicted() const { return skipped.empty(); }
  double error() const { return predicted_s / measured_s - 1; }  // a fraction
};

// Of the rows that were predicted; errors in %. Zero where there is none.
struct ErrorSummary {
  std::int64_t count = 0;
  std::int64_t skipped = 0;
  double median_abs_pct = 0;
  double mean_abs_pct = 0;
  double p90_abs_pct = 0;  // by nearest rank
  double bias_pct = 0;     // mean of signed errors
  double spearman = 0;     // of predicted and measured times; 0 with fewer than two rows, or where all are alike
  double constant_baseline_mean_abs_pct = 0;
};

struct BacktestReport {
  std::string table;        // the file
  std::string calibration;  // as given; empty: each row's own
  std::vector<BacktestRow> rows;
  ErrorSummary summary = {};
  std::map<std::string, ErrorSummary> by_group = {};
};

ErrorSummary summarise(const std::vector<BacktestRow>& rows);

// Fills summary and by_group.
void finish_backtest(BacktestReport& backtest);

// Spearman's rank correlation; equal values share the mean of their ranks. `a` and `b` are equally long.
double spearman(const std::vector<double>& a, const std::vector<double>& b);

// A screen of 120 columns: groups first, then every row, then why rows were skipped.
std::string backtest_screen(const BacktestReport& backtest);
// One object of schema stepcast/backtest/1.
std::string backtest_json(const BacktestReport& backtest);

}  // namespace stepcast::report
