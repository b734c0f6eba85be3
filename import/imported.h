// What an importer makes of a configuration that another framework understands: values of the scenario with their
// origins, and everything the reader of the scenario should know about what was left out, assumed or contradictory.
//
// Formats and their sources: import/README.md. Files are read, never executed, and nothing else is opened but what they
// name as configuration (a torchtitan file named by a flag).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/search.h"
#include "config/source.h"

namespace stepcast::imports {

enum class Reason : std::uint8_t {
  kNoInfluence,   // on step time and memory
  kNotSupported,  // has influence; no key of the scenario says it, or no release acts on it
  kUnknown,       // the framework does not know it either
};
std::string_view to_string(Reason reason);

struct Ignored {
  std::string name;  // as the source writes it: --lr, training.steps
  Reason reason = Reason::kUnknown;
  std::string detail;  // what it would do, or the nearest known name; may be empty
  Location where;
};

// One value of the scenario. `text` is a YAML scalar or flow text, quoted where it has to be.
struct ImportedValue {
  std::string field;   // plan.tp
  std::string text;    // 8
  std::string origin;  // "launch.sh:12: --tensor-model-parallel-size 8"
};

struct Imported {
  std::string format;
  std::string file;
  std::vector<ImportedValue> values;  // each field once, in the order of the scenario's sections
  std::vector<Ignored> ignored;
  std::vector<std::string> warnings;        // written, but refused by this release, and what runs instead
  std::vector<std::string> assumed;         // what the source does not say
  std::vector<std::string> converted;       // values that are counted otherwise here
  std::vector<std::string> contradictions;  // settled ones: which of two values holds
};

struct ImportRequest {
  std::string format;
  std::string file;
  std::map<std::string, std::string> defines;  // shell variables
  std::string model;                           // a name or path; empty: what the source says
  std::string cluster;
  std::optional<std::int64_t> gpus;
  bool allow_unknown = false;             // flags that the framework is not known to have are told, not refused
  std::vector<config::Setting> settings;  // any field of the scenario, over all else
  config::SearchPath search;
};

std::vector<std::string> import_formats();

// Throws Error with all problems at once. kInput: the source cannot be read, lacks what a scenario needs, or is refused
// by its own framework; locations are lines of the source. kUsage: no such format.
Imported import_file(const ImportRequest& request);

// The scenario file: its values by section with their origins as comments, under a head that says what was ignored,
// assumed and contradictory.
std::string scenario_yaml(const Imported& imported);

// The same without the YAML, for the terminal. Empty when there is nothing to say.
std::string import_report(const Imported& imported);

}  // namespace stepcast::imports
