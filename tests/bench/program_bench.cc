// What happens to a Program before it is simulated: lowering, structure, resolution, lifetimes, fingerprint, the whole
// check. Arguments are ranks; the ops of a rank do not depend on their number.
#include <benchmark/benchmark.h>

#include <utility>

#include "plan/lowering.h"
#include "program/check.h"
#include "program/lifetimes.h"
#include "tests/bench/large_scenario.h"

namespace stepcast::bench {
namespace {

void lower(benchmark::State& state) {
  const plan::Scenario scenario = large_scenario(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(plan::lower(scenario));
}

// Takes its Program by value; the copy is not timed, and nor is dropping the result.
void check(benchmark::State& state) {
  const program::Program p = plan::lower(large_scenario(state.range(0)));
  for (auto _ : state) {
    state.PauseTiming();
    {
      program::Program copy = p;
      state.ResumeTiming();
      const program::CheckedProgram checked(std::move(copy));
      benchmark::DoNotOptimize(checked.fingerprint());
      state.PauseTiming();
    }
    state.ResumeTiming();
  }
}

void resolve(benchmark::State& state) {
  const program::Program p = plan::lower(large_scenario(state.range(0)));
  std::int64_t ops = 0;
  for (auto _ : state) {
    for (const program::RankProgram& r : p.rank_programs) ops += program::resolve(p, r).op_count();
  }
  state.SetItemsProcessed(ops);
}

void lifetimes(benchmark::State& state) {
  const program::CheckedProgram checked(plan::lower(large_scenario(state.range(0))));
  const program::Program& p = checked.program();
  std::int64_t ops = 0;
  for (auto _ : state) {
    for (std::size_t i = 0; i < p.rank_programs.size(); ++i) {
      const program::RankProgramId r(i);
      benchmark::DoNotOptimize(program::derive_lifetimes(p, p.rank_programs[r], checked.resolution(r)).peak);
      ops += checked.resolution(r).op_count();
    }
  }
  state.SetItemsProcessed(ops);
}

void fingerprint(benchmark::State& state) {
  const program::Program p = plan::lower(large_scenario(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(program::fingerprint(p));
}

constexpr std::int64_t kLargeProgram = 16384;
constexpr std::int64_t kLargestProgram = 131072;

// The check uses threads: what a user waits for is the real time.
BENCHMARK(lower)->Arg(kLargeProgram)->Arg(kLargestProgram)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(check)->Arg(kLargeProgram)->Arg(kLargestProgram)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(resolve)->Arg(kLargeProgram)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(lifetimes)->Arg(kLargeProgram)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(fingerprint)->Arg(kLargeProgram)->Arg(kLargestProgram)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace stepcast::bench
