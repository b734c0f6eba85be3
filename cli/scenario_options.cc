// A table of flags, each a short form of one field.
#include "cli/scenario_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "config/document.h"
#include "config/search.h"
#include "plan/scenario_aliases.h"

namespace stepcast::cli {
namespace {

struct Flag {
  const char* name;
  const char* field;
  const char* help;
};

constexpr std::array<Flag, 20> kFlags = {{
    {"--cluster", "cluster", "cluster or node preset, or a file; the positional argument is then a model"},
    {"--gpus", "gpus", "devices used"},
    {"--framework", "framework",
     "megatron-core, torchtitan, nanotron, deepspeed or plain: defaults and validity rules"},
    {"--seq", "training.sequence_length", "tokens per sequence"},
    {"--gbs", "training.global_batch_size", "sequences per step"},
    {"--precision", "training.precision.compute", "bf16, fp32, fp16, fp8, mxfp8 or nvfp4"},
    {"--tp", "plan.tp", "tensor parallel degree"},
    {"--cp", "plan.cp", "context parallel degree"},
    {"--pp", "plan.pp", "pipeline parallel degree"},
    {"--vp", "plan.vp", "virtual stages per pipeline rank"},
    {"--vpp", "plan.vp", "the same"},
    {"--dp", "plan.dp", "data parallel degree (derived when not given)"},
    {"--ep", "plan.ep", "expert parallel degree"},
    {"--etp", "plan.etp", "tensor parallel degree of experts"},
    {"--mbs", "plan.micro_batch_size", "sequences per microbatch"},
    {"--zero", "plan.zero", "0 to 3"},
    {"--schedule", "plan.schedule", "gpipe, 1f1b or interleaved_1f1b"},
    {"--recompute", "plan.recompute", "none, full or selective"},
    {"--layout", "plan.layout", "items of each virtual stage"},
    {"--sp", "plan.sequence_parallel", "sequence parallelism: true or false"},
}};

constexpr const char* kScenarioExample = "stepcast simulate scenarios/runs/llama-3.1-8b-h100x8.yaml";
constexpr const char* kModelFlags = " --cluster hgx-h100 --gpus 8 --seq 8192 --gbs 128 --tp 2";

bool is_yaml(const std::string& subject) { return subject.ends_with(".yaml") || subject.ends_with(".yml"); }

// A Hugging Face config states its model_type, Meta's params.json dim and n_layers; no scenario has these at its top.
// What cannot be read is left to the scenario reader, which says why.
bool is_model_file(const std::string& path) {
  try {
    const config::Node root = config::parse_document(config::read_file(path), path);
    const bool meta = root.find("dim") != nullptr && root.find("n_layers") != nullptr;
    return root.find("model_type") != nullptr || meta;
  } catch (const Error&) {
    return false;
  }
}

// A JSON file by what it holds, a folder by its config.json, another name by the presets.
bool is_model(const std::string& subject, const config::SearchPath& search) {
  std::error_code fault;
  if (is_yaml(subject)) return false;
  if (subject.ends_with(".json")) return is_model_file(subject);
  if (std::filesystem::is_directory(subject, fault)) {
    return std::filesystem::exists(std::filesystem::path(subject) / "config.json", fault);
  }
  if (std::filesystem::exists(subject, fault)) return false;
  const std::vector<std::string> names = config::preset_names(config::PresetKind::kModel, search);
  return std::find(names.begin(), names.end(), subject) != names.end();
}

// The subject as the scenario's file or as its model.
void take_subject(const ScenarioOptions& options, config::ScenarioSource& source) {
  const std::string& subject = options.subject;
  const bool has_cluster = !options.flag_values.at(0).empty();
  if (subject.empty() && has_cluster) return;
  if (subject.empty()) {
    throw Error(ErrorKind::kUsage, "which scenario? A file, or a model with --cluster, --gpus, --seq and --gbs", {},
                {kScenarioExample, std::string("stepcast simulate llama-3.1-8b") + kModelFlags});
  }
  if (!has_cluster && is_model(subject, source.search)) {
    throw Error(ErrorKind::kUsage, subject + " is a model; a model needs --cluster, --gpus, --seq and --gbs", {},
                {"for example: stepcast simulate " + subject + kModelFlags});
  }
  // With --cluster a scenario file keeps its model, only its cluster is replaced; a name that is no file is a model's,
  // known or not.
  const bool is_scenario = is_yaml(subject) || (subject.ends_with(".json") && !is_model_file(subject));
  if (!has_cluster || is_scenario) {
    source.file = subject;
  } else {
    source.settings.push_back({"model", subject, subject});
  }
}

// As of an unset shell variable: it would answer another question.
std::string refuse_empty_value(const std::string& value) { return value.empty() ? "needs a value" : ""; }

// Two names of one field with two values: whichever wins, the other was meant too. The same name given twice is left to
// the order, so that a script can append settings.
void require_one_value(const std::vector<config::Setting>& settings) {
  const auto name_of = [](const config::Setting& s) { return s.origin.substr(0, s.origin.find('=')); };
  ProblemList problems;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const std::string field = plan::canonical_field(settings[i].field);
    for (std::size_t j = i + 1; j < settings.size(); ++j) {
      const config::Setting& a = settings[i];
      const config::Setting& b = settings[j];
      if (a.value == b.value || name_of(a) == name_of(b) || field != plan::canonical_field(b.field)) continue;
      problems.add(ErrorKind::kUsage, a.origin + " and " + b.origin + " both give " + field, {}, {"keep one of them"});
    }
  }
  problems.throw_if_any();
}

}  // namespace

void add_scenario_options(CLI::App& command, ScenarioOptions& options) {
  command.add_option("scenario", options.subject, "scenario file (YAML or JSON), or a model together with --cluster")
      ->type_name("SCENARIO|MODEL");
  options.flag_values.resize(kFlags.size());
  for (std::size_t i = 0; i < kFlags.size(); ++i) {
    command.add_option(kFlags[i].name, options.flag_values[i], kFlags[i].help)
        ->group("Scenario")
        ->type_name("V")
        ->check(refuse_empty_value);
  }
  command.add_option("--set", options.settings, "override any field, such as plan.tp=4; may be repeated")
      ->group("Scenario")
      ->type_name("K=V")
      ->allow_extra_args(false)  // one value each, else it would take the scenario that follows
      ->take_all();
  command.add_option("--calibration", options.calibration, "constants to use: a name or a file")
      ->group("Scenario")
      ->type_name("F")
      ->check(refuse_empty_value);
}

ScenarioOptions file_options(std::string file) {
  ScenarioOptions options;
  options.subject = std::move(file);
  options.flag_values.resize(kFlags.size());
  return options;
}

std::string field_of(std::string_view name) {
  const auto flag = std::find_if(kFlags.begin(), kFlags.end(),
                                 [name](const Flag& f) { return std::string_view(f.name).substr(2) == name; });
  return std::string(flag == kFlags.end() ? name : std::string_view(flag->field));
}

config::SearchPath search_path() {
  const char* const path = std::getenv("STEPCAST_PATH");
  return config::split_search_path(path == nullptr ? "" : path);
}

config::ScenarioSource source_of(const ScenarioOptions& options) {
  config::ScenarioSource source;
  source.search = search_path();
  take_subject(options, source);
  std::vector<config::Setting> flags;
  for (std::size_t i = 0; i < kFlags.size(); ++i) {
    const std::string& value = options.flag_values[i];
    if (!value.empty()) flags.push_back({kFlags[i].field, value, std::string(kFlags[i].name) + " " + value});
  }
  require_one_value(flags);
  source.settings.insert(source.settings.end(), flags.begin(), flags.end());
  std::vector<config::Setting> settings;
  for (const std::string& setting : options.settings) settings.push_back(config::parse_setting(setting));
  require_one_value(settings);
  source.settings.insert(source.settings.end(), settings.begin(), settings.end());
  if (!options.calibration.empty()) {
    source.settings.push_back({"calibration", options.calibration, "--calibration " + options.calibration});
  }
  return source;
}

}  // namespace stepcast::cli
