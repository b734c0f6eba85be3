// From times to a Prediction: accounting and memory per class, and the trace that both engines share.
#include "sim/prediction.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/parallel.h"
#include "sim/accounting.h"
#include "sim/engine/engine.h"
#include "sim/network_use.h"

namespace stepcast::sim {
namespace {

static_assert(std::is_same_v<decltype(trace::MemorySample::class_bytes), program::ClassBytes>);

// An exchange starts and ends its messages one by one; its transfer is the latest partner's start over all of them.
SimTime transfer_start_of(const Workload& w, const Timeline& times, const SimulatedRank& rank, std::uint32_t op) {
  SimTime start = times.ops[rank.first_op + op].begin;
  for (const RankShape::Part& part : w.shape_of(rank).parts_of(op)) {
    start = std::max(start, times.transfers[w.transfer_of(rank, part)].start);
  }
  return start;
}

std::vector<trace::Event> events_of(const Workload& w, const Timeline& times, const SimulatedRank& rank) {
  const RankShape& shape = w.shape_of(rank);
  std::vector<trace::Event> events(shape.op_count());
  for (std::uint32_t i = 0; i < shape.op_count(); ++i) {
    const std::uint32_t call = shape.resolution->call_of[i];
    const OpTimes& t = times.ops[rank.first_op + i];
    events[i].id = trace::OpId{call, i - shape.resolution->first_op[call]};
    events[i].stream = static_cast<std::uint8_t>(shape.ops[i].stream);
    events[i].issue = t.issue;
    events[i].begin = t.begin;
    events[i].transfer = transfer_start_of(w, times, rank, i);
    events[i].end = t.end;
  }
  return events;
}

Duration step_of(const Timeline& times) {
  Duration step;
  for (const OpTimes& op : times.ops) step = std::max(step, Duration(op.end.ps));
  return step;
}

EngineOptions engine_options(const SimOptions& options) {
  return {.contention = options.contention, .free = options.free, .jitter = {}, .watch = options.watch};
}

// Bytes allocated at each issue where they change.
std::vector<trace::MemorySample> memory_of(const ClassResult& result) {
  const auto ops = static_cast<std::uint32_t>(result.events.size());
  const std::vector<program::ClassBytes> bytes = program::allocated_over_time(result.lifetimes, ops);
  std::vector<trace::MemorySample> samples;
  for (std::uint32_t i = 0; i < ops; ++i) {
    if (i > 0 && bytes[i] == bytes[i - 1]) continue;
    samples.push_back(trace::MemorySample{result.events[i].issue, bytes[i]});
  }
  return samples;
}

}  // namespace

Duration TimeParts::sum() const {
  return std::accumulate(exposed.begin(), exposed.end(), compute + optimizer + host + bubble);
}

struct Simulation::Parts {
  Parts(const program::CheckedProgram& p, const CostModel& costs, bool fold)
      : checked(p),
        folding(fold ? sim::fold(p, costs) : no_fold(p, costs)),
        workload(p, costs, folding),
        vendor_rates(costs.vendor_rates()) {}

  Prediction predict(const SimOptions& options, const EngineOptions& engine, const Timeline& times) const;
  std::map<program::RankProgramId, SharedLifetimes> derive_lifetimes() const;
  // Worth several threads.
  bool is_large() const { return workload.op_count() > 20'000; }

  const program::CheckedProgram& checked;
  Folding folding;
  Workload workload;
  VendorRates vendor_rates;
};

std::map<program::RankProgramId, SharedLifetimes> Simulation::Parts::derive_lifetimes() const {
  std::map<program::RankProgramId, SharedLifetimes> lifetimes;
  for (const RankShape& shape : workload.shapes()) lifetimes.try_emplace(shape.id);
  std::vector<program::RankProgramId> ids;
  for (const auto& [id, none] : lifetimes) ids.push_back(id);
  std::vector<SharedLifetimes> derived(ids.size());
  parallel_for(ids.size(), is_large(), [&](std::size_t i) {
    derived[i] = program::derive_lifetimes(checked.program(), checked.program().rank_programs[ids[i]],
                                           checked.resolution(ids[i]));
  });
  for (std::size_t i = 0; i < ids.size(); ++i) lifetimes[ids[i]] = std::move(derived[i]);
  return lifetimes;
}

Prediction Simulation::Parts::predict(const SimOptions& options, const EngineOptions& engine,
                                      const Timeline& times) const {
  const Workload& w = workload;
  const AloneTimes alone(w, engine);
  Prediction prediction;
  prediction.step = step_of(times);
  prediction.class_of_rank = folding.class_of_rank;
  prediction.events = w.op_count();
  prediction.link_classes = static_cast<std::uint32_t>(folding.link.size());
  const std::map<program::RankProgramId, SharedLifetimes> lifetimes = derive_lifetimes();
  prediction.classes.resize(w.ranks().size());
  std::vector<ExposedByLane> exposed_of_class(w.ranks().size());
  parallel_for(w.ranks().size(), is_large(), [&](std::size_t c) {
    const SimulatedRank& rank = w.ranks()[c];
    ClassResult& result = prediction.classes[c];
    result.class_id = static_cast<std::uint32_t>(c);
    result.representative = rank.rank;
    result.ranks = folding.ranks[c];
    result.time = account(w, alone, times, result.class_id, prediction.step, &exposed_of_class[c]);
    result.lifetimes = lifetimes.at(w.shape_of(rank).id);
    if (options.record_events) result.events = events_of(w, times, rank);
  });
  prediction.communication = communication_use(w, times, folding, exposed_of_class);
  prediction.tiers = tier_use(w, times, folding, vendor_rates, prediction.step, engine.contention);
  return prediction;
}

Simulation::Simulation(const program::CheckedProgram& p, const CostModel& costs, bool fold)
    : parts_(std::make_unique<const Parts>(p, costs, fold)) {}
Simulation::~Simulation() = default;
Simulation::Simulation(Simulation&&) noexcept = default;

Prediction Simulation::run(const SimOptions& options) const {
  const EngineOptions engine = engine_options(options);
  return parts_->predict(options, engine, run_engine(parts_->workload, engine));
}

Duration Simulation::step(const SimOptions& options) const {
  return step_of(run_engine(parts_->workload, engine_options(options)));
}

std::vector<Duration> Simulation::jittered_steps(const JitterOptions& jitter, const SimOptions& options,
                                                 unsigned threads) const {
  CHECK(parts_->folding.representative.size() == parts_->folding.class_of_rank.size(), "jitter needs every rank");
  std::vector<Duration> steps(static_cast<std::size_t>(jitter.samples));
  parallel_on(threads, steps.size(), [&](std::size_t i) {
    EngineOptions engine = engine_options(options);
    engine.jitter = JitterDraw{jitter, i};
    steps[i] = step_of(run_engine(parts_->workload, engine));
  });
  return steps;
}

std::uint64_t Simulation::op_count() const { return parts_->workload.op_count(); }

std::size_t Simulation::class_count() const { return parts_->workload.ranks().size(); }

std::vector<Free> Simulation::communication_kinds() const {
  std::set<Exposed> kinds;
  for (const Lane& lane : parts_->workload.lanes()) kinds.insert(lane.exposed);
  std::vector<Free> free;
  for (const Exposed kind : kinds) free.push_back(free_of(kind));
  return free;
}

Prediction simulate(const program::CheckedProgram& p, const CostModel& costs, const SimOptions& options) {
  return Simulation(p, costs, options.fold).run(options);
}

Prediction relax(const program::CheckedProgram& p, const CostModel& costs, const SimOptions& options) {
  const Simulation::Parts parts(p, costs, options.fold);
  EngineOptions engine = engine_options(options);
  engine.contention = false;
  return parts.predict(options, engine, relax_times(parts.workload, engine));
}

trace::Trace to_trace(const Prediction& prediction, const program::CheckedProgram& p) {
  trace::Trace trace;
  trace.source = "sim";
  trace.fingerprint = p.fingerprint();
  trace.step = prediction.step;
  trace.class_of_rank = prediction.class_of_rank;
  for (const ClassResult& result : prediction.classes) {
    trace::Track track;
    track.rank = result.representative.value;
    track.class_id = result.class_id;
    track.ranks = result.ranks;
    track.name = p.program().rank_programs[p.program().ranks[result.representative].program].name;
    track.events = result.events;
    track.memory = memory_of(result);
    track.class_peak = result.lifetimes.class_peak;
    track.peak = result.lifetimes.peak;
    trace.tracks.push_back(std::move(track));
  }
  return trace;
}

}  // namespace stepcast::sim
