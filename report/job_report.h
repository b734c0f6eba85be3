// What a whole job takes at the simulated speed: steps, days, GPU hours, cost, energy. A job that never stops: no
// failures, checkpoints, evaluation or restarts, which is an effective training time ratio (ETTR) of 1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/scenario.h"

namespace stepcast::report {

struct JobReport {
  double tokens = 0;
  std::int64_t steps = 0;  // whole ones
  double days = 0;
  double gpu_hours = 0;
  std::optional<double> price;         // US dollars per GPU hour
  std::optional<double> cost_dollars;  // with a price
  double pue = 1;
  // The GPUs at their power limit throughout, times pue; hosts, NICs and switches are not in it. None where the cluster
  // states no limit.
  std::optional<double> energy_mwh;
};

// steps = tokens / tokens of a step, rounded up; days = steps x step / 86,400 s; GPU hours = days x 24 x GPUs; cost =
// GPU hours x price; energy = GPU hours x power limit x pue (TDP x time, as model cards state it: it is above what is
// drawn). `step_time_s` is above 0. CHECK: the scenario has a job.
JobReport job_report(const plan::Scenario& scenario, double step_time_s);

// "1 Ttok: 32.8 days, 1.61 M GPU-h, 4.03 M$ at 2.50 $/GPU-h (ETTR 1.0; not a calendar estimate)"
std::string job_text(const JobReport& job);

}  // namespace stepcast::report
