// Floating-point seconds: a job is longer than the 106 days that picoseconds hold.
#include "report/job_report.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/quantity.h"
#include "report/text.h"

namespace stepcast::report {
namespace {

constexpr double kSecondsPerDay = 86400;

// "1.61 M", "950": in the largest of the prefixes below it.
std::string prefixed(double value) {
  constexpr std::array<std::pair<double, std::string_view>, 4> kPrefixes = {
      {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};
  for (const auto& [scale, letter] : kPrefixes) {
    if (value >= scale) return fmt::format("{} {}", significant(value / scale, 3), letter);
  }
  return significant(value, 3);
}

}  // namespace

JobReport job_report(const plan::Scenario& s, double step_time_s) {
  CHECK(s.job.has_value() && step_time_s > 0, step_time_s);
  JobReport job;
  job.tokens = s.job->tokens;
  job.price = s.job->price;
  job.pue = s.job->pue;
  const double step_tokens = static_cast<double>(s.training.global_batch_size * s.training.sequence_length);
  job.steps = static_cast<std::int64_t>(std::ceil(job.tokens / step_tokens));
  job.days = static_cast<double>(job.steps) * step_time_s / kSecondsPerDay;
  job.gpu_hours = job.days * 24 * static_cast<double>(s.gpus);
  if (job.price) job.cost_dollars = job.gpu_hours * *job.price;
  const double watts = s.cluster.node.device.power_limit;
  if (watts > 0) job.energy_mwh = job.gpu_hours * watts * 1e-6 * job.pue;
  return job;
}

std::string job_text(const JobReport& job) {
  std::string text = fmt::format("{}: {} days, {} GPU-h", format_quantity(job.tokens, Dimension::kTokens),
                                 significant(job.days, 3), prefixed(job.gpu_hours));
  if (job.cost_dollars) text += fmt::format(", {}$ at {:.2f} $/GPU-h", prefixed(*job.cost_dollars), *job.price);
  if (job.energy_mwh) {
    text += fmt::format(", GPUs at their power limit x PUE {:g}: {} MWh", job.pue, significant(*job.energy_mwh, 3));
  }
  return text + " (ETTR 1.0; not a calendar estimate)";
}

}  // namespace stepcast::report
