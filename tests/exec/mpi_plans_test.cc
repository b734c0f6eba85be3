// Plans executed by processes, one rank each, have the bits of the same plans executed by threads: losses, gradients,
// op ids and bytes per memory class. Run by mpirun; every process runs all plans, of up to as many ranks as there are
// processes, and process 0 compares.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "exec/mpi/mpi_world.h"
#include "exec/thread_communicator.h"
#include "tests/exec/plan_runs.h"
#include "tests/plan/plan_table.h"
#include "tests/plan/random_plan.h"
#include "tests/random_cases.h"
#include "trace/pack.h"

namespace stepcast::exec {
namespace {

using plan::testing::TinyPlan;

MpiWorld* world = nullptr;  // of all tests: MPI starts once in a process

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// What a rank knows after a step: gradients of all parameters with NaN where it holds none, and its track.
struct Told {
  std::string loss;
  std::string gradients;
  std::string track;
};

Told told_by(Executor& executor, const StepResult& result, const program::Program& p) {
  Told told;
  if (result.loss) told.loss.assign(reinterpret_cast<const char*>(&*result.loss), sizeof *result.loss);
  for (std::size_t i = 0; i < p.parameters.size(); ++i) {
    told.gradients += bytes_of(executor.gather_parameter(program::ParameterId(i), program::ShardKind::kGradient));
  }
  told.track = trace::pack(executor.last_trace().tracks.at(0));
  return told;
}

// Gradients of one rank against those of an executor of all of them: how many elements the rank holds. A stage may have
// no parameter.
void compare_gradients(const std::string& told, Executor& threads, const program::Program& p, const std::string& where,
                       std::size_t& compared) {
  std::string whole;
  for (std::size_t i = 0; i < p.parameters.size(); ++i) {
    whole += bytes_of(threads.gather_parameter(program::ParameterId(i), program::ShardKind::kGradient));
  }
  ASSERT_EQ(told.size(), whole.size()) << where;
  for (std::size_t at = 0; at < told.size(); at += sizeof(float)) {
    float own = 0;
    float want = 0;
    std::memcpy(&own, told.data() + at, sizeof own);
    std::memcpy(&want, whole.data() + at, sizeof want);
    if (std::isnan(own)) continue;
    ++compared;
    ASSERT_EQ(own, want) << where << ", element " << at / sizeof(float);
  }
}

void expect_same_track(const trace::Track& processes, const trace::Track& threads, const std::string& where) {
  ASSERT_EQ(processes.events.size(), threads.events.size()) << where;
  for (std::size_t i = 0; i < threads.events.size(); ++i) {
    ASSERT_EQ(processes.events[i].id, threads.events[i].id) << where << ", event " << i;
    ASSERT_GE(processes.events[i].transfer, processes.events[i].begin) << where << ", event " << i;
    ASSERT_GE(processes.events[i].end, processes.events[i].transfer) << where << ", event " << i;
  }
  EXPECT_EQ(processes.class_peak, threads.class_peak) << where;
  EXPECT_EQ(processes.peak, threads.peak) << where;
}

// Processes beyond the plan's ranks have nothing to do but to gather with the others.
void expect_bits_of_threads(const plan::Scenario& scenario) {
  const program::CheckedProgram checked(plan::lower(scenario));
  const program::Program& p = checked.program();
  const auto ranks = static_cast<int>(p.ranks.size());
  ASSERT_LE(ranks, world->size());
  ExecOptions options;
  options.poison = true;
  options.watchdog = Duration(30'000'000'000'000);
  std::unique_ptr<Executor> own;
  if (world->rank() < ranks) {
    options.ranks = {program::RankId(static_cast<std::size_t>(world->rank()))};
    options.communicators = world->communicators(p);
    own = std::make_unique<Executor>(checked, options);
  }
  ExecOptions alone = options;
  alone.ranks = {};
  alone.communicators = nullptr;
  std::unique_ptr<Executor> threads;
  if (world->rank() == 0) threads = std::make_unique<Executor>(checked, alone);
  for (int step = 0; step < 2; ++step) {
    Told told;
    if (own) told = told_by(*own, own->run_step(), p);
    const std::vector<std::string> losses = world->gather(told.loss);
    const std::vector<std::string> gradients = world->gather(told.gradients);
    const std::vector<std::string> tracks = world->gather(told.track);
    if (!threads) continue;
    const StepResult want = threads->run_step();
    std::size_t compared = 0;
    for (std::size_t r = 0; r < p.ranks.size(); ++r) {
      const std::string where = scenario.name + " rank " + std::to_string(r) + " step " + std::to_string(step + 1);
      if (!losses[r].empty()) {
        EXPECT_EQ(losses[r], std::string(reinterpret_cast<const char*>(&*want.loss), sizeof *want.loss)) << where;
      }
      compare_gradients(gradients[r], *threads, p, where, compared);
      expect_same_track(trace::unpack(tracks[r]), threads->last_trace().tracks[r], where);
    }
    EXPECT_GT(compared, 0U) << scenario.name;
  }
}

class ProcessPlans : public ::testing::TestWithParam<TinyPlan> {};

TEST_P(ProcessPlans, HaveTheBitsOfThreads) {
  expect_bits_of_threads(plan::testing::make_scenario(plan::testing::TinyShape{}, GetParam()));
}

// Of the plans that tests/property/random_plans_test.cc holds against the single rank and the simulation, as threads.
TEST(RandomProcessPlans, HaveTheBitsOfThreadsWithoutAHang) {
  for (std::uint64_t i = 0; i < stepcast::testing::random_cases(20); ++i) {
    SCOPED_TRACE("plan " + std::to_string(i));
    plan::Scenario scenario = plan::testing::random_scenario(20261129, i);
    if (i % 4 == 3) {
      scenario.training.compute = program::DType::kBf16;
      scenario.training.master_weights = true;
    }
    expect_bits_of_threads(scenario);
  }
}

// Every eighth plan of the table: each of its families in several degrees. STEPCAST_ALL_PLANS: all of them.
std::vector<TinyPlan> sampled_table() {
  const std::vector<TinyPlan> table = plan::testing::plan_table();
  const bool all = std::getenv("STEPCAST_ALL_PLANS") != nullptr;  // NOLINT(concurrency-mt-unsafe)
  std::vector<TinyPlan> plans;
  for (std::size_t i = 0; i < table.size(); i += all ? 1 : 8) plans.push_back(table[i]);
  return stepcast::testing::sampled(plans);
}

INSTANTIATE_TEST_SUITE_P(Table, ProcessPlans, ::testing::ValuesIn(sampled_table()),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace stepcast::exec

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  stepcast::exec::MpiWorld world;
  stepcast::exec::world = &world;
  if (world.rank() != 0)
    delete ::testing::UnitTest::GetInstance()->listeners().Release(
        ::testing::UnitTest::GetInstance()->listeners().default_result_printer());
  return RUN_ALL_TESTS();
}
