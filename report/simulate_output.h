// `simulate` on screen and as JSON.
#pragma once

#include <string>

#include "report/simulation_report.h"

namespace stepcast::report {

// At most 120 columns, verdict first, every number with its unit. Ends in a newline.
std::string simulate_screen(const SimulationReport& report);

// One JSON object, schema stepcast/simulate/1: fixed key order, shortest numbers that read back exactly. Keys in the
// unit their name ends in. Ends in a newline.
std::string simulate_json(const SimulationReport& report);

}  // namespace stepcast::report
