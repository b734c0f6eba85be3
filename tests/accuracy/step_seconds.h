// The step of a scenario by a shipped calibration.
#pragma once

#include <string>

#include "plan/lowering.h"
#include "sim/cost/analytic.h"
#include "sim/prediction.h"
#include "tests/sim/shipped_calibration.h"

namespace stepcast::testing {

inline double step_seconds(const plan::Scenario& s, const std::string& calibration) {
  const program::CheckedProgram program(plan::lower(s));
  const sim::AnalyticCostModel costs(s.cluster, shipped_calibration(calibration), s.environment);
  sim::SimOptions options;
  options.record_events = false;
  return sim::simulate(program, costs, options).step.seconds();
}

}  // namespace stepcast::testing
