// Reads a scenario: file and command-line settings, through the strict schema, to a resolved Scenario with the origin
// of every value, judged by the rules of its framework.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/source.h"
#include "plan/scenario.h"

namespace stepcast::plan {

// One resolved value, for `check --show-config`.
struct ConfigValue {
  std::string field;   // plan.tp
  std::string value;   // 4
  std::string origin;  // "run.yaml:4", "--set plan.tp=4", "megatron-core default", "derived: gpus / (tp * cp * pp)"
};

struct ReadScenario {
  Scenario scenario;                // complete where `violations` is empty; else a best effort, not to be lowered
  std::vector<ConfigValue> values;  // in the order of the schema
  std::vector<std::string> notes;   // aliases taken, things ignored: one line each
  std::vector<Problem> violations;  // broken rules of the framework (plan/rules), all of them
  std::vector<std::string> warnings;
  std::map<std::string, Location> environment_at;  // where each of scenario.environment was given
};

// Throws Error with all problems at once: kInput for files, names, types, ranges, units, unknown or missing fields;
// kUnsupported for keys and values that are known but not acted on yet (kInput wins when there are both). Broken rules
// do not throw: they are returned, for `check` to list.
ReadScenario read_scenario(const config::ScenarioSource& source);

// Throws Error with the violations, if there are any.
void throw_if_violated(const ReadScenario& read);

}  // namespace stepcast::plan
