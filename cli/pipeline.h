// From a scenario's source to results: read, judge, lower, check, price, simulate, report. Commands call only this.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/source.h"
#include "plan/scenario_reader.h"
#include "program/check.h"
#include "report/simulation_report.h"
#include "sim/cost/calibration.h"
#include "sim/prediction.h"

namespace stepcast::cli {

// A valid scenario and its Program.
struct Prepared {
  plan::ReadScenario read;
  std::unique_ptr<program::CheckedProgram> program;

  const plan::Scenario& scenario() const { return read.scenario; }
};

// plan::read_scenario, and what is pinned of NCCL. Throws Error as it says, and for bad pins.
plan::ReadScenario read_and_judge(const config::ScenarioSource& source);

// Throws Error as read_and_judge, and kInput with every broken rule. Notes go to stderr.
Prepared prepare(const config::ScenarioSource& source);

// The same of a scenario that was read already; its notes are left to the caller.
Prepared prepare_read(plan::ReadScenario read);

// The calibration the scenario names. "auto" takes a preset whose `devices` name the scenario's device: before others
// one whose own name begins with the same word (h100-default for H100-SXM-80GB), then one whose first device it is,
// then any that lists it. A relative path starts at the current folder when it comes from the command line, else at the
// scenario file's. Throws Error (kInput) when there is none.
sim::Calibration find_calibration(const plan::Scenario& scenario, const config::ScenarioSource& source);

// Simulates one step.
sim::Prediction predict(const Prepared& prepared, const sim::Calibration& calibration, const sim::SimOptions& options);
// Unless a simulated step has more than `most_ops` ops.
std::optional<sim::Prediction> predict_within(const Prepared& prepared, const sim::Calibration& calibration,
                                              const sim::SimOptions& options, std::uint64_t most_ops);

// One step, and the what-ifs beside it.
struct Outcome {
  sim::Prediction prediction;
  bool contention = true;
  std::vector<std::pair<sim::Free, Duration>> if_free;  // the step without each kind of time that there is
  std::vector<Duration> jittered_steps;                 // by sample; empty without scenario.jitter
};

// Also simulates what-ifs, on all cores, unless a step has more than kMostOpsWithWhatIfs ops. Says on stderr what takes
// long (long_run.h), and that jitter unfolds. Throws Interrupted, and Error: kUnsupported when jitter
// asks for more than kMostJitteredOps, kEnvironment when its ranks need more memory than the machine has.
Outcome predict_with_what_ifs(const Prepared& prepared, const sim::Calibration& calibration,
                              const sim::SimOptions& options);

// Ops times samples: about an hour on one core.
inline constexpr double kMostJitteredOps = 2e9;

// Without remedies; a calibration that describes other devices is warned of (W301, W302).
report::SimulationReport bare_report_of(const Prepared& prepared, const sim::Calibration& calibration,
                                        const Outcome& outcome);

// Warns of a calibration that describes other devices (W301), or a relative of the scenario's (W302). `source` is where
// the scenario came from; on OOM it is read again with what would make the plan smaller.
report::SimulationReport report_of(const Prepared& prepared, const config::ScenarioSource& source,
                                   const sim::Calibration& calibration, const Outcome& outcome);

// Output files that can be written (empty: not wanted), that differ from each other and from the scenario's own file.
// Throws Error: kUsage for the last two, kEnvironment for the first.
void require_outputs(const std::vector<std::string>& paths, const config::ScenarioSource& source);

}  // namespace stepcast::cli
