// The parts of a SimulationReport that are filled in files of their own. Only report/simulation_*.cc include this.
#pragma once

#include "report/simulation_report.h"

namespace stepcast::report {

// Memory and its verdict. Needs the step's communication in `in`.
void fill_memory(SimulationReport& r, const SimulationInputs& in);
// Tiers, collectives, what moves by kind, what communication holds.
void fill_network(SimulationReport& r, const SimulationInputs& in);
// If-free steps and jitter. Needs fill_network.
void fill_what_ifs(SimulationReport& r, const SimulationInputs& in);
// Warnings, assumptions, what is not modelled, the nearest published run.
void fill_notes(SimulationReport& r, const SimulationInputs& in);

}  // namespace stepcast::report
