// stepcast dump: the Program as text.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/pipeline.h"
#include "cli/scenario_options.h"
#include "program/text.h"
#include "report/json_text.h"

namespace stepcast::cli {
namespace {

struct DumpOptions {
  ScenarioOptions scenario;
  bool json = false;
};

int dump(const DumpOptions& options) {
  const Prepared prepared = prepare(source_of(options.scenario));
  const std::string text = program::to_text(prepared.program->program());
  if (options.json) {
    print(fmt::format("{{\n  \"schema\": \"stepcast/dump/1\",\n  \"fingerprint\": \"{:016x}\",\n  \"text\": {}\n}}\n",
                      prepared.program->fingerprint(), report::json_string(text)));
  } else {
    print(text);
  }
  return 0;
}

}  // namespace

Command dump_command(CLI::App& parent) {
  const auto options = std::make_shared<DumpOptions>();
  CLI::App* app = parent.add_subcommand("dump", "the Program that simulate and run share, as text");
  add_scenario_options(*app, options->scenario);
  app->add_flag("--json", options->json, "one JSON object on standard output: schema, fingerprint, text");
  app->footer(R"(Examples
  stepcast dump scenarios/runs/tiny-llama-tp2-pp2.yaml
  stepcast dump scenarios/runs/tiny-llama-tp2-pp2.yaml --set plan.zero=3)");
  return {app, [options] { return dump(*options); }};
}

}  // namespace stepcast::cli
