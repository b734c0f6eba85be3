// One scenario in many settings: what `simulate` would say of each, without its what-ifs.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "config/source.h"
#include "report/simulation_report.h"
#include "sim/cost/calibration.h"
#include "sim/prediction.h"

namespace stepcast::cli {

// Calibrations by what they are chosen by, each read once. May be asked by several threads at once.
class CalibrationCache {
 public:
  // As find_calibration. `source` decides where a relative path starts and must be alike in all calls but for settings.
  sim::Calibration find(const plan::Scenario& scenario, const config::ScenarioSource& source);

 private:
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, sim::Calibration> known_;  // by calibration and device
};

// A full answer, or why there is none.
struct VariantAnswer {
  std::optional<report::SimulationReport> report;  // without what-ifs and remedies
  std::vector<Problem> problems;
  bool was_read = false;           // false: the settings make no scenario at all
  std::vector<std::string> notes;  // of the reader
};

// Errors of the user become problems. No answer and no problems where a simulated step has more than `most_ops` ops.
// Throws Interrupted.
VariantAnswer answer_variant(const config::ScenarioSource& source, CalibrationCache& calibrations,
                             const sim::SimOptions& options = {.record_events = false},
                             std::uint64_t most_ops = std::numeric_limits<std::uint64_t>::max());

}  // namespace stepcast::cli
