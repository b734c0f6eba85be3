// What would change a step: simulated again with faster kernels, links and NICs, and with neighbouring plans.
#pragma once

#include <vector>

#include "cli/pipeline.h"
#include "config/source.h"
#include "report/simulation_report.h"

namespace stepcast::cli {

// One entry for each change that the scenario can have, in a fixed order:
//   gemm, attention: the calibration's shares of peak x 1.1; HBM, scale_up: the device's rates x 1.1; NIC 2x: its rate;
//   leaf 1:1, spine 1:1: no oversubscription there; launch 0: no host time per kernel;
//   vp and mbs, doubled and halved: read, judged and lowered again, left out where the framework refuses them.
// Each is a simulation of its own, on all cores. `answer` is the report without a change: hardware changes no memory.
// Throws Interrupted.
std::vector<report::Sensitivity> sensitivities(const Prepared& prepared, const config::ScenarioSource& source,
                                               const sim::Calibration& calibration,
                                               const report::SimulationReport& answer, bool contention);

}  // namespace stepcast::cli
