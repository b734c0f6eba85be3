// The simulation of a checked Program: folding, laying out the workload, the engine with and without contention, its
// oracle, and everything a command asks for. Items are ops completed on a simulated rank.
#include <benchmark/benchmark.h>

#include <memory>

#include "plan/lowering.h"
#include "program/check.h"
#include "sim/cost/analytic.h"
#include "sim/engine/engine.h"
#include "sim/folding.h"
#include "sim/prediction.h"
#include "tests/bench/large_scenario.h"
#include "tests/sim/shipped_calibration.h"

namespace stepcast::bench {
namespace {

// A Program with its prices.
struct Job {
  explicit Job(const plan::Scenario& scenario)
      : program(plan::lower(scenario)), costs(scenario.cluster, testing::shipped_calibration("h100-default")) {}

  program::CheckedProgram program;
  sim::AnalyticCostModel costs;
};

void fold(benchmark::State& state) {
  const Job job(large_scenario(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(sim::fold(job.program, job.costs).ranks.size());
}

void workload(benchmark::State& state) {
  const Job job(large_scenario(state.range(0)));
  const sim::Folding folding = sim::fold(job.program, job.costs);
  for (auto _ : state) benchmark::DoNotOptimize(sim::Workload(job.program, job.costs, folding).op_count());
}

void run_engine(benchmark::State& state, const plan::Scenario& scenario, bool fold, bool contention) {
  const Job job(scenario);
  const sim::Folding folding = fold ? sim::fold(job.program, job.costs) : sim::no_fold(job.program, job.costs);
  const sim::Workload w(job.program, job.costs, folding);
  for (auto _ : state) benchmark::DoNotOptimize(sim::run_engine(w, {.contention = contention}).ops[0].end.ps);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * w.op_count());
}

void folded_alone(benchmark::State& state) { run_engine(state, large_scenario(state.range(0)), true, false); }
void folded_contended(benchmark::State& state) { run_engine(state, large_scenario(state.range(0)), true, true); }

// Every rank of a quarter of the job.
void unfolded_contended(benchmark::State& state) { run_engine(state, large_scenario(4096), false, true); }
void unfolded_alone(benchmark::State& state) { run_engine(state, large_scenario(4096), false, false); }

void relaxation(benchmark::State& state) {
  const Job job(large_scenario(state.range(0)));
  const sim::Workload w(job.program, job.costs, sim::fold(job.program, job.costs));
  for (auto _ : state) benchmark::DoNotOptimize(sim::relax_times(w, {.contention = false}).ops[0].end.ps);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * w.op_count());
}

void prediction(benchmark::State& state) {
  const Job job(large_scenario(state.range(0)));
  for (auto _ : state) {
    benchmark::DoNotOptimize(sim::simulate(job.program, job.costs, {.record_events = false}).step.ps);
  }
}

constexpr std::int64_t kRanks = 16384;
constexpr std::int64_t kManyRanks = 131072;

BENCHMARK(fold)->Arg(kRanks)->Arg(kManyRanks)->Unit(benchmark::kMillisecond);
BENCHMARK(workload)->Arg(kRanks)->Arg(kManyRanks)->Unit(benchmark::kMillisecond);
BENCHMARK(folded_alone)->Arg(kRanks)->Unit(benchmark::kMillisecond);
BENCHMARK(folded_contended)->Arg(kRanks)->Unit(benchmark::kMillisecond);
BENCHMARK(relaxation)->Arg(kRanks)->Unit(benchmark::kMillisecond);
BENCHMARK(prediction)->Arg(kRanks)->Arg(kManyRanks)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(unfolded_contended)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(unfolded_alone)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace stepcast::bench
