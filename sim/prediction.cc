// From times to a Prediction: accounting and memory per class, and the trace that both engines share.
#include "sim/prediction.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "sim/accounting.h"
#include "sim/engine/engine.h"

namespace stepcast::sim {
namespace {

static_assert(std::is_same_v<decltype(trace::MemorySample::class_bytes), program::ClassBytes>);

// An exchange starts and ends its messages one by one; its transfer is the latest partner's start over all of them.
SimTime transfer_of(const Workload& w, const Timeline& times, std::uint32_t op) {
  SimTime start = times.begin[op];
  for (const std::uint32_t t : w.transfers_of(op)) start = std::max(start, times.transfer_start[t]);
  return start;
}

std::vector<trace::Event> events_of(const Workload& w, const Timeline& times, const SimulatedRank& rank) {
  const RankShape& shape = w.shape_of(rank);
  std::vector<trace::Event> events(shape.op_count());
  for (std::uint32_t i = 0; i < shape.op_count(); ++i) {
    const std::uint32_t call = shape.resolution->call_of[i];
    const std::uint32_t op = rank.first_op + i;
    events[i].id = trace::OpId{call, i - shape.resolution->first_op[call]};
    events[i].stream = static_cast<std::uint8_t>(shape.ops[i]->stream);
    events[i].issue = times.issue[op];
    events[i].begin = times.begin[op];
    events[i].transfer = transfer_of(w, times, op);
    events[i].end = times.end[op];
  }
  return events;
}

Prediction predict(const program::CheckedProgram& p, const CostModel& costs, const SimOptions& options,
                   Timeline (*run)(const Workload&)) {
  const Folding folding = options.fold ? fold(p, costs) : no_fold(p);
  const Workload w(p, costs, folding);
  const Timeline times = run(w);
  Prediction prediction;
  prediction.class_of_rank = folding.class_of_rank;
  prediction.events = w.op_count();
  for (const SimTime end : times.end) prediction.step = std::max(prediction.step, Duration(end.ps));
  std::map<std::uint32_t, SharedLifetimes> lifetimes;  // by shape
  for (std::uint32_t c = 0; c < w.ranks().size(); ++c) {
    const SimulatedRank& rank = w.ranks()[c];
    const RankShape& shape = w.shape_of(rank);
    const auto [memory, is_new] = lifetimes.try_emplace(rank.shape);
    if (is_new) memory->second = program::derive_lifetimes(p.program(), *shape.program, *shape.resolution);
    ClassResult result;
    result.class_id = c;
    result.representative = rank.rank;
    result.ranks = folding.ranks[c];
    result.time = account(w, times, c, prediction.step);
    result.lifetimes = memory->second;
    if (options.record_events) result.events = events_of(w, times, rank);
    prediction.classes.push_back(std::move(result));
  }
  return prediction;
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

Prediction simulate(const program::CheckedProgram& p, const CostModel& costs, const SimOptions& options) {
  return predict(p, costs, options, run_engine);
}

Prediction relax(const program::CheckedProgram& p, const CostModel& costs, const SimOptions& options) {
  return predict(p, costs, options, relax_times);
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
