#include "report/sweep_report.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace stepcast::report {
namespace {

constexpr std::size_t kStatusCount = 5;

SweepStatus status_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFits:
      return SweepStatus::kFits;
    case Verdict::kTight:
      return SweepStatus::kTight;
    case Verdict::kOom:
      return SweepStatus::kOom;
  }
  CHECK(false, static_cast<int>(verdict));
}

// Smaller is earlier.
double place(const SweepVariant& v, SweepOrder order) {
  switch (order) {
    case SweepOrder::kGiven:
      return 0;
    case SweepOrder::kStep:
      return v.step_time_s;
    case SweepOrder::kTokens:
      return -v.tokens_per_s_per_gpu;
    case SweepOrder::kMfu:
      return -v.mfu.full;
    case SweepOrder::kMemory:
      return static_cast<double>(v.allocated_bytes);
  }
  CHECK(false, static_cast<int>(order));
}

std::optional<std::size_t> best_of(const std::vector<SweepVariant>& variants) {
  const auto score = [](const SweepVariant& v) { return std::tuple(-v.tokens_per_s_per_gpu, v.allocated_bytes); };
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (!variants[i].fits()) continue;
    if (!best || score(variants[i]) < score(variants[*best])) best = i;
  }
  return best;
}

std::vector<std::size_t> ordered_rows(const std::vector<SweepVariant>& variants, SweepOrder order) {
  std::vector<std::size_t> rows(variants.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  if (order == SweepOrder::kGiven) return rows;
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t i, std::size_t j) {
    const SweepVariant& a = variants[i];
    const SweepVariant& b = variants[j];
    if (a.fits() != b.fits()) return a.fits();
    if (a.has_step() != b.has_step()) return a.has_step();
    return a.has_step() && place(a, order) < place(b, order);
  });
  return rows;
}

}  // namespace

std::string_view to_string(SweepStatus status) {
  constexpr std::array<std::string_view, kStatusCount> kNames = {"fits", "tight", "oom", "refused", "unsupported"};
  return kNames.at(static_cast<std::size_t>(status));
}

SweepVariant sweep_variant(std::vector<std::string> values, const SimulationReport& r) {
  return {.values = std::move(values),
          .status = status_of(r.memory.verdict),
          .step_time_s = r.step_time_s,
          .tokens_per_s = r.tokens_per_s,
          .tokens_per_s_per_gpu = r.tokens_per_s_per_gpu,
          .mfu = r.mfu,
          .peak_tflops = r.peak_tflops,
          .hfu = r.hfu,
          .bubble_fraction = r.bubble_fraction,
          .allocated_bytes = r.memory.allocated_bytes,
          .device_bytes = r.memory.device_bytes,
          .capacity_bytes = r.memory.capacity_bytes,
          .warnings = r.warnings};
}

SweepVariant refused_variant(std::vector<std::string> values, std::vector<Problem> problems) {
  SweepVariant variant;
  variant.values = std::move(values);
  const bool unsupported = Error(problems).kind() == ErrorKind::kUnsupported;
  variant.status = unsupported ? SweepStatus::kUnsupported : SweepStatus::kRefused;
  variant.problems = std::move(problems);
  return variant;
}

void finish_sweep(SweepReport& sweep, SweepOrder order, std::optional<std::size_t> top) {
  CHECK(!top || *top > 0);
  sweep.counts.assign(kStatusCount, 0);
  for (const SweepVariant& v : sweep.variants) ++sweep.counts[static_cast<std::size_t>(v.status)];
  const std::optional<std::size_t> best = best_of(sweep.variants);
  std::vector<std::size_t> rows = ordered_rows(sweep.variants, order);
  if (top && *top < rows.size()) {
    const auto cut = rows.begin() + static_cast<std::ptrdiff_t>(*top);
    if (best && std::find(rows.begin(), cut, *best) == cut) *std::prev(cut) = *best;
    rows.erase(cut, rows.end());
  }
  std::vector<SweepVariant> kept;
  sweep.best.reset();
  for (const std::size_t row : rows) {
    if (best == row) sweep.best = kept.size();
    kept.push_back(std::move(sweep.variants[row]));
  }
  sweep.variants = std::move(kept);
}

}  // namespace stepcast::report
