// The options that say which scenario: a file, or a model with flags, and --set on top.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/source.h"

namespace CLI {
class App;
}

namespace stepcast::cli {

struct ScenarioOptions {
  std::string subject;                   // a scenario file; with --cluster a model
  std::vector<std::string> flag_values;  // parallel to the table of flags; empty where not given
  std::vector<std::string> settings;     // --set K=V
  std::string calibration;
};

// Of a command that takes scenario files only.
ScenarioOptions file_options(std::string file);

// Adds them to a command. `options` must outlive the parse.
void add_scenario_options(CLI::App& command, ScenarioOptions& options);

// The folders of STEPCAST_PATH (colon-separated), searched for presets before the built-in ones. The one place that
// reads the environment.
config::SearchPath search_path();

// The field that a short name stands for: "plan.tp" for "tp", as of the flag --tp; any other text is itself.
std::string field_of(std::string_view name);

// The source they describe: the file, then flags, then --set, in this order. With --cluster a subject that is neither
// YAML nor a scenario in JSON is a model. Throws Error (kUsage) without a subject, and for a model without --cluster
// and for two names of one field with two values (--vp and --vpp).
config::ScenarioSource source_of(const ScenarioOptions& options);

}  // namespace stepcast::cli
