// What simulating one step of a checked Program takes and gives.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "program/check.h"
#include "program/lifetimes.h"
#include "sim/cost/cost.h"
#include "sim/folding.h"
#include "trace/trace.h"

namespace stepcast::sim {

// Kinds of communication a rank can be exposed to.
enum class Exposed : std::uint8_t { kTp, kCp, kEp, kPp, kDp, kGather, kCopy };
inline constexpr int kExposedCount = 7;

// Each picosecond of a rank's step is exactly one of these; they sum to the step.
struct TimeParts {
  Duration compute;
  Duration optimizer;
  Duration host;
  Duration bubble;                                // waiting for a partner, not for bytes
  std::array<Duration, kExposedCount> exposed{};  // by the kind of op waited for
  Duration sum() const;
};

struct SimOptions {
  bool fold = true;
  bool record_events = true;  // keep every op's times (traces, oracles)
};

// The lifetimes of a rank program, whose blocks (many per call) all classes that run it share. Stands for
// program::Lifetimes wherever one is read.
class SharedLifetimes {
 public:
  SharedLifetimes() : SharedLifetimes(program::Lifetimes{}) {}
  SharedLifetimes(program::Lifetimes lifetimes)  // NOLINT(google-explicit-constructor): the same value, shared
      : SharedLifetimes(std::make_shared<const program::Lifetimes>(std::move(lifetimes))) {}
  operator const program::Lifetimes&() const { return *whole_; }  // NOLINT(google-explicit-constructor): as above

  program::ClassBytes class_peak{};
  std::int64_t peak = 0;
  std::uint32_t peak_op = 0;
  program::ClassBytes at_peak{};

 private:
  explicit SharedLifetimes(std::shared_ptr<const program::Lifetimes> whole)
      : class_peak(whole->class_peak),
        peak(whole->peak),
        peak_op(whole->peak_op),
        at_peak(whole->at_peak),
        whole_(std::move(whole)) {}

  std::shared_ptr<const program::Lifetimes> whole_;
};

// One class of ranks (with --no-fold: one rank).
struct ClassResult {
  std::uint32_t class_id = 0;
  program::RankId representative;
  std::int64_t ranks = 0;
  TimeParts time;
  SharedLifetimes lifetimes;
  std::vector<trace::Event> events;  // issue order; empty unless recorded
};

struct Prediction {
  Duration step;
  std::vector<ClassResult> classes;  // by class id
  std::vector<std::uint32_t> class_of_rank;
  std::uint64_t events = 0;  // ops simulated
};

// Discrete-event engine. Costs come from `costs`, evaluated once per (segment op, device class, path class).
Prediction simulate(const program::CheckedProgram& p, const CostModel& costs, const SimOptions& options);

// The engine's oracle: the same times by relaxing ops in a topological order of the matched graph (no contention).
Prediction relax(const program::CheckedProgram& p, const CostModel& costs, const SimOptions& options);

trace::Trace to_trace(const Prediction& prediction, const program::CheckedProgram& p);

}  // namespace stepcast::sim
