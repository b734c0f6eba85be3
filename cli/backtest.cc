// stepcast backtest: predicts the runs of a table that others published, and says how far off it is.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <regex>
#include <set>
#include <utility>

#include "base/parallel.h"
#include "base/progress.h"
#include "calibrate/published_row.h"
#include "calibrate/published_stack.h"
#include "calibrate/row_scenario.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/scenario_options.h"
#include "cli/variants.h"
#include "config/search.h"
#include "config/text.h"
#include "report/backtest_report.h"

namespace stepcast::cli {
namespace {

struct BacktestOptions {
  std::string table;
  std::vector<std::string> only;  // ids
  std::string group;              // a regular expression
  std::string calibration;
  bool json = false;
  std::optional<double> fail_over;  // %
};

constexpr const char* kBacktestExamples = R"(Examples
  stepcast backtest scenarios/measured/published_runs_dense.csv
  stepcast backtest scenarios/measured/published_runs_dense.csv --group 'NVIDIA.*H100' --calibration h100-default
  stepcast backtest runs.csv --only dgxc-001,dgxc-002 --json
  stepcast backtest runs.csv --fail-over 10

Columns are those of that table, in any order; rows of other sources state their `framework`. A row that cannot be
simulated is skipped and says why. Exits 0 whatever the error, unless --fail-over PCT is given: then 1 when the median
absolute error of the predicted rows is above it, or when no row was predicted.)";

using calibrate::MeasuredRun;

// How far a backtest is, told from any thread.
class RowProgress {
 public:
  explicit RowProgress(std::size_t total) : progress_("backtest: rows", static_cast<std::int64_t>(total)) {}
  void add_one() {
    const std::lock_guard lock(mutex_);
    progress_.update(++done_);
  }

 private:
  std::mutex mutex_;
  std::int64_t done_ = 0;
  Progress progress_;
};

std::regex pattern_of(const std::string& text) {
  try {
    return std::regex(text);
  } catch (const std::regex_error&) {
    throw Error(ErrorKind::kUsage, "--group " + config::printable(text) + ": no regular expression", {},
                {"quote it: --group 'NVIDIA.*H100'"});
  }
}

// The runs that --only and --group leave, in the table's order.
std::vector<MeasuredRun> chosen_runs(std::vector<MeasuredRun> runs, const BacktestOptions& options) {
  std::set<std::string> wanted(options.only.begin(), options.only.end());
  std::vector<std::string> ids;
  for (const MeasuredRun& run : runs) ids.push_back(run.row.id);
  for (const std::string& id : wanted) {
    if (std::find(ids.begin(), ids.end(), id) != ids.end()) continue;
    const std::vector<std::string> nearest = config::nearest_names(id, ids, 3);
    throw Error(ErrorKind::kUsage, "--only " + config::printable(id) + ": no row has this id", {},
                nearest.empty() ? std::vector<std::string>{} : std::vector{"did you mean " + config::join(nearest)});
  }
  if (!wanted.empty()) std::erase_if(runs, [&](const MeasuredRun& run) { return !wanted.contains(run.row.id); });
  if (options.group.empty()) return runs;
  const std::regex pattern = pattern_of(options.group);
  std::erase_if(runs,
                [&](const MeasuredRun& run) { return !std::regex_search(calibrate::group_of(run.row), pattern); });
  if (runs.empty()) throw Error(ErrorKind::kUsage, "--group " + config::printable(options.group) + " matches no row");
  return runs;
}

report::BacktestRow row_without_answer(const MeasuredRun& run) {
  report::BacktestRow row;
  row.id = run.row.id;
  row.model = run.row.model;
  row.gpu = run.row.gpu;
  row.gpus = run.row.gpus;
  row.group = calibrate::group_of(run.row);
  row.measured_s = run.measured.step_time_s;
  row.measured_bytes = run.measured.memory_bytes;
  return row;
}

std::string reasons_of(const std::vector<Problem>& problems) {
  std::vector<std::string> messages;
  for (const Problem& problem : problems) messages.push_back(problem.message);
  return config::join(messages, "; ");
}

report::BacktestRow predicted_row(const MeasuredRun& run, const config::ScenarioSource& base,
                                  CalibrationCache& calibrations) {
  report::BacktestRow row = row_without_answer(run);
  calibrate::RowScenario scenario = calibrate::scenario_of(run.row);
  row.assumptions = std::move(scenario.assumptions);
  row.skipped = std::move(scenario.skipped);
  if (!row.skipped.empty()) return row;
  config::ScenarioSource source = base;
  source.settings.insert(source.settings.begin(), scenario.settings.begin(), scenario.settings.end());
  const VariantAnswer answer = answer_variant(source, calibrations);
  if (!answer.report) {
    row.skipped = reasons_of(answer.problems);
    return row;
  }
  row.predicted_s = answer.report->step_time_s;
  row.ideal_s = row.predicted_s * answer.report->mfu.full;
  row.predicted_bytes = answer.report->memory.allocated_bytes;
  row.warnings = answer.report->warnings;
  return row;
}

std::vector<report::BacktestRow> predicted_rows(const std::vector<MeasuredRun>& runs,
                                                const config::ScenarioSource& base) {
  std::vector<report::BacktestRow> rows(runs.size());
  CalibrationCache calibrations;
  RowProgress progress(runs.size());
  start_helpers();
  parallel_for(runs.size(), true, [&](std::size_t i) {
    rows[i] = predicted_row(runs[i], base, calibrations);
    progress.add_one();
  });
  throw_if_interrupted();
  return rows;
}

int backtest(const BacktestOptions& options) {
  const calibrate::Table table = calibrate::parse_table(config::read_file(options.table), options.table);
  const std::vector<MeasuredRun> runs = chosen_runs(calibrate::measured_runs(table), options);
  config::ScenarioSource base;
  base.search = search_path();
  if (!options.calibration.empty()) {
    base.settings.push_back({"calibration", options.calibration, "--calibration " + options.calibration});
  }
  report::BacktestReport result;
  result.table = options.table;
  result.calibration = options.calibration;
  result.rows = predicted_rows(runs, base);
  report::finish_backtest(result);
  print(options.json ? report::backtest_json(result) : report::backtest_screen(result));
  if (!options.fail_over) return 0;
  const bool passes = result.summary.count > 0 && result.summary.median_abs_pct <= *options.fail_over;
  return passes ? 0 : static_cast<int>(ErrorKind::kSubject);
}

}  // namespace

Command backtest_command(CLI::App& parent) {
  const auto options = std::make_shared<BacktestOptions>();
  CLI::App* app = parent.add_subcommand("backtest", "predicts published runs; the error of each and of groups");
  app->alias("validate");
  app->add_option("TABLE", options->table, "a CSV file of published runs")->required()->type_name("TABLE.csv");
  app->add_option("--only", options->only, "only the rows of these ids")->type_name("ID,...")->delimiter(',');
  app->add_option("--group", options->group, "only groups that the regular expression finds")->type_name("REGEX");
  app->add_option("--calibration", options->calibration, "constants to use for all rows: a name or a file")
      ->type_name("F");
  app->add_flag("--json", options->json, "one JSON object on standard output");
  app->add_option("--fail-over", options->fail_over, "exit 1 when the median absolute error in % is above it")
      ->type_name("PCT")
      ->check(CLI::NonNegativeNumber);
  app->footer(kBacktestExamples);
  return {app, [options] { return backtest(*options); }};
}

}  // namespace stepcast::cli
