// stepcast import: a scenario from the configuration of another framework. Reads, never executes.
#include "import/imported.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/scenario_options.h"
#include "config/source.h"
#include "config/text.h"
#include "plan/scenario_reader.h"
#include "report/file.h"
#include "report/json.h"

namespace stepcast::cli {
namespace {

using report::Json;

struct ImportOptions {
  std::string format;
  std::string file;
  std::string model;
  std::string cluster;
  std::int64_t gpus = 0;
  std::vector<std::string> defines;
  std::vector<std::string> settings;
  std::string out;
  bool allow_unknown = false;
  bool json = false;
};

constexpr const char* kImportExamples = R"(Examples
  stepcast import megatron pretrain.sh --cluster hgx-h100-ndr400-rail --out run.yaml
  stepcast import megatron pretrain.sh --define NNODES=16 --set model.vocab_size=128256
  stepcast import torchtitan llama3_8b.toml --gpus 128
  stepcast import nanotron config.yaml --json
  stepcast import deepspeed ds_config.json --model llama-3.1-8b --gpus 16 --set training.sequence_length=4096

Scripts are read, never executed. What a script takes from its environment is asked for by name. What was ignored,
assumed or contradictory is said on standard error and at the head of the file, and what check will refuse.)";

imports::ImportRequest request_of(const ImportOptions& options) {
  imports::ImportRequest request;
  request.format = options.format;
  request.file = options.file;
  request.model = options.model;
  request.cluster = options.cluster;
  request.allow_unknown = options.allow_unknown;
  if (options.gpus > 0) request.gpus = options.gpus;
  request.search = search_path();
  for (const std::string& define : options.defines) {
    const std::size_t equals = define.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw Error(ErrorKind::kUsage, "--define " + config::printable(define) + " is not VAR=value");
    }
    request.defines[define.substr(0, equals)] = define.substr(equals + 1);
  }
  for (const std::string& setting : options.settings) request.settings.push_back(config::parse_setting(setting));
  return request;
}

Json ignored_json(const imports::Imported& imported) {
  Json list = Json::array();
  for (const imports::Ignored& ignored : imported.ignored) {
    list.push_back({{"name", ignored.name},
                    {"reason", imports::to_string(ignored.reason)},
                    {"detail", ignored.detail},
                    {"at", config::origin_text(ignored.where)}});
  }
  return list;
}

// What `check` would find wrong, each at the place in the source that says it. Throws Error (kInput) for what cannot be
// read as a scenario at all.
std::vector<Problem> problems_of(const imports::Imported& imported) {
  config::ScenarioSource source;
  source.search = search_path();
  for (const imports::ImportedValue& value : imported.values) {
    source.settings.push_back({value.field, value.text, value.origin});
  }
  try {
    return plan::read_scenario(source).violations;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUnsupported) throw;
    return error.problems();
  }
}

std::string json_of(const imports::Imported& imported, const std::vector<Problem>& problems) {
  Json values = Json::array();
  for (const imports::ImportedValue& value : imported.values) {
    values.push_back({{"field", value.field}, {"value", value.text}, {"origin", value.origin}});
  }
  const Json json = {{"schema", "stepcast/import/1"},
                     {"format", imported.format},
                     {"file", imported.file},
                     {"values", std::move(values)},
                     {"ignored", ignored_json(imported)},
                     {"warnings", imported.warnings},
                     {"assumed", imported.assumed},
                     {"converted", imported.converted},
                     {"contradictions", imported.contradictions},
                     {"problems", report::problems_json(problems)},
                     {"scenario", imports::scenario_yaml(imported)}};
  return report::to_text(json);
}

// One word alone: the name of a format lacks its file, anything else is a file that lacks its format.
void require_format_and_file(const ImportOptions& options) {
  if (!options.file.empty()) return;
  const std::vector<std::string> formats = imports::import_formats();
  const std::string word = config::printable(options.format);
  if (std::find(formats.begin(), formats.end(), options.format) != formats.end()) {
    throw Error(ErrorKind::kUsage, "FILE is missing", {}, {"stepcast import " + word + " FILE"});
  }
  const auto ends = [&](std::string_view ending) { return options.format.ends_with(ending); };
  const std::string likely = ends(".toml") ? "torchtitan" : ends(".json") ? "deepspeed" : "megatron";
  throw Error(ErrorKind::kUsage, "FORMAT is missing in front of " + word, {},
              {"for example: stepcast import " + likely + " " + word, "formats: " + config::join(formats)});
}

int import(const ImportOptions& options) {
  require_format_and_file(options);
  const imports::Imported imported = imports::import_file(request_of(options));
  const std::vector<Problem> problems = problems_of(imported);
  if (!options.out.empty()) report::write_file_atomically(options.out, imports::scenario_yaml(imported));
  if (options.json) {
    print(json_of(imported, problems));
    return 0;
  }
  if (options.out.empty()) print(imports::scenario_yaml(imported));
  std::fputs(imports::import_report(imported).c_str(), stderr);
  if (!problems.empty()) {
    const std::string text = to_text(problems);
    std::fprintf(stderr, "\ncheck refuses the scenario as it is:\n%s\n", text.c_str());
  }
  return 0;
}

}  // namespace

Command import_command(CLI::App& parent) {
  const auto options = std::make_shared<ImportOptions>();
  CLI::App* app = parent.add_subcommand("import", "a scenario from another framework's configuration");
  app->add_option("FORMAT", options->format, config::join(imports::import_formats()))->required();
  app->add_option("FILE", options->file, "launch script, YAML, TOML or JSON; read, never executed")
      ->check(refuse_empty);
  app->add_option("--define", options->defines, "value of a shell variable; may be repeated")
      ->type_name("VAR=V")
      ->allow_extra_args(false)
      ->take_all();
  app->add_flag("--allow-unknown", options->allow_unknown, "leave out flags that Megatron-LM is not known to have");
  app->add_option("--model", options->model, "model name or file, where the source names none, or another");
  app->add_option("--cluster", options->cluster, "cluster or node preset, or a file");
  app->add_option("--gpus", options->gpus, "devices of the run, where the source does not say")
      ->check(CLI::Range(1, 1 << 24));
  app->add_option("--set", options->settings, "any field of the scenario, over what is imported; may be repeated")
      ->type_name("K=V")
      ->allow_extra_args(false)
      ->take_all();
  app->add_option("--out", options->out, "write the scenario to a file instead of standard output")
      ->type_name("F")
      ->check(refuse_empty);
  app->add_flag("--json", options->json, "one JSON object on standard output");
  app->footer(kImportExamples);
  return {app, [options] { return import(*options); }};
}

}  // namespace stepcast::cli
