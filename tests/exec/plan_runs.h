// A plan executed for some steps, and how far its losses and gradients are from another run's.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "plan/lowering.h"
#include "program/check.h"

namespace stepcast::exec {

inline constexpr int kSteps = 3;

struct StepRecord {
  double loss = 0;
  std::vector<std::vector<float>> gradients;  // by parameter, in the order of `names`
};

struct RunRecord {
  std::vector<std::string> names;
  std::vector<StepRecord> steps;
};

// kSteps steps; `options` but for the watchdog.
inline RunRecord execute(const plan::Scenario& scenario, ExecOptions options = {}) {
  const program::CheckedProgram checked(plan::lower(scenario));
  options.watchdog = Duration(20'000'000'000'000);  // 20 s without progress is a hang
  Executor executor(checked, options);
  RunRecord record;
  for (const program::Parameter& p : checked.program().parameters) record.names.push_back(p.name);
  for (int step = 0; step < kSteps; ++step) {
    const StepResult result = executor.run_step();
    StepRecord r;
    r.loss = result.loss.value();
    for (std::size_t i = 0; i < record.names.size(); ++i) {
      r.gradients.push_back(executor.gather_parameter(program::ParameterId(i), program::ShardKind::kGradient));
    }
    record.steps.push_back(std::move(r));
  }
  return record;
}

inline double norm_of(const std::vector<float>& v) {
  double sum = 0;
  for (const float x : v) sum += static_cast<double>(x) * x;
  return std::sqrt(sum);
}

inline double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
  return std::sqrt(sum);
}

struct Worst {
  double loss = 0;
  double gradient = 0;
  std::string parameter;
  double together = 0;
};

// Largest errors of one step, gradients relative to max(norm, 1e-4 global norm), and that of all gradients together.
inline Worst compare_step(const RunRecord& reference, const RunRecord& run, std::size_t step) {
  Worst worst;
  const StepRecord& want = reference.steps[step];
  const StepRecord& got = run.steps[step];
  worst.loss = std::abs(got.loss - want.loss) / std::abs(want.loss);
  double global = 0;
  for (const std::vector<float>& g : want.gradients) global += std::pow(norm_of(g), 2);
  global = std::sqrt(global);
  EXPECT_GT(global, 0);
  double differences = 0;
  for (std::size_t i = 0; i < reference.names.size(); ++i) {
    const auto at = std::find(run.names.begin(), run.names.end(), reference.names[i]);
    if (at == run.names.end()) {
      ADD_FAILURE() << "no parameter " << reference.names[i];
      continue;
    }
    const std::vector<float>& g = got.gradients[static_cast<std::size_t>(at - run.names.begin())];
    EXPECT_EQ(g.size(), want.gradients[i].size());
    const double difference = distance(want.gradients[i], g);
    differences += difference * difference;
    const double error = difference / std::max(norm_of(want.gradients[i]), 1e-4 * global);
    if (!(error <= worst.gradient)) {  // also catches NaN
      worst.gradient = error;
      worst.parameter = reference.names[i];
    }
  }
  worst.together = std::sqrt(differences) / global;
  return worst;
}

// At `step` (from 0), by the bounds of plans_test.cc.
inline void expect_within_bounds(const RunRecord& reference, const RunRecord& run, std::size_t step) {
  const Worst worst = compare_step(reference, run, step);
  EXPECT_LE(worst.loss, 1e-5) << "step " << step + 1;
  if (step == 0) {
    EXPECT_LE(worst.gradient, 1e-4) << worst.parameter;
  } else {
    EXPECT_LE(worst.together, 1e-3) << "step " << step + 1 << ", " << worst.parameter;
  }
  EXPECT_FALSE(std::isnan(worst.gradient));
}

}  // namespace stepcast::exec
