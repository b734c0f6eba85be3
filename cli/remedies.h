// What would make a plan smaller and is still accepted by its framework.
#pragma once

#include <string>
#include <vector>

#include "config/source.h"
#include "plan/scenario.h"

namespace stepcast::cli {

// Settings such as "plan.pp=4", each a change of one field of `scenario` to what is not set already: full recompute,
// the next larger tp within a node and pp on the same gpus, sharded optimizer states (zero 1) and then parameters (zero
// 3), 1F1B instead of GPipe, a smaller microbatch. Each was read over `source`, the source of `scenario`, breaks no
// rule, and its peak of tensors, read off its own Program, is below the device's memory. Empty: no single change is
// enough.
std::vector<std::string> memory_remedies(const plan::Scenario& scenario, const config::ScenarioSource& source);

}  // namespace stepcast::cli
