// Comparisons of executed steps with the reference and with the simulation.
#include "report/run_report.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
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

}  // namespace

ReferenceBounds bounds_for(program::DType compute) {
  if (compute == program::DType::kBf16) return {1e-2, 5e-2, 1.5e-1};
  return {1e-5, 1e-4, 1e-3};
}

double norm_of(std::span<const float> values) {
  double sum = 0;
  for (const float v : values) sum += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(sum);
}

double gradient_error(std::span<const float> a, std::span<const float> reference, double reference_global_norm) {
  CHECK(a.size() == reference.size(), a.size(), reference.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(reference[i]);
    sum += d * d;
  }
  const double scale = std::max(norm_of(reference), 1e-4 * reference_global_norm);
  if (sum == 0) return 0;
  return std::sqrt(sum) / scale;
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
