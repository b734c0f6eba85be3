// A published row as a scenario: what its columns state, what its model's name and its source's stack say beyond them
// (published_stack.h), and each assumption by which a gap was filled.
//
// Nothing here sees what was measured. The settings are what --set takes; whoever simulates them reads them through the
// strict reader, whose rules judge the row like any user's scenario.
#pragma once

#include <string>
#include <vector>

#include "calibrate/published_row.h"
#include "config/source.h"

namespace stepcast::calibrate {

struct RowScenario {
  std::vector<config::Setting> settings;  // complete: no file is needed
  std::vector<std::string> assumptions;   // one line each
  std::string skipped;                    // why there is no scenario; empty: there is one
};

RowScenario scenario_of(const PublishedRow& row);

}  // namespace stepcast::calibrate
