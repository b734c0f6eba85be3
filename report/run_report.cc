// Comparisons of executed steps with the reference and with the simulation.
#include "report/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "config/text.h"
#include "trace/join.h"

namespace stepcast::report {
namespace {

// Busy intervals of a stream, in order; they do not overlap.
std::vector<std::pair<std::int64_t, std::int64_t>> busy(const trace::Track& track, program::Stream stream) {
  std::vector<std::pair<std::int64_t, std::int64_t>> intervals;
  for (const trace::Event& e : track.events) {
    if (e.stream == static_cast<std::uint8_t>(stream) && e.end > e.transfer) {
      intervals.emplace_back(e.transfer.ps, e.end.ps);
    }
  }
  std::sort(intervals.begin(), intervals.end());
  return intervals;
}

// Length of the intersection of two lists of disjoint intervals.
std::int64_t overlap(const std::vector<std::pair<std::int64_t, std::int64_t>>& a,
                     const std::vector<std::pair<std::int64_t, std::int64_t>>& b) {
  std::int64_t total = 0;
  std::size_t j = 0;
  for (const auto& [begin, end] : a) {
    while (j < b.size() && b[j].second <= begin) ++j;
    for (std::size_t k = j; k < b.size() && b[k].first < end; ++k) {
      total += std::min(end, b[k].second) - std::max(begin, b[k].first);
    }
  }
  return total;
}

// NaN exceeds anything.
bool exceeds(double a, double b) { return std::isnan(a) ? !std::isnan(b) : a > b; }

double sum_of_squares(std::span<const float> values) {
  double sum = 0;
  for (const float v : values) sum += static_cast<double>(v) * static_cast<double>(v);
  return sum;
}

double squared_distance(std::span<const float> a, std::span<const float> b) {
  CHECK(a.size() == b.size(), a.size(), b.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += d * d;
  }
  return sum;
}

}  // namespace

ReferenceBounds bounds_for(program::DType compute) {
  if (compute == program::DType::kBf16) return {1e-2, 5e-2, 1.5e-1};
  return {1e-5, 1e-4, 1e-3};
}

GradientErrors gradient_errors(const Gradients& gradients, const Gradients& reference) {
  CHECK(gradients.size() == reference.size(), gradients.size(), reference.size());
  double squares = 0;
  for (const auto& [name, values] : reference) squares += sum_of_squares(values);
  const double global_norm = std::sqrt(squares);
  GradientErrors errors{.worst = -1};
  double differences = 0;
  for (const auto& [name, values] : gradients) {
    const auto found = reference.find(name);
    CHECK(found != reference.end(), name);
    const double difference = squared_distance(values, found->second);
    differences += difference;
    const double norm = std::max(std::sqrt(sum_of_squares(found->second)), 1e-4 * global_norm);
    const double error = difference == 0 ? 0 : std::sqrt(difference) / norm;
    if (!exceeds(error, errors.worst)) continue;
    errors.worst = error;
    errors.worst_parameter = name;
  }
  errors.together = differences == 0 ? 0 : std::sqrt(differences) / global_norm;
  return errors;
}

void ReferenceComparison::add(std::int64_t step, double loss, double reference_loss, const GradientErrors& errors) {
  if (step > kJudgedSteps) return;
  const double error =
      loss == reference_loss
          ? 0
          : std::fabs(loss - reference_loss) / std::max(std::fabs(reference_loss), std::numeric_limits<double>::min());
  if (exceeds(error, loss_error)) {
    loss_error = error;
    loss_step = step;
  }
  if (step == 1) {
    gradient_error = errors.worst;
    worst_parameter = errors.worst_parameter;
  } else if (later_step == 0 || exceeds(errors.together, later_gradient_error)) {
    later_gradient_error = errors.together;
    later_step = step;
    later_parameter = errors.worst_parameter;
  }
}

std::string ReferenceComparison::faults() const {
  std::vector<std::string> faults;
  if (!(loss_error <= bounds.loss)) faults.push_back(fmt::format("loss {:.1e} at step {}", loss_error, loss_step));
  if (!(gradient_error <= bounds.first_gradient)) {
    faults.push_back(fmt::format("gradients {:.1e} at step 1 (worst {})", gradient_error, worst_parameter));
  }
  if (!(later_gradient_error <= bounds.later_gradient)) {
    faults.push_back(fmt::format("gradients together {:.1e} at step {} (worst {})", later_gradient_error, later_step,
                                 later_parameter));
  }
  return config::join(faults);
}

std::optional<std::string> RunReport::divergence() const {
  constexpr double kWorseThanGuessing = 1.1;
  for (std::size_t i = 0; i < std::min<std::size_t>(steps.size(), kJudgedSteps); ++i) {
    if (!steps[0].reference_loss || !steps[i].reference_loss) continue;
    const double first = *steps[0].reference_loss;
    const double loss = *steps[i].reference_loss;
    if (std::isfinite(loss) && loss <= kWorseThanGuessing * first) continue;
    return fmt::format("{:.4g} at step 1, {:.4g} at step {}", first, loss, i + 1);
  }
  return std::nullopt;
}

EngineChecks check_engines(const trace::Trace& measured, const trace::Trace& simulated) {
  EngineChecks checks;
  const trace::Join joined = trace::join(simulated, measured);
  const auto both = static_cast<std::int64_t>(joined.ops.size());
  checks.simulated_ops = both + static_cast<std::int64_t>(joined.only_left.size());
  checks.measured_ops = both + static_cast<std::int64_t>(joined.only_right.size());
  checks.unmatched_ops = checks.simulated_ops + checks.measured_ops - 2 * both;
  for (std::uint32_t rank = 0; rank < measured.class_of_rank.size(); ++rank) {
    const auto own = trace::track_of_rank(measured, rank);
    const auto predicted = trace::track_of_rank(simulated, rank);
    CHECK(own && predicted, rank);
    const trace::Track& m = measured.tracks[*own];
    const trace::Track& s = simulated.tracks[*predicted];
    if (m.peak > checks.measured_peak) {
      checks.measured_peak = m.peak;
      checks.simulated_peak = s.peak;
      checks.peak_rank = rank;
    }
    const auto compare = [&](std::string_view what, std::int64_t a, std::int64_t b) {
      if (a == b) return;
      checks.memory_differences.push_back("rank " + std::to_string(rank) + " " + std::string(what) + ": " +
                                          std::to_string(a) + " B measured, " + std::to_string(b) + " B simulated");
    };
    for (std::size_t c = 0; c < m.class_peak.size(); ++c) {
      compare(program::to_string(static_cast<program::MemoryClass>(c)), m.class_peak[c], s.class_peak[c]);
    }
    compare("total", m.peak, s.peak);
  }
  return checks;
}

std::optional<double> beside_compute(const trace::Trace& trace, std::initializer_list<program::Stream> streams) {
  double total = 0;
  double hidden = 0;
  for (const trace::Track& track : trace.tracks) {
    const auto compute = busy(track, program::Stream::kCompute);
    for (const program::Stream stream : streams) {
      const auto transfers = busy(track, stream);
      for (const auto& [begin, end] : transfers) total += static_cast<double>(end - begin);
      hidden += static_cast<double>(overlap(transfers, compute));
    }
  }
  if (total == 0) return std::nullopt;
  return hidden / total;
}

double median(std::vector<double> values) {
  CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double RunReport::median_step_time_s() const {
  std::vector<double> times;
  for (const RunStep& step : steps) times.push_back(step.step_time_s);
  if (times.size() > 1) times.erase(times.begin());
  return median(std::move(times));
}

}  // namespace stepcast::report
