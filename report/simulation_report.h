// Everything `simulate` tells, as plain numbers: computed once from a prediction, printed as a screen or as JSON.
//
// Definitions. Times per kind are means over ranks, weighted by class size; per stage likewise over the stage's ranks,
// and they sum to the step. MFU counts model FLOPs (6 per matmul parameter and token, plus attention in both
// conventions) over the dense peak of the compute type and never counts recompute; HFU counts the matmul and attention
// FLOPs of the ops in the Program, recompute included (causal attention; its backward counts 2.5 times the forward, as
// flash kernels recompute scores). Memory is the exact bytes of live buffers at the peak over issue positions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/scenario.h"
#include "program/check.h"
#include "program/lifetimes.h"
#include "report/job_report.h"
#include "report/published_runs.h"
#include "sim/prediction.h"

namespace stepcast::report {

enum class Verdict : std::uint8_t { kFits, kTight, kOom };
std::string_view to_string(Verdict verdict);
std::string_view to_string(sim::Exposed kind);
std::string_view to_string(sim::Free kind);

// Less room than this is tight: the scenario's report.reserve, or 2 GiB, but a tenth of a small device.
inline constexpr std::int64_t tight_below(std::int64_t capacity_bytes, std::optional<std::int64_t> reserve_bytes) {
  constexpr std::int64_t kReserve = std::int64_t{2} << 30;
  if (reserve_bytes) return *reserve_bytes;
  return capacity_bytes / 10 < kReserve ? capacity_bytes / 10 : kReserve;
}

// Mean seconds per kind; they sum to the step.
struct TimeShares {
  double compute_s = 0;
  double optimizer_s = 0;
  double host_s = 0;
  double bubble_s = 0;
  std::array<double, sim::kExposedCount> exposed_s{};
  double slowed_s = 0;  // of compute and optimizer: longer than alone; not in the sum
};

struct StageReport {
  std::int32_t stage = 0;   // pipeline rank
  std::int64_t layers = 0;  // over all its chunks
  std::int64_t ranks = 0;
  TimeShares time;
  double compute_min_s = 0;  // of its ranks: apart where one of them is slower, say
  double compute_max_s = 0;
  program::ClassBytes at_peak{};     // of the class with the highest peak
  std::int64_t allocated_bytes = 0;  // that peak
};

// Equal buffers are listed once: names that differ only in numbers, written with * for the number.
struct TensorFamily {
  std::string name;
  program::MemoryClass memory_class = program::MemoryClass::kActivations;
  std::int64_t count = 0;
  std::int64_t bytes = 0;  // of all of them
};

struct MemoryReport {
  std::int64_t allocated_bytes = 0;  // maximum over ranks of the peak
  double fragmentation = 0;          // what the allocator reserves beyond, of what is allocated
  std::int64_t reserved_bytes = 0;   // allocated and fragmentation
  std::int64_t context_bytes = 0;
  std::int64_t workspace_bytes = 0;
  std::int64_t user_buffer_bytes = 0;
  std::int64_t communicator_bytes = 0;
  std::int64_t device_bytes = 0;    // reserved and all of the above: what the verdict is about
  std::int64_t capacity_bytes = 0;  // what the driver reports, a little below the nominal size
  Verdict verdict = Verdict::kFits;
  std::int32_t peak_stage = 0;
  std::string peak_path;                  // op whose issue reaches the peak
  std::vector<TensorFamily> top_tensors;  // alive there, largest first
  // Of the class of gradients alive there, what is not the sum that the step's reductions end in, largest first.
  std::vector<TensorFamily> other_gradients;
};

struct PerConvention {
  double full = 0;
  double causal = 0;
};

// What the links of one tier carried.
struct TierReport {
  std::string tier;        // scale_up, nic, leaf, spine, core
  std::int64_t links = 0;  // in use
  double bytes = 0;        // per GPU and step
  double mean_utilisation = 0;
  double peak_utilisation = 0;
  std::vector<std::pair<std::string, double>> carries;  // bytes per GPU and step by group, the largest first
};

// Collectives, or messages, of one kind, group, size and price.
struct CollectiveReport {
  std::string group;       // name of the role: tp, dp, ...
  std::string op;          // all_reduce, ...; send for messages
  std::int64_t bytes = 0;  // the message as program/ops/rules defines it: an all-gather's whole
  double count = 0;        // per step and rank that takes part; of messages sends and receives
  std::string algorithm;
  std::string protocol;
  double busbw_gb_per_s = 0;  // alone
  double exposed_s = 0;       // mean over all ranks
};

// The step if one kind of time cost nothing.
struct IfFree {
  sim::Free kind = sim::Free::kNothing;
  double step_time_s = 0;
};

// The step with one thing changed.
struct Sensitivity {
  std::string change;  // "NIC 2x"
  std::string what;    // "cluster.nic.rate x 2"
  double step_time_s = 0;
  Verdict verdict = Verdict::kFits;
};

// A plan changed in one setting, on OOM.
struct Remedy {
  std::string setting;  // "plan.pp=4"
  std::int64_t device_bytes = 0;
  std::int64_t free_bytes = 0;  // negative: over
  double step_time_s = 0;
  Verdict verdict = Verdict::kOom;
  std::vector<std::string> warnings;  // that the plan unchanged does not get
};

// How long steps take whose ops take random times.
struct JitterReport {
  plan::Jitter jitter;
  double p50_s = 0;
  double p90_s = 0;
  double p99_s = 0;
  double mean_s = 0;
  double min_s = 0;
  double max_s = 0;
};

struct CalibrationSummary {
  std::string name;
  std::int64_t constants = 0;
  std::string stack = {};
};

// Why HFU can be the smaller one although it counts recompute.
inline constexpr std::string_view kHfuConvention =
    "HFU counts causal attention and 2.5 times its forward for the backward pass; it may lie below MFU full, which "
    "counts attention as if there were no mask";

struct SimulationReport {
  plan::Scenario scenario;  // resolved
  std::int64_t parameters = 0;
  double step_time_s = 0;
  std::int64_t tokens = 0;  // per step
  double tokens_per_s = 0;
  double tokens_per_s_per_gpu = 0;
  PerConvention flops_per_token;
  PerConvention model_tflops_per_gpu;
  double hardware_tflops_per_gpu = 0;
  PerConvention mfu;  // fractions
  double hfu = 0;
  double peak_tflops = 0;
  double bubble_fraction = 0;  // of the step
  TimeShares time;
  std::vector<StageReport> stages;
  MemoryReport memory;
  std::vector<TierReport> network;  // nearest first
  std::vector<CollectiveReport> collectives;
  std::vector<sim::Free> kinds_in_use;
  std::array<double, sim::kExposedCount> moving_s{};  // by kind: mean time per rank in which transfers move
  std::vector<IfFree> if_free;                        // those that were simulated
  double held_multiprocessors = 0;                    // the most of a device that one communication kernel holds
  std::optional<JitterReport> jitter;
  std::optional<JobReport> job;
  std::vector<Sensitivity> sensitivity;  // filled by who simulates the changes
  std::int64_t microbatches = 0;
  CalibrationSummary calibration;
  std::optional<PublishedRun> nearest_published;
  std::vector<std::string> warnings;
  std::vector<std::string> assumptions;
  std::vector<std::string> not_modelled;
  std::vector<Remedy> remedies;  // on OOM: filled by who simulates them, the fastest that fits first
  std::int64_t ranks = 0;
  std::int64_t rank_classes = 0;
  std::int64_t link_classes = 0;
  std::uint64_t events = 0;
  std::uint64_t fingerprint = 0;
};

struct SimulationInputs {
  const plan::Scenario& scenario;
  const program::CheckedProgram& program;
  const sim::Prediction& prediction;
  CalibrationSummary calibration;
  std::vector<std::string> warnings;
  std::vector<PublishedRun> published;
  bool contention = true;
  std::vector<std::pair<sim::Free, Duration>> if_free = {};
  std::vector<Duration> jittered_steps = {};  // with scenario.jitter
};

// The kinds of time that a step has, hidden or not, in the order of sim::Free; the slowdown if an op took longer
// than alone.
std::vector<sim::Free> kinds_in_use(const sim::Prediction& prediction);
// How much of the step, a fraction, the kind is to blame for: its part of it, mean over ranks.
double share_of_step(const sim::Prediction& prediction, sim::Free kind);

// By nearest rank: the smallest value that at least `percent` % of `sorted` do not exceed. `sorted` is ascending and
// not empty; 0 < percent <= 100.
Duration percentile(std::span<const Duration> sorted, std::int64_t percent);

SimulationReport make_simulation_report(const SimulationInputs& inputs);

// Peak rate of the device in the scenario's compute type.
FlopsPerSecond peak_of(const plan::Scenario& scenario);
// What that peak is of: "bf16", "f32", "f16"; of quantised matmuls "fp8" or "fp4".
std::string precision_of(const plan::Scenario& scenario);

// Matmul and attention FLOPs of one rank program's step.
double hardware_flops(const program::Program& p, const program::RankProgram& r);

// Stage (pipeline rank) of `rank` in the scenario's mesh.
std::int32_t stage_of(const plan::Scenario& scenario, std::uint32_t rank);

}  // namespace stepcast::report
