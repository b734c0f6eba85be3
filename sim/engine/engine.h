// The event engine: runs a workload in time order and records when everything happened.
#pragma once

#include "sim/engine/workload.h"

namespace stepcast::sim {

// Throws InternalError naming what waits if something never completes, which a checked Program cannot do.
Timeline run_engine(const Workload& w);

// The same times from the longest paths of the matched graph, by other means: the engine's oracle.
Timeline relax_times(const Workload& w);

}  // namespace stepcast::sim
