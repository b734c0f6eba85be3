// What simulating one step of a checked Program takes and gives.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "program/check.h"
#include "program/lifetimes.h"
#include "sim/cost/cost.h"
#include "sim/exposed.h"
#include "sim/folding.h"
#include "sim/free.h"
#include "sim/jitter.h"
#include "sim/watch.h"
#include "trace/trace.h"

namespace stepcast::sim {

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

  bool operator==(const TimeParts&) const = default;
};

struct SimOptions {
  bool fold = true;
  bool contention = true;      // on devices and on links; false: every op takes its time alone
  bool record_events = true;   // keep every op's times (traces, oracles)
  Free free = Free::kNothing;  // communication on streams of that kind, or what the name says, costs nothing;
                               // kSlowdown: no op is slowed by what else its device runs
  Watch watch{};               // looks in on the event engine
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
  Duration moving;             // per rank that takes part: from the latest members' starts to the ends, added up
  Duration exposed;  // mean over all ranks of the job: these add up to the communication in TimeParts::exposed
};

// What the links of one tier carried in the step.
struct TierUse {
  std::string tier;             // scale_up (ports), nic, or the tier of shared links
  std::int64_t links = 0;       // in use; of ports and NICs: ranks that use theirs
  double bytes_per_rank = 0;    // out of a rank (scale_up, nic), or over all links of the tier by all ranks
  double mean_utilisation = 0;  // over the step, mean over the links in use: of the vendor's rate for ports and NICs,
                                // of what it can carry for a shared link
  double peak_utilisation = 0;  // the highest of any link at any time
  std::vector<std::pair<program::RoleId, double>> carries;  // bytes per rank by role, the largest first
};

struct Prediction {
  Duration step;
  std::vector<ClassResult> classes;  // by class id
  std::vector<std::uint32_t> class_of_rank;
  std::uint64_t events = 0;                     // ops simulated
  std::uint32_t link_classes = 0;               // of shared links in use
  std::vector<CommunicationUse> communication;  // by role, kind, then size, the largest first; alike prices together
  std::vector<TierUse> tiers;                   // nearest first
};

// One step of a Program on a priced cluster, made once and run under as many what-ifs as wanted. Not changed by
// running: several threads may run it at once.
class Simulation {
 public:
  // Keeps a reference to `p`. Costs are asked for here and never again.
  Simulation(const program::CheckedProgram& p, const CostModel& costs, bool fold);
  ~Simulation();
  Simulation(Simulation&&) noexcept;

  // Discrete-event engine. `options.fold` is what the constructor was told.
  Prediction run(const SimOptions& options) const;
  // Only how long the step takes.
  Duration step(const SimOptions& options) const;
  // Times of steps with random op times, one per sample, in order of the samples. `fold` must have been false, else
  // equal ranks would draw equal times. Runs on up to `threads` threads; their number changes no result.
  std::vector<Duration> jittered_steps(const JitterOptions& jitter, const SimOptions& options, unsigned threads) const;

  // Of one run: ops, and classes of ranks.
  std::uint64_t op_count() const;
  std::size_t class_count() const;

  // The kinds of communication that the Program has, in order.
  std::vector<Free> communication_kinds() const;

 private:
  friend Prediction relax(const program::CheckedProgram& p, const CostModel& costs, const SimOptions& options);
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

// Simulation(p, costs, options.fold).run(options).
Prediction simulate(const program::CheckedProgram& p, const CostModel& costs, const SimOptions& options);

// The engine's oracle: the same times by relaxing ops in a topological order of the matched graph. Without contention,
// whatever the options say.
Prediction relax(const program::CheckedProgram& p, const CostModel& costs, const SimOptions& options);

trace::Trace to_trace(const Prediction& prediction, const program::CheckedProgram& p);

}  // namespace stepcast::sim
