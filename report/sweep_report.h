// A scenario in many variants: the cross product of settings, what each takes, which one is best.
//
// Best is the highest throughput per GPU of the variants that fit; of equals the one that needs less memory, then the
// earlier one. Where gpus and batch are the same in all, that is the shortest step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "report/simulation_report.h"

namespace stepcast::report {

enum class SweepStatus : std::uint8_t { kFits, kTight, kOom, kRefused, kUnsupported };
std::string_view to_string(SweepStatus status);

// The order of rows: those that fit, then those that do not; those without a step time come last, as given.
enum class SweepOrder : std::uint8_t { kGiven, kStep, kTokens, kMfu, kMemory };

struct SweepAxis {
  std::string field;                // plan.tp
  std::vector<std::string> values;  // as --set takes them
};

// The figures are those of `simulate`; zero where refused or unsupported.
struct SweepVariant {
  std::vector<std::string> values;  // by axis
  SweepStatus status = SweepStatus::kRefused;
  double step_time_s = 0;
  double tokens_per_s = 0;
  double tokens_per_s_per_gpu = 0;
  PerConvention mfu;
  double peak_tflops = 0;  // what MFU is a share of
  double hfu = 0;
  double bubble_fraction = 0;
  std::int64_t allocated_bytes = 0;
  std::int64_t device_bytes = 0;
  std::int64_t capacity_bytes = 0;
  std::vector<std::string> warnings = {};
  std::vector<Problem> problems = {};  // why it was refused

  bool has_step() const { return step_time_s > 0; }
  bool fits() const { return status == SweepStatus::kFits || status == SweepStatus::kTight; }
  std::int64_t over_bytes() const { return has_step() && !fits() ? device_bytes - capacity_bytes : 0; }
};

struct SweepReport {
  std::string subject;  // the scenario, as the user named it
  std::vector<SweepAxis> axes;
  std::vector<SweepVariant> variants;  // the last axis varies fastest, until ordered
  std::optional<std::size_t> best = {};
  std::vector<std::size_t> counts = {};  // by status, before `top` cut the variants
};

// The variant's figures out of its report.
SweepVariant sweep_variant(std::vector<std::string> values, const SimulationReport& report);
// Of one that has none.
SweepVariant refused_variant(std::vector<std::string> values, std::vector<Problem> problems);

// Counts, orders, keeps the first `top` (all without it; at least 1) and marks the best of all, which takes the place
// of the last one kept where it is not among them.
void finish_sweep(SweepReport& sweep, SweepOrder order, std::optional<std::size_t> top);

enum class SweepFormat : std::uint8_t { kTable, kMarkdown, kCsv, kJson };
// A screen of 120 columns, a Markdown table, comma-separated values as RFC 4180 has them, or one JSON object of schema
// stepcast/sweep/1. Ends in a newline.
std::string sweep_text(const SweepReport& sweep, SweepFormat format);

}  // namespace stepcast::report
