// stepcast sweep: the cross product of settings over one scenario, simulated side by side.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "base/parallel.h"
#include "base/progress.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/scenario_options.h"
#include "cli/variants.h"
#include "cli/vary.h"
#include "config/text.h"
#include "report/sweep_report.h"

namespace stepcast::cli {
namespace {

using report::SweepAxis;
using report::SweepFormat;
using report::SweepOrder;
using report::SweepReport;

struct SweepOptions {
  ScenarioOptions scenario;
  std::vector<std::string> vary;
  std::string format = "table";
  bool json = false;
  std::string sort;
  std::size_t top = 0;  // 0: all
};

constexpr const char* kSweepExamples = R"(Examples
  stepcast sweep scenarios/runs/llama-3.1-8b-h100x8.yaml --vary plan.tp=1,2,4 --vary plan.pp=1,2,4
  stepcast sweep scenarios/runs/llama-3.1-8b-h100x8.yaml --vary tp=1,2 --vary mbs=1,2,4 --sort tokens --top 5
  stepcast sweep scenarios/runs/llama-3.1-8b-h100x8.yaml --vary 'plan.recompute=none,selective[layernorm,mlp_act],full'
  stepcast sweep llama-3.1-8b --cluster hgx-h100 --gpus 8 --seq 8192 --gbs 128 --vary tp=1,2,4 --format csv

Values are what --set takes, separated by commas; commas within quotes or brackets separate nothing. What its
framework refuses, or this release does not support, is a row that says why. Exits 1 when no variant fits.)";

template <class Choice, std::size_t n>
Choice choice_of(const char* option, const std::string& name,
                 const std::array<std::pair<const char*, Choice>, n>& choices) {
  std::vector<std::string> names;
  for (const auto& [known, choice] : choices) {
    if (name == known) return choice;
    names.emplace_back(known);
  }
  throw Error(ErrorKind::kUsage, std::string(option) + " " + name, {}, {"one of " + config::join(names)});
}

SweepFormat format_of(const SweepOptions& options) {
  if (options.json) return SweepFormat::kJson;
  constexpr std::array<std::pair<const char*, SweepFormat>, 4> kFormats = {{{"table", SweepFormat::kTable},
                                                                            {"md", SweepFormat::kMarkdown},
                                                                            {"csv", SweepFormat::kCsv},
                                                                            {"json", SweepFormat::kJson}}};
  return choice_of("--format", options.format, kFormats);
}

// The first rows of an order that nobody chose would be any rows: --top alone sorts.
SweepOrder order_of(const SweepOptions& options) {
  constexpr std::array<std::pair<const char*, SweepOrder>, 5> kOrders = {{{"given", SweepOrder::kGiven},
                                                                          {"step", SweepOrder::kStep},
                                                                          {"tokens", SweepOrder::kTokens},
                                                                          {"mfu", SweepOrder::kMfu},
                                                                          {"memory", SweepOrder::kMemory}}};
  if (options.sort.empty()) return options.top > 0 ? SweepOrder::kTokens : SweepOrder::kGiven;
  return choice_of("--sort", options.sort, kOrders);
}

std::string refuse_below_one(const std::string& text) {
  const auto rows = config::parse_integer(text);
  return rows && *rows >= 1 ? "" : "a number of rows, at least 1; got " + config::printable(text, 40);
}

// How far a sweep is, told from any thread.
class SharedProgress {
 public:
  explicit SharedProgress(std::size_t total) : progress_("sweep: variants", static_cast<std::int64_t>(total)) {}
  void add_one() {
    const std::lock_guard lock(mutex_);
    progress_.update(++done_);
  }

 private:
  std::mutex mutex_;
  std::int64_t done_ = 0;
  Progress progress_;
};

// What is kept of a variant: its full report would be a hundred times as much.
struct Row {
  report::SweepVariant variant;
  bool was_read = false;
  std::vector<std::string> notes;
};

Row row_of(const config::ScenarioSource& base, const std::vector<SweepAxis>& axes, std::size_t i,
           CalibrationCache& calibrations) {
  config::ScenarioSource source = base;
  for (config::Setting& setting : settings_of(axes, i)) source.settings.push_back(std::move(setting));
  VariantAnswer answer = answer_variant(source, calibrations);
  Row row;
  row.was_read = answer.was_read;
  row.notes = std::move(answer.notes);
  row.variant = answer.report ? report::sweep_variant(values_of(axes, i), *answer.report)
                              : report::refused_variant(values_of(axes, i), std::move(answer.problems));
  return row;
}

std::vector<Row> rows_of(const config::ScenarioSource& base, const std::vector<SweepAxis>& axes) {
  std::vector<Row> rows(variant_count(axes));
  CalibrationCache calibrations;
  SharedProgress progress(rows.size());
  start_helpers();
  parallel_for(rows.size(), true, [&](std::size_t i) {
    rows[i] = row_of(base, axes, i, calibrations);
    progress.add_one();
  });
  throw_if_interrupted();
  return rows;
}

// What no variant can get past is wrong with the scenario or with a field, not with a variant.
void throw_if_none_was_read(const std::vector<Row>& rows) {
  const bool any = std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.was_read; });
  const report::SweepVariant& first = rows.front().variant;
  if (!any && first.status != report::SweepStatus::kUnsupported) throw Error(first.problems);
}

void print_notes(const std::vector<Row>& rows) {
  std::set<std::string> said;
  for (const Row& row : rows) {
    for (const std::string& note : row.notes) {
      if (said.insert(note).second) std::fprintf(stderr, "note: %s\n", note.c_str());
    }
  }
}

int sweep(const SweepOptions& options) {
  const SweepFormat format = format_of(options);
  const SweepOrder order = order_of(options);
  const config::ScenarioSource source = source_of(options.scenario);
  SweepReport result;
  result.subject = options.scenario.subject;
  result.axes = axes_of(options.vary);
  std::vector<Row> rows = rows_of(source, result.axes);
  throw_if_none_was_read(rows);
  print_notes(rows);
  for (Row& row : rows) result.variants.push_back(std::move(row.variant));
  report::finish_sweep(result, order, options.top > 0 ? std::optional(options.top) : std::nullopt);
  print(report::sweep_text(result, format));
  return result.best ? 0 : static_cast<int>(ErrorKind::kSubject);
}

}  // namespace

Command sweep_command(CLI::App& parent) {
  const auto options = std::make_shared<SweepOptions>();
  CLI::App* app = parent.add_subcommand("sweep", "step time and memory of every combination of settings");
  add_scenario_options(*app, options->scenario);
  app->add_option("--vary", options->vary, "a field and its values: plan.tp=1,2,4; repeat for the cross product")
      ->required()
      ->type_name("K=A,B,...")
      ->allow_extra_args(false)
      ->take_all();
  app->add_option("--format", options->format, "table, md, csv or json")->type_name("FORMAT");
  app->add_flag("--json", options->json, "the same as --format json: one JSON object on standard output");
  app->add_option("--sort", options->sort, "given, step, tokens (per GPU), mfu or memory")->type_name("ORDER");
  app->add_option("--top", options->top, "only the first N rows; sorts by tokens unless told otherwise")
      ->type_name("N")
      ->check(refuse_below_one);
  app->footer(kSweepExamples);
  return {app, [options] { return sweep(*options); }};
}

}  // namespace stepcast::cli
