// The validity rules of a plan: what its framework would refuse, all violations at once, each with the values, the
// relation that fails and what would work.
//
// Sources: Megatron-LM's validate_args, TransformerConfig.__post_init__, parallel_state and schedules.py; those of the
// other frameworks are in rules_frameworks.cc; for `plain`, what the lowering of this program needs.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/scenario.h"

namespace stepcast::plan {

struct RuleReport {
  std::vector<Problem> violations;    // kInput, or kUnsupported for what the framework does and this program does not
  std::vector<std::string> warnings;  // runs, but probably not as meant
};

// Where a field was given, for messages.
using FieldLocator = std::function<Location(std::string_view field)>;

// Any scenario with positive sizes and degrees within the schema's ranges; plan.dp 0 means that it could not be
// derived, an empty layout that there is none (said by the reader already).
RuleReport check_rules(const Scenario& scenario, const FieldLocator& locate);

// The framework's name in plan/frameworks; "gpipe", "1f1b", "interleaved_1f1b"; "none", "full", "selective".
std::string_view to_string(Framework framework);
std::string_view to_string(ScheduleKind schedule);
std::string_view to_string(ContextComm comm);
std::string_view to_string(GradientSync sync);
std::string_view to_string(RecomputeKind recompute);
std::string_view to_string(MatmulRecipe recipe);  // the scenario's fp8_recipe, or "nvfp4", "none"

}  // namespace stepcast::plan
