// The screen and the JSON of `run`.
#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "report/json.h"
#include "report/resolved_plan.h"
#include "report/run_report.h"
#include "report/text.h"

namespace stepcast::report {
namespace {

bool is_cpu(const RunReport& r) { return r.backend == "cpu" || r.backend == "reference"; }

std::string kernels_text(const RunReport& r) {
  if (r.backend == "reference") return "reference kernels";
  return fmt::format("kernels of {} thread{}", r.threads_per_rank, r.threads_per_rank == 1 ? "" : "s");
}

std::string verdict_line(const RunReport& r) {
  const std::string where = fmt::format("{} {} ranks, not GPU numbers", r.scenario.gpus, is_cpu(r) ? "CPU" : r.backend);
  if (!r.reference) {
    return fmt::format("{}  {} steps executed, median {}   {}\n", r.passes() ? "OK" : "FAIL", r.steps.size(),
                       format_duration(Duration::from_seconds(r.median_step_time_s())), where);
  }
  const ReferenceComparison& c = *r.reference;
  if (!c.passes()) {
    return fmt::format("FAIL  differs from 1 rank: {}   {}\n", c.faults(), where);
  }
  return fmt::format("{}  same as 1 rank: loss {:.1e}, gradients {:.1e} (worst {})   {}\n",
                     r.passes() ? "PASS" : "FAIL", c.loss_error, c.gradient_error, c.worst_parameter, where);
}

std::string subject_block(const RunReport& r) {
  const plan::Scenario& s = r.scenario;
  std::string text = wrapped("plan", kLabelWidth, plan_text(s));
  text += wrapped(
      "model", kLabelWidth,
      fmt::format("{}, {} layers, hidden {}, {}; launcher none ({}), {} cores of this machine shared by {} ranks, {}",
                  s.model.name, s.model.layers, s.model.hidden, program::to_string(s.training.compute), r.ranks_as,
                  r.cores, s.gpus, kernels_text(r)));
  if (const std::optional<std::string> losses = r.divergence(); losses && !r.passes()) {
    text += wrapped("why", kLabelWidth,
                    fmt::format("one rank diverges too (loss {}), and rounding decides where to: lower "
                                "training.optimizer.lr",
                                *losses));
  }
  if (r.reference) {
    const ReferenceBounds& b = r.reference->bounds;
    text += wrapped("bounds", kLabelWidth,
                    fmt::format("{}: loss {:.0e} relative; gradients {:.1e} of max(norm, 1e-4 global norm) at step 1, "
                                "all together {:.1e} of it up to step {} (worst {:.1e})",
                                program::to_string(s.training.compute), b.loss, b.first_gradient, b.later_gradient,
                                kJudgedSteps, r.reference->later_gradient_error));
  }
  return text;
}

std::string number(const std::optional<double>& value, const char* pattern) {
  return value ? fmt::format(fmt::runtime(pattern), *value) : "n/a";
}

std::string steps_block(const RunReport& r) {
  std::string text =
      r.reference ? "step        loss    ref loss   grad error     time ms\n" : "step        loss     time ms\n";
  for (std::size_t i = 0; i < r.steps.size(); ++i) {
    const RunStep& step = r.steps[i];
    text += fmt::format("{:>4} {:>11}", i + 1, number(step.loss, "{:.6f}"));
    if (r.reference) {
      text +=
          fmt::format(" {:>11} {:>12}", number(step.reference_loss, "{:.6f}"), number(step.gradient_error, "{:.1e}"));
    }
    text += fmt::format(" {:>11.2f}{}\n", step.step_time_s * 1e3, i == 0 && r.steps.size() > 1 ? " warm-up" : "");
  }
  double low = r.steps.back().step_time_s;
  double high = low;
  for (std::size_t i = r.steps.size() > 1 ? 1 : 0; i < r.steps.size(); ++i) {
    low = std::min(low, r.steps[i].step_time_s);
    high = std::max(high, r.steps[i].step_time_s);
  }
  return text +
         fmt::format("median {:.2f} ms, spread {:.2f}..{:.2f}\n", r.median_step_time_s() * 1e3, low * 1e3, high * 1e3);
}

std::string checks_block(const RunReport& r) {
  const EngineChecks& c = r.checks;
  std::string text = wrapped(
      "checks", kLabelWidth,
      fmt::format("op ids {} {} {} simulated   tensor peak {} {} {} (rank {}; every class on every rank {})",
                  format_count(c.measured_ops), c.unmatched_ops == 0 ? "=" : "!=", format_count(c.simulated_ops),
                  memory_text(c.measured_peak), c.measured_peak == c.simulated_peak ? "=" : "!=",
                  memory_text(c.simulated_peak), c.peak_rank, c.memory_differences.empty() ? "equal" : "NOT equal"));
  constexpr std::size_t kShown = 8;
  for (std::size_t i = 0; i < std::min(kShown, c.memory_differences.size()); ++i) {
    text += wrapped("", kLabelWidth, c.memory_differences[i]);
  }
  const auto share = [](const std::optional<double>& value) { return value ? percent(*value) : std::string("n/a"); };
  text += wrapped("overlap", kLabelWidth,
                  fmt::format("dp collectives beside compute: {}   p2p beside compute: {}", share(r.dp_beside_compute),
                              share(r.p2p_beside_compute)));
  return text;
}

}  // namespace

std::string run_screen(const RunReport& r) {
  std::string text = verdict_line(r) + "\n" + subject_block(r) + "\n" + steps_block(r) + checks_block(r);
  for (const std::string& warning : r.warnings) text += wrapped("warning", kLabelWidth, warning);
  if (!r.trace_path.empty()) {
    text += wrapped("trace", kLabelWidth,
                    fmt::format("{} ({} ranks; same ids as simulate --trace)", r.trace_path, r.scenario.gpus));
  }
  return text;
}

std::string run_json(const RunReport& r) {
  const auto optional = [](const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); };
  Json steps = Json::array();
  for (const RunStep& step : r.steps) {
    Json row = {{"step_time_s", step.step_time_s}, {"loss", optional(step.loss)}};
    if (r.reference) {
      row["reference_loss"] = optional(step.reference_loss);
      row["gradient_error"] = optional(step.gradient_error);
    }
    steps.push_back(row);
  }
  Json json = {{"schema", "stepcast/run/1"},
               {"scenario", r.scenario.name},
               {"backend", r.backend},
               {"ranks_as", r.ranks_as},
               {"ranks", r.scenario.gpus},
               {"threads_per_rank", r.threads_per_rank},
               {"steps", steps},
               {"median_step_time_s", r.median_step_time_s()},
               {"allocated_bytes", r.allocated_bytes}};
  if (r.reference) {
    json["loss_error"] = r.reference->loss_error;
    json["gradient_error"] = r.reference->gradient_error;
    json["later_gradient_error"] = r.reference->later_gradient_error;
    json["worst_parameter"] = r.reference->worst_parameter;
    json["later_worst_parameter"] = r.reference->later_parameter;
    json["bounds"] = {{"loss", r.reference->bounds.loss},
                      {"gradient", r.reference->bounds.first_gradient},
                      {"later_gradient", r.reference->bounds.later_gradient}};
  }
  const std::optional<std::string> divergence = r.divergence();
  json["reference_diverges"] = divergence ? Json(*divergence) : Json(nullptr);
  json["passes"] = r.passes();
  json["checks"] = {
      {"measured_ops", r.checks.measured_ops},           {"simulated_ops", r.checks.simulated_ops},
      {"unmatched_ops", r.checks.unmatched_ops},         {"measured_peak_bytes", r.checks.measured_peak},
      {"simulated_peak_bytes", r.checks.simulated_peak}, {"memory_differences", r.checks.memory_differences}};
  json["warnings"] = r.warnings;
  json["fingerprint"] = hex(r.fingerprint);
  return to_text(json);
}

}  // namespace stepcast::report
