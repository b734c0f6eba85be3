// A backtest as a screen and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/quantity.h"
#include "report/backtest_report.h"
#include "report/json.h"
#include "report/text.h"

namespace stepcast::report {
namespace {

std::string one_decimal(double value) { return fmt::format("{:.1f}", value); }
std::string with_sign(double value) { return fmt::format("{:+.1f}", value); }

std::vector<std::string> summary_cells(const std::string& name, const ErrorSummary& s) {
  if (s.count == 0) return {name, "0", std::to_string(s.skipped), "-", "-", "-", "-", "-", "-"};
  return {name,
          std::to_string(s.count),
          std::to_string(s.skipped),
          one_decimal(s.median_abs_pct),
          one_decimal(s.mean_abs_pct),
          one_decimal(s.p90_abs_pct),
          with_sign(s.bias_pct),
          fmt::format("{:.3f}", s.spearman),
          one_decimal(s.constant_baseline_mean_abs_pct)};
}

std::string groups_text(const BacktestReport& backtest) {
  std::vector<std::vector<std::string>> cells = {
      {"absolute error, %", "rows", "skipped", "median", "mean", "p90", "bias", "spearman", "best constant"}};
  for (const auto& [group, summary] : backtest.by_group) cells.push_back(summary_cells(group, summary));
  if (backtest.by_group.size() > 1) cells.push_back(summary_cells("all", backtest.summary));
  std::vector<bool> words(cells.front().size(), false);
  words.front() = true;
  return aligned_rows(cells, words);
}

std::string rows_text(const BacktestReport& backtest) {
  std::vector<std::vector<std::string>> cells = {
      {"row", "group", "model", "accelerator", "GPUs", "predicted s", "measured s", "error %"}};
  for (const BacktestRow& row : backtest.rows) {
    if (!row.was_predicted()) continue;
    cells.push_back({row.id, row.group, row.model, row.gpu.substr(0, 15), std::to_string(row.gpus),
                     significant(row.predicted_s, 4), significant(row.measured_s, 4), with_sign(100 * row.error())});
  }
  return cells.size() == 1 ? "" : "\n" + aligned_rows(cells, {true, true, true, true, false, false, false, false});
}

// Each reason once with the rows that have it, the commonest first.
std::string skipped_text(const BacktestReport& backtest) {
  std::map<std::string, std::vector<std::string>> ids;
  for (const BacktestRow& row : backtest.rows) {
    if (!row.was_predicted()) ids[row.skipped].push_back(row.id);
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons(ids.begin(), ids.end());
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  std::string text = reasons.empty() ? "" : "\nskipped\n";
  for (const auto& [reason, rows] : reasons) {
    constexpr std::size_t kListed = 8;
    const std::vector<std::string> first(rows.begin(),
                                         rows.begin() + static_cast<std::ptrdiff_t>(std::min(rows.size(), kListed)));
    const std::string more = rows.size() > kListed ? fmt::format(" and {} more", rows.size() - kListed) : "";
    std::string line = reason;
    std::replace(line.begin(), line.end(), '\n', ' ');
    text += wrapped(fmt::format("{:>5} x", rows.size()), 8, line + ": " + joined(first, ", ") + more);
  }
  return text;
}

Json summary_json(const ErrorSummary& s) {
  const auto figure = [&s](double value) { return s.count > 0 ? Json(value) : Json(); };
  return {{"count", s.count},
          {"skipped", s.skipped},
          {"median_abs_error_pct", figure(s.median_abs_pct)},
          {"mean_abs_error_pct", figure(s.mean_abs_pct)},
          {"p90_abs_error_pct", figure(s.p90_abs_pct)},
          {"bias_pct", figure(s.bias_pct)},
          {"spearman", figure(s.spearman)},
          {"constant_baseline_mean_abs_error_pct", figure(s.constant_baseline_mean_abs_pct)}};
}

Json row_json(const BacktestRow& row) {
  const bool there = row.was_predicted();
  return {{"id", row.id},
          {"model", row.model},
          {"gpu", row.gpu},
          {"gpus", row.gpus},
          {"group", row.group},
          {"predicted_step_time_s", there ? Json(row.predicted_s) : Json()},
          {"measured_step_time_s", row.measured_s > 0 ? Json(row.measured_s) : Json()},
          {"error_pct", there ? Json(100 * row.error()) : Json()},
          {"predicted_memory_bytes", there ? Json(row.predicted_bytes) : Json()},
          {"measured_memory_bytes", row.measured_bytes > 0 ? Json(row.measured_bytes) : Json()},
          {"skipped", there ? Json() : Json(row.skipped)},
          {"assumptions", row.assumptions},
          {"warnings", row.warnings}};
}

}  // namespace

std::string backtest_screen(const BacktestReport& backtest) {
  const ErrorSummary& s = backtest.summary;
  std::string text = fmt::format("{} rows of {}: {} predicted, {} skipped; calibration {}\n",
                                 format_count(static_cast<std::int64_t>(backtest.rows.size())), backtest.table, s.count,
                                 s.skipped, backtest.calibration.empty() ? "by accelerator" : backtest.calibration);
  text += "error = (predicted - measured) / measured\n\n";
  return text + groups_text(backtest) + rows_text(backtest) + skipped_text(backtest) +
         "\nnext: --json lists what was assumed of each row\n";
}

std::string backtest_json(const BacktestReport& backtest) {
  Json rows = Json::array();
  for (const BacktestRow& row : backtest.rows) rows.push_back(row_json(row));
  Json groups = Json::array();
  for (const auto& [group, summary] : backtest.by_group) {
    Json entry = {{"group", group}};
    entry.update(summary_json(summary));
    groups.push_back(std::move(entry));
  }
  return to_text(Json{{"schema", "stepcast/backtest/1"},
                      {"table", backtest.table},
                      {"calibration", backtest.calibration.empty() ? Json("auto") : Json(backtest.calibration)},
                      {"rows", rows},
                      {"summary", summary_json(backtest.summary)},
                      {"by_group", groups}});
}

}  // namespace stepcast::report
