// stepcast simulate: predicts one step.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/pipeline.h"
#include "cli/scenario_options.h"
#include "cli/sensitivity.h"
#include "report/chrome.h"
#include "report/file.h"
#include "report/perfetto.h"
#include "report/simulate_output.h"

namespace stepcast::cli {
namespace {

struct SimulateOptions {
  ScenarioOptions scenario;
  bool json = false;
  bool no_fold = false;
  bool no_contention = false;
  bool sensitivity = false;
  std::string trace;
  std::string chrome;
  std::string symbols;
};

constexpr const char* kSimulateExamples = R"(Examples
  stepcast simulate scenarios/runs/llama-3.1-8b-h100x8.yaml
  stepcast simulate llama-3.1-8b --cluster hgx-h100 --gpus 8 --seq 8192 --gbs 128 --tp 2 --pp 2
  stepcast simulate scenarios/runs/llama-3.1-8b-h100x8.yaml --set plan.recompute=full --json
  stepcast simulate scenarios/runs/llama-3.1-8b-h100x8.yaml --trace step.pftrace    (open in ui.perfetto.dev)

Exits 1 when the plan does not fit in memory, after the full answer.)";

void write_traces(const SimulateOptions& options, const Prepared& prepared, const sim::Prediction& prediction) {
  if (options.trace.empty() && options.chrome.empty()) return;
  const trace::Trace trace = sim::to_trace(prediction, *prepared.program);
  const report::Labeler labels = report::labels_of(prepared.program->program());
  if (!options.trace.empty()) {
    const std::string bytes = report::to_perfetto(trace, labels);
    throw_if_interrupted();
    report::write_file_atomically(options.trace, bytes);
    std::fprintf(stderr, "note: wrote %s; open it at ui.perfetto.dev\n", options.trace.c_str());
  }
  if (!options.chrome.empty()) {
    const std::string text = report::to_chrome_json(trace, labels);
    throw_if_interrupted();
    report::write_file_atomically(options.chrome, text);
    std::fprintf(stderr, "note: wrote %s\n", options.chrome.c_str());
  }
}

int simulate(const SimulateOptions& options) {
  if (!options.symbols.empty()) {
    throw Error(ErrorKind::kUnsupported, "--symbols is known, not supported yet: no plan has data-dependent sizes");
  }
  const config::ScenarioSource source = source_of(options.scenario);
  require_outputs({options.trace, options.chrome}, source);
  const Prepared prepared = prepare(source);
  const sim::Calibration calibration = find_calibration(prepared.scenario(), source);
  const bool wants_events = !options.trace.empty() || !options.chrome.empty();
  const Outcome outcome = predict_with_what_ifs(
      prepared, calibration,
      {.fold = !options.no_fold, .contention = !options.no_contention, .record_events = wants_events});
  report::SimulationReport result = report_of(prepared, source, calibration, outcome);
  if (options.sensitivity) {
    result.sensitivity = sensitivities(prepared, source, calibration, result, !options.no_contention);
  }
  write_traces(options, prepared, outcome.prediction);
  print(options.json ? report::simulate_json(result) : report::simulate_screen(result));
  return result.memory.verdict == report::Verdict::kOom ? static_cast<int>(ErrorKind::kSubject) : 0;
}

}  // namespace

Command simulate_command(CLI::App& parent) {
  const auto options = std::make_shared<SimulateOptions>();
  CLI::App* app = parent.add_subcommand("simulate", "predict step time, throughput, MFU and memory of a plan");
  add_scenario_options(*app, options->scenario);
  app->add_flag("--json", options->json, "one JSON object on standard output");
  app->add_option("--trace", options->trace, "write the step as a Perfetto file")
      ->type_name("F.pftrace")
      ->check(refuse_empty);
  app->add_option("--chrome", options->chrome, "write the step as Chrome trace JSON")
      ->type_name("F.json")
      ->check(refuse_empty);
  app->add_option("--symbols", options->symbols, "replay data-dependent sizes of a trace (not supported yet)")
      ->type_name("TRACE");
  app->add_flag("--no-fold", options->no_fold, "simulate every rank instead of one per class; same result");
  app->add_flag("--no-contention", options->no_contention,
                "every op takes its time alone, however much runs beside it");
  app->add_flag("--sensitivity", options->sensitivity,
                "also simulate faster kernels, links and NICs, and neighbouring plans: what would change it");
  app->footer(kSimulateExamples);
  return {app, [options] { return simulate(*options); }};
}

}  // namespace stepcast::cli
