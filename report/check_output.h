// `check` on screen and as JSON: every broken rule with what would fix it, warnings, and every value with its origin.
#pragma once

#include <string>

#include "plan/scenario_reader.h"

namespace stepcast::report {

// True when there are violations and all of them are of what is known, but not supported yet.
bool only_unsupported(const plan::ReadScenario& read);

// With `show_config` every resolved value and where it comes from.
std::string check_screen(const plan::ReadScenario& read, bool show_config);

// Schema stepcast/check/1: {schema, scenario, valid, violations [{kind, message, file, line, field, help}],
// warnings, notes, config [{field, value, origin}]}. A violation's kind is "input" or "unsupported".
std::string check_json(const plan::ReadScenario& read);

}  // namespace stepcast::report
