// stepcast check: judges a scenario without simulating it.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/pipeline.h"
#include "cli/scenario_options.h"
#include "plan/scenario_reader.h"
#include "report/check_output.h"

namespace stepcast::cli {
namespace {

struct CheckOptions {
  ScenarioOptions scenario;
  bool show_config = false;
  bool json = false;
};

constexpr const char* kCheckExamples = R"(Examples
  stepcast check scenarios/runs/llama-3.1-8b-h100x8.yaml
  stepcast check scenarios/runs/llama-3.1-8b-h100x8.yaml --show-config
  stepcast check scenarios/runs/llama-3.1-8b-h100x8.yaml --set plan.pp=5

Exits 1 when a rule of the framework is broken, 4 when all that is wrong is known but not supported yet, 3 when the
scenario cannot be read.)";

int check(const CheckOptions& options) {
  const plan::ReadScenario read = read_and_judge(source_of(options.scenario));
  print(options.json ? report::check_json(read) : report::check_screen(read, options.show_config));
  if (read.violations.empty()) return 0;
  return static_cast<int>(report::only_unsupported(read) ? ErrorKind::kUnsupported : ErrorKind::kSubject);
}

}  // namespace

Command check_command(CLI::App& parent) {
  const auto options = std::make_shared<CheckOptions>();
  CLI::App* app = parent.add_subcommand("check", "every broken rule of a plan and what would fix it");
  add_scenario_options(*app, options->scenario);
  app->add_flag("--show-config", options->show_config, "every value with its origin");
  app->add_flag("--json", options->json, "one JSON object on standard output");
  app->footer(kCheckExamples);
  return {app, [options] { return check(*options); }};
}

}  // namespace stepcast::cli
