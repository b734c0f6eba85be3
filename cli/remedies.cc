// Reads the scenario again with each change, so that what depends on it (dp, layout, schedule) is derived anew and what
// the user has fixed stays fixed.
#include "cli/remedies.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "cli/interrupt.h"
#include "plan/lowering.h"
#include "plan/scenario_reader.h"
#include "program/check.h"
#include "program/lifetimes.h"
#include "topology/cluster.h"

namespace stepcast::cli {
namespace {

// A change of one field: values in order of preference, of which the first that helps counts.
struct Change {
  std::string field;
  std::vector<std::string> values;
};

// Largest peak of tensors over the ranks of a lowered plan.
std::int64_t peak_bytes(const plan::Scenario& scenario) {
  const program::CheckedProgram checked(plan::lower(scenario));
  std::int64_t peak = 0;
  for (std::size_t i = 0; i < checked.program().rank_programs.size(); ++i) {
    const program::RankProgramId id(i);
    const program::RankProgram& rank = checked.program().rank_programs[id];
    peak = std::max(peak, program::derive_lifetimes(checked.program(), rank, checked.resolution(id)).peak);
  }
  return peak;
}

// The plan with this change breaks no rule and fits.
bool helps(config::ScenarioSource source, const std::string& field, const std::string& value) {
  throw_if_interrupted();
  source.settings.push_back({field, value, "--set " + field + "=" + value});
  try {
    const plan::ReadScenario read = plan::read_scenario(source);
    if (!read.violations.empty()) return false;
    return peak_bytes(read.scenario) <= topology::usable_memory(read.scenario.cluster.node.device).count;
  } catch (const Error&) {
    return false;
  }
}

// Divisors of `n` above `current`, up to `limit`.
std::vector<std::string> larger_divisors(std::int64_t n, std::int64_t current, std::int64_t limit) {
  std::vector<std::string> values;
  for (std::int64_t d = current + 1; d <= std::min(n, limit); ++d) {
    if (n % d == 0) values.push_back(std::to_string(d));
  }
  return values;
}

std::vector<Change> changes_of(const plan::Scenario& s) {
  const plan::Plan& p = s.plan;
  std::vector<Change> changes;
  if (p.recompute.kind != plan::RecomputeKind::kFull) changes.push_back({"plan.recompute", {"full"}});
  if (p.schedule == plan::ScheduleKind::kGpipe) changes.push_back({"plan.schedule", {"1f1b"}});
  // Tensor parallelism beyond a node is slow, pipelines deeper than the model are empty.
  changes.push_back({"plan.tp", larger_divisors(s.gpus / p.pp, p.tp, s.cluster.node.devices)});
  changes.push_back({"plan.pp", larger_divisors(s.gpus / p.tp, p.pp, s.model.layers)});
  if (p.dp > 1 && p.zero == 0) changes.push_back({"plan.zero", {"1", "2", "3"}});
  if (p.dp > 1 && p.zero == 1) changes.push_back({"plan.zero", {"2", "3"}});
  Change smaller{"plan.micro_batch_size", {}};
  for (std::int64_t size = p.micro_batch_size / 2; size >= 1; size /= 2) smaller.values.push_back(std::to_string(size));
  changes.push_back(smaller);
  return changes;
}

}  // namespace

std::vector<std::string> memory_remedies(const plan::Scenario& scenario, const config::ScenarioSource& source) {
  std::vector<std::string> remedies;
  for (const Change& change : changes_of(scenario)) {
    const auto value = std::find_if(change.values.begin(), change.values.end(),
                                    [&](const std::string& v) { return helps(source, change.field, v); });
    if (value != change.values.end()) remedies.push_back(change.field + "=" + *value);
  }
  return remedies;
}

}  // namespace stepcast::cli
