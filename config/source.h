// Where a scenario comes from: a file with what it extends, and settings from the command line on top.
#pragma once

#include <google/protobuf/descriptor.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/document.h"
#include "config/search.h"

namespace stepcast::config {

// One value from the command line. `value` is YAML: 4, "80 GiB", [1, 2], {node: 187}.
struct Setting {
  std::string field;  // plan.tp
  std::string value;
  std::string origin;  // as the user typed it: "--tp 4", "--set plan.tp=4"
};

// "plan.tp=4" as --set gives it. Throws Error (kUsage) when there is no field or no "=".
Setting parse_setting(std::string_view text);

struct ScenarioSource {
  std::string file;               // empty: settings only
  std::vector<Setting> settings;  // over the file, later ones win
  SearchPath search;
};

// Brings one layer (a file, a setting) to the schema's own names before it is merged with others.
using Canonicalise = std::function<void(Node& layer, ProblemList& problems)>;

// The merged tree: the file over what it extends, then the settings. Every value keeps its own location. Throws Error
// (kInput) for files that cannot be read or parsed, and for a cycle of `extends`.
Node load_source(const ScenarioSource& source, const google::protobuf::Descriptor& schema,
                 const Canonicalise& canonicalise, ProblemList& problems);

}  // namespace stepcast::config
