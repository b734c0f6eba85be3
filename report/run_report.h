// Everything `run` tells: what was executed, how it compares with the single-rank reference, and whether the simulator
// and the executor agree on the ops and the bytes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/scenario.h"
#include "program/types.h"
#include "trace/trace.h"

namespace stepcast::report {

struct RunStep {
  double step_time_s = 0;
  std::optional<double> loss = std::nullopt;
  std::optional<double> reference_loss = std::nullopt;
  std::optional<double> gradient_error = std::nullopt;  // worst parameter of the step
};

// What may differ. fp32 bounds are those of the project's promise; bf16 ones allow for its 8 bits of mantissa (2^-8 =
// 0.4 % per rounding, and parallel plans round partial sums at other places).
struct ReferenceBounds {
  double loss = 0;
  double first_gradient = 0;  // at step 1, where both sides have the same weights
  double later_gradient = 0;  // all parameters together
};
ReferenceBounds bounds_for(program::DType compute);

// Later steps are shown but not judged: training amplifies the rounding by which plans differ.
inline constexpr int kJudgedSteps = 3;

using Gradients = std::map<std::string, std::vector<float>>;  // by parameter

// How far the gradients of a step are from the reference's, which has the same parameters. Differences are 2-norms; an
// element that no rank holds (NaN) gives NaN.
struct GradientErrors {
  double worst = 0;  // of the parameters, over max(norm, 1e-4 of the global norm)
  std::string worst_parameter = {};
  double together = 0;  // of all parameters, over the global norm
};
GradientErrors gradient_errors(const Gradients& gradients, const Gradients& reference);

// At step 1 every parameter is judged by its own norm. Later ones are judged together: where a gradient is nothing but
// rounding, such as a key bias's, which no softmax can see, Adam still moves the weight by the learning rate, up in one
// plan and down in another, and small parameters see it.
struct ReferenceComparison {
  ReferenceBounds bounds;
  double loss_error = 0;  // worst judged step, relative
  std::int64_t loss_step = 1;
  double gradient_error = 0;         // worst parameter at step 1
  std::string worst_parameter = {};  // of step 1
  double later_gradient_error = 0;   // all parameters together, worst of the later judged steps
  std::int64_t later_step = 0;
  std::string later_parameter = {};  // the worst one of that step

  // Takes in `step` (from 1); steps after kJudgedSteps are left out.
  void add(std::int64_t step, double loss, double reference_loss, const GradientErrors& errors);
  // "loss 1.2e-03 at step 2, ..." of what is out of bounds.
  std::string faults() const;
  bool passes() const {
    // Written so that NaN fails.
    return loss_error <= bounds.loss && gradient_error <= bounds.first_gradient &&
           later_gradient_error <= bounds.later_gradient;
  }
};

// The executor's trace against the simulator's, rank by rank.
struct EngineChecks {
  std::int64_t measured_ops = 0;
  std::int64_t simulated_ops = 0;   // over all ranks
  std::int64_t unmatched_ops = 0;   // in one trace only
  std::int64_t measured_peak = 0;   // of the rank with the highest
  std::int64_t simulated_peak = 0;  // of the same rank
  std::uint32_t peak_rank = 0;
  std::vector<std::string> memory_differences;  // one line per rank and class that differs
  bool passes() const { return unmatched_ops == 0 && memory_differences.empty(); }
};
EngineChecks check_engines(const trace::Trace& measured, const trace::Trace& simulated);

// Share of the transfer time on `streams` during which the compute stream of the same rank was busy; empty when nothing
// was transferred on them.
std::optional<double> beside_compute(const trace::Trace& trace, std::initializer_list<program::Stream> streams);

double median(std::vector<double> values);

struct RunReport {
  plan::Scenario scenario;
  std::string backend = "cpu";  // or reference: kernels that are checked against, on one thread
  int threads_per_rank = 1;
  std::string ranks_as = "threads";
  unsigned cores = 0;
  std::vector<RunStep> steps;
  std::int64_t allocated_bytes = 0;  // highest peak of all ranks
  std::uint64_t fingerprint = 0;
  std::optional<ReferenceComparison> reference;
  EngineChecks checks;
  std::optional<double> p2p_beside_compute;
  std::optional<double> dp_beside_compute;
  std::string trace_path;
  std::vector<std::string> warnings;

  // "10.38 at step 1, nan at step 3" where the reference itself loses what it knew: its loss is not finite, or a tenth
  // above that of step 1, which is a guess's: room for what batches differ by. Rounding decides such steps, and plans
  // cannot be compared by them.
  std::optional<std::string> divergence() const;
  // Median over all steps but the first, which warms up caches (over one step: that step).
  double median_step_time_s() const;
  bool passes() const { return checks.passes() && (!reference || reference->passes()); }
};

// On screen: at most 120 columns, verdict first. As JSON: schema stepcast/run/1.
std::string run_screen(const RunReport& report);
std::string run_json(const RunReport& report);

}  // namespace stepcast::report
