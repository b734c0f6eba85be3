// What would make a plan smaller and is still accepted by its framework, with its price in time.
#pragma once

#include <vector>

#include "config/source.h"
#include "report/simulation_report.h"

namespace stepcast::cli {

// Changes of one field of the report's scenario each: recompute of more, context parallelism, larger tp within a node
// and pp on the same gpus, fewer virtual stages, sequence parallelism, sharded optimizer states, gradients and
// parameters (zero 1 to 3), 1F1B instead of GPipe, a smaller microbatch. Of each field the first value that fits, or
// else the one that needs the least memory. Each was read over `source`, the source of the scenario, breaks no rule,
// and was simulated without what-ifs. Those that fit come first, of them those without a warning (of recompute that the
// framework has no flag for, say), the fastest first; then the others, the smallest first. Throws Interrupted.
std::vector<report::Remedy> memory_remedies(const report::SimulationReport& report,
                                            const config::ScenarioSource& source, bool contention);

}  // namespace stepcast::cli
