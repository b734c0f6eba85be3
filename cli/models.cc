// stepcast models: the models known by name, with exact parameter counts.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/scenario_options.h"
#include "report/models_output.h"

namespace stepcast::cli {
namespace {

struct ModelsOptions {
  std::string name;
  bool json = false;
};

constexpr const char* kModelsExamples = R"(Examples
  stepcast models
  stepcast models deepseek-v3
  stepcast models ./my-model/config.json --json

Models are presets and the files of STEPCAST_PATH; scenarios/README.md says how to add one.)";

int models(const ModelsOptions& options) {
  const config::SearchPath search = search_path();
  if (options.name.empty()) {
    const report::ModelList list = report::read_all_models(search);
    print(options.json ? report::models_json(list) : report::models_table(list));
    return 0;
  }
  const report::ModelEntry entry = report::read_model(options.name, search);
  print(options.json ? report::models_json({{entry}, {}}) : report::model_screen(entry));
  return 0;
}

}  // namespace

Command models_command(CLI::App& parent) {
  const auto options = std::make_shared<ModelsOptions>();
  CLI::App* app = parent.add_subcommand("models", "models known by name; shape, parameters and FLOPs of one");
  app->add_option("NAME", options->name, "a model: a name or a file; all of them when left out");
  app->add_flag("--json", options->json, "one JSON object on standard output");
  app->footer(kModelsExamples);
  return {app, [options] { return models(*options); }};
}

}  // namespace stepcast::cli
