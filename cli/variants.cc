#include "cli/variants.h"

#include "cli/interrupt.h"
#include "cli/pipeline.h"
#include "plan/scenario_reader.h"

namespace stepcast::cli {

sim::Calibration CalibrationCache::find(const plan::Scenario& scenario, const config::ScenarioSource& source) {
  const std::lock_guard lock(mutex_);
  const std::pair key(scenario.calibration, scenario.cluster.node.device.name);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  return known_.emplace(key, find_calibration(scenario, source)).first->second;
}

VariantAnswer answer_variant(const config::ScenarioSource& source, CalibrationCache& calibrations,
                             const sim::SimOptions& options, std::uint64_t most_ops) {
  throw_if_interrupted();
  VariantAnswer answer;
  try {
    plan::ReadScenario read = read_and_judge(source);
    answer.was_read = true;
    answer.notes = read.notes;
    const Prepared prepared = prepare_read(std::move(read));
    const sim::Calibration calibration = calibrations.find(prepared.scenario(), source);
    Outcome outcome;
    outcome.contention = options.contention;
    std::optional<sim::Prediction> prediction = predict_within(prepared, calibration, options, most_ops);
    if (!prediction) return answer;
    outcome.prediction = *std::move(prediction);
    answer.report = bare_report_of(prepared, calibration, outcome);
  } catch (const Error& error) {
    answer.problems = error.problems();
  }
  return answer;
}

}  // namespace stepcast::cli
