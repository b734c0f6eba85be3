// stepcast diff: two plans side by side, and what makes the difference.
#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/pipeline.h"
#include "cli/scenario_options.h"
#include "report/diff_report.h"

namespace stepcast::cli {
namespace {

struct DiffOptions {
  std::string a;
  std::string b;
  std::vector<std::string> settings;  // of B
  std::string calibration;            // of both
  bool json = false;
};

constexpr const char* kDiffExamples = R"(Examples
  stepcast diff a.yaml b.yaml
  stepcast diff scenarios/runs/llama-3.1-8b-h100x8.yaml --set plan.tp=4
  stepcast diff scenarios/runs/llama-3.1-8b-h100x8.yaml --set plan.tp=1 --set plan.pp=4 --json

Without B, B is A with the settings; with B they change B only. Every change is B - A.)";

ScenarioOptions side_options(const DiffOptions& options, bool is_b) {
  ScenarioOptions side = file_options(is_b && !options.b.empty() ? options.b : options.a);
  side.calibration = options.calibration;
  if (is_b) side.settings = options.settings;
  return side;
}

report::DiffSide side_of(const ScenarioOptions& options) {
  const config::ScenarioSource source = source_of(options);
  const Prepared prepared = prepare(source);
  const sim::Calibration calibration = find_calibration(prepared.scenario(), source);
  Outcome outcome;
  outcome.prediction = predict(prepared, calibration, {.record_events = false});
  report::DiffSide side;
  side.subject = options.subject;
  for (const std::string& setting : options.settings) side.subject += " --set " + setting;
  side.report = bare_report_of(prepared, calibration, outcome);
  side.parts = report::mean_parts(outcome.prediction);
  side.values = prepared.read.values;
  return side;
}

int diff(const DiffOptions& options) {
  if (options.b.empty() && options.settings.empty()) {
    throw Error(ErrorKind::kUsage, "diff needs two scenarios, or one and what to change", {},
                {"stepcast diff A.yaml B.yaml", "stepcast diff A.yaml --set plan.tp=4"});
  }
  report::DiffSide a = side_of(side_options(options, false));
  const report::DiffReport result = report::make_diff(std::move(a), side_of(side_options(options, true)));
  throw_if_interrupted();
  print(options.json ? report::diff_json(result) : report::diff_screen(result));
  return 0;
}

}  // namespace

Command diff_command(CLI::App& parent) {
  const auto options = std::make_shared<DiffOptions>();
  CLI::App* app = parent.add_subcommand("diff", "two plans side by side, and what explains the difference");
  app->add_option("A", options->a, "scenario file")->required()->type_name("A");
  app->add_option("B", options->b, "another, or A with the settings when left out")->type_name("B");
  app->add_option("--set", options->settings, "override a field of B, such as plan.tp=4; may be repeated")
      ->type_name("K=V")
      ->allow_extra_args(false)
      ->take_all();
  app->add_option("--calibration", options->calibration, "constants to use for both: a name or a file")->type_name("F");
  app->add_flag("--json", options->json, "one JSON object on standard output");
  app->footer(kDiffExamples);
  return {app, [options] { return diff(*options); }};
}

}  // namespace stepcast::cli
