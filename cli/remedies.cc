// Reads the scenario again with each change, so that what depends on it (dp, layout, schedule) is derived anew and what
// the user has fixed stays fixed. Changes whose steps take long to simulate (kManyOps) are left out: a dozen of them
// would keep the answer waiting.
#include "cli/remedies.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "base/parallel.h"
#include "cli/interrupt.h"
#include "cli/long_run.h"
#include "cli/variants.h"

namespace stepcast::cli {
namespace {

// A change of one field: values in order of preference.
struct Change {
  std::string field;
  std::vector<std::string> values;
};

// Divisors of `n` above `current`, up to `limit`: the three smallest.
std::vector<std::string> larger_divisors(std::int64_t n, std::int64_t current, std::int64_t limit) {
  constexpr std::size_t kTried = 3;
  std::vector<std::string> values;
  for (std::int64_t d = current + 1; d <= std::min(n, limit) && values.size() < kTried; ++d) {
    if (n % d == 0) values.push_back(std::to_string(d));
  }
  return values;
}

// Modules by what they cost, then some layers of each virtual stage whole, then all.
std::vector<Change> recompute_changes(const plan::Plan& plan) {
  std::vector<Change> changes;
  const auto recompute = [&changes](std::vector<std::string> values) {
    changes.push_back({"plan.recompute", std::move(values)});
  };
  if (plan.recompute.kind == plan::RecomputeKind::kFull) return changes;
  if (plan.recompute.kind == plan::RecomputeKind::kNone) {
    for (const char* modules :
         {"selective", "selective[layernorm]", "selective[layernorm,mlp_act]", "selective[layernorm,mlp]"}) {
      recompute({modules});
    }
  }
  std::int64_t layers = 0;
  for (const plan::Plan::StageItems& stage : plan.layout) layers = std::max(layers, stage.layers);
  std::vector<std::string> blocks;
  for (std::int64_t quarter = 1; quarter < 4; ++quarter) {
    const std::int64_t n = layers * quarter / 4;
    if (n == layers * (quarter - 1) / 4) continue;
    blocks.push_back("{granularity: full, method: block, num_layers: " + std::to_string(n) + "}");
  }
  if (!blocks.empty()) recompute(blocks);
  recompute({"full"});
  return changes;
}

std::vector<Change> changes_of(const plan::Scenario& s) {
  const plan::Plan& p = s.plan;
  std::vector<Change> changes = recompute_changes(p);
  if (p.schedule == plan::ScheduleKind::kGpipe) changes.push_back({"plan.schedule", {"1f1b"}});
  // Tensor parallelism beyond a node is slow, and so is a ring of keys over many nodes, to run and to check; pipelines
  // deeper than the model are empty.
  changes.push_back({"plan.tp", larger_divisors(s.gpus / p.pp, p.tp, s.cluster.node.devices)});
  changes.push_back({"plan.cp", larger_divisors(s.gpus / p.pp / p.tp, p.cp, s.cluster.node.devices)});
  changes.push_back({"plan.pp", larger_divisors(s.gpus / p.tp, p.pp, s.model.layers)});
  if (p.vp > 1) changes.push_back({"plan.vp", {"1"}});
  if (p.tp > 1 && !p.sequence_parallel) changes.push_back({"plan.sequence_parallel", {"true"}});
  Change zero{"plan.zero", {}};
  for (std::int32_t stage = p.zero + 1; stage <= 3 && p.dp > 1; ++stage) zero.values.push_back(std::to_string(stage));
  changes.push_back(zero);
  Change smaller{"plan.micro_batch_size", {}};
  for (std::int64_t size = p.micro_batch_size / 2; size >= 1; size /= 2) smaller.values.push_back(std::to_string(size));
  changes.push_back(smaller);
  return changes;
}

class Trial {
 public:
  Trial(const report::SimulationReport& report, const config::ScenarioSource& source, bool contention)
      : report_(report), source_(source), options_({.contention = contention, .record_events = false}) {}

  std::optional<report::Remedy> best(const Change& change) {
    std::optional<report::Remedy> best;
    for (const std::string& value : change.values) {
      std::optional<report::Remedy> remedy = simulated(change.field, value);
      if (!remedy || remedy->device_bytes >= report_.memory.device_bytes) continue;
      if (!best || remedy->device_bytes < best->device_bytes) best = std::move(remedy);
      if (best->verdict != report::Verdict::kOom) break;
    }
    return best;
  }

 private:
  std::optional<report::Remedy> simulated(const std::string& field, const std::string& value) {
    config::ScenarioSource source = source_;
    source.settings.push_back(config::parse_setting(field + "=" + value));
    const VariantAnswer answer = answer_variant(source, calibrations_, options_, kManyOps);
    if (!answer.report) return std::nullopt;
    const report::MemoryReport& m = answer.report->memory;
    report::Remedy remedy{.setting = field + "=" + value,
                          .device_bytes = m.device_bytes,
                          .free_bytes = m.capacity_bytes - m.device_bytes,
                          .step_time_s = answer.report->step_time_s,
                          .verdict = m.verdict,
                          .warnings = {}};
    for (const std::string& warning : answer.report->warnings) {
      const auto& known = report_.warnings;
      if (std::find(known.begin(), known.end(), warning) == known.end()) remedy.warnings.push_back(warning);
    }
    return remedy;
  }

  const report::SimulationReport& report_;
  const config::ScenarioSource& source_;
  sim::SimOptions options_;
  CalibrationCache calibrations_;
};

}  // namespace

std::vector<report::Remedy> memory_remedies(const report::SimulationReport& report,
                                            const config::ScenarioSource& source, bool contention) {
  const std::vector<Change> changes = changes_of(report.scenario);
  Trial trial(report, source, contention);
  std::vector<std::optional<report::Remedy>> found(changes.size());
  parallel_for(found.size(), true, [&](std::size_t i) { found[i] = trial.best(changes[i]); });
  std::vector<report::Remedy> remedies;
  for (std::optional<report::Remedy>& remedy : found) {
    if (remedy) remedies.push_back(*std::move(remedy));
  }
  std::stable_sort(remedies.begin(), remedies.end(), [](const report::Remedy& a, const report::Remedy& b) {
    const auto place = [](const report::Remedy& r) {
      const bool fits = r.verdict != report::Verdict::kOom;
      return std::tuple(!fits, !r.warnings.empty(), fits ? r.step_time_s : 0, r.device_bytes);
    };
    return place(a) < place(b);
  });
  return remedies;
}

}  // namespace stepcast::cli
