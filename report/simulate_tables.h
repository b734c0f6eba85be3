// The tables of the screen of `simulate`. Only report/ includes this.
#pragma once

#include <string>

#include "report/simulation_report.h"

namespace stepcast::report {

// Where the step goes: mean, share, what is saved if that kind were free, the range of the stages' means, a note.
std::string time_block(const SimulationReport& r);

// What the links carry, with memory by stage beside it; memory alone where nothing is sent. Of many stages only the
// first, the middle, the last and the one with the peak.
std::string network_and_memory_block(const SimulationReport& r);

}  // namespace stepcast::report
