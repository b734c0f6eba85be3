// Rows of the shipped table, and what they become.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "calibrate/published_row.h"
#include "calibrate/row_scenario.h"
#include "config/search.h"

namespace stepcast::calibrate {

using Fields = std::map<std::string, std::string>;

inline const std::vector<MeasuredRun>& shipped_runs() {
  static const std::vector<MeasuredRun> runs = [] {
    const std::string file = std::string(STEPCAST_SOURCE_DIR) + "/scenarios/measured/published_runs_dense.csv";
    return measured_runs(parse_table(config::read_file(file), file));
  }();
  return runs;
}

inline PublishedRow shipped_row(const std::string& id) {
  for (const MeasuredRun& run : shipped_runs()) {
    if (run.row.id == id) return run.row;
  }
  ADD_FAILURE() << "no row " << id;
  return {};
}

// Each field is set once.
inline Fields fields_of(const RowScenario& scenario) {
  Fields fields;
  for (const config::Setting& setting : scenario.settings) {
    EXPECT_TRUE(fields.emplace(setting.field, setting.value).second) << setting.field;
  }
  return fields;
}

}  // namespace stepcast::calibrate
