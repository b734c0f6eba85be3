// What simulating one step of a checked Program takes and gives.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
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

  // Of compute and optimizer: what they took longer than alone, because of communication beside them. Not in the sum.
  Duration slowed;
};

// Kinds of time whose cost can be taken as zero ("if free").
enum class Free : std::uint8_t { kNothing, kTp, kCp, kEp, kPp, kDp, kGather, kCopy, kHost, kOptimizer, kSlowdown };

struct SimOptions {
  bool fold = true;
  bool contention = true;     // on devices and on links; false: every op takes its time alone
  bool record_events = true;  // keep every op's times (traces, oracles)
  Free free = Free::kNothing; // communication on streams of that kind, or what the name says, costs nothing; kSlowdown:
                              // as contention = false
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

// Communication of one kind over one role, of equal size and price: a line of the collectives table. Times are means
// over the ranks that take part.
struct CommunicationUse {
  program::RoleId role;
  program::OpKind kind = program::OpKind::kAllReduce;  // of messages: kSend
  Exposed exposed_as = Exposed::kTp;
  Bytes message;               // as program/ops/rules defines it
  std::int64_t members = 0;    // of the group; of messages 2
  std::int64_t ranks = 0;      // that take part
  std::int64_t transfers = 0;  // over all ranks and the step
  TransferCost cost;           // alone
  Duration moving;             // over all its transfers: from the latest member's start to the end
};

// What the links of one tier carried in the step.
struct TierUse {
  std::string tier;  // as the cost model names it: scale_up, nic, or a shared link's tier
  double bytes_per_rank = 0;  // out of a rank (scale_up, nic) or over all links of the tier / ranks; mean over ranks
  double mean_utilisation = 0;  // of vendor capacity over the step, mean over the links in use
  double peak_utilisation = 0;  // the highest of any link at any time
  std::vector<std::pair<program::RoleId, double>> carries;  // bytes per rank by role, largest first
};

struct Prediction {
  Duration step;
  std::vector<ClassResult> classes;  // by class id
  std::vector<std::uint32_t> class_of_rank;
  std::uint64_t events = 0;        // ops simulated
  std::uint32_t link_classes = 0;  // of shared links in use
  std::vector<CommunicationUse> communication;  // by role, kind, then size, the largest first
  std::vector<TierUse> tiers;                   // nearest first
};

// Discrete-event engine. Costs come from `costs`, evaluated once per (segment op, device class, path class).
Prediction simulate(const program::CheckedProgram& p, const CostModel& costs, const SimOptions& options);

// The engine's oracle: the same times by relaxing ops in a topological order of the matched graph (no contention).
Prediction relax(const program::CheckedProgram& p, const CostModel& costs, const SimOptions& options);

trace::Trace to_trace(const Prediction& prediction, const program::CheckedProgram& p);

}  // namespace stepcast::sim
