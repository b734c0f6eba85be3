// Plans executed on devices have the bits of the same plans executed by threads: losses, gradients, op ids and bytes
// per memory class. The devices work in random order (fake_device.h), so that a wait which is missing, or a block that
// is given away too early, shows.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/exec/fake_device.h"
#include "tests/exec/plan_runs.h"
#include "tests/plan/plan_table.h"
#include "tests/random_cases.h"

namespace stepcast::exec {
namespace {

using plan::testing::TinyPlan;
using plan::testing::TinyShape;

// NaN equals NaN: no rank holds such an element.
void expect_same_values(const std::vector<float>& want, const std::vector<float>& got, const std::string& where) {
  ASSERT_EQ(want.size(), got.size()) << where;
  for (std::size_t i = 0; i < want.size(); ++i) {
    ASSERT_TRUE(want[i] == got[i] || (std::isnan(want[i]) && std::isnan(got[i])))
        << where << " element " << i << ": " << want[i] << " and " << got[i];
  }
}

void expect_same_track(const trace::Track& want, const trace::Track& got) {
  EXPECT_EQ(want.class_peak, got.class_peak) << want.rank;
  EXPECT_EQ(want.peak, got.peak) << want.rank;
  ASSERT_EQ(want.events.size(), got.events.size());
  ASSERT_EQ(want.memory.size(), got.memory.size());
  std::array<SimTime, program::kStreamCount> free{};
  for (std::size_t i = 0; i < want.events.size(); ++i) {
    const trace::Event& event = got.events[i];
    EXPECT_EQ(want.events[i].id, event.id);
    EXPECT_EQ(want.events[i].stream, event.stream);
    EXPECT_EQ(want.memory[i].class_bytes, got.memory[i].class_bytes);
    EXPECT_TRUE(event.issue <= event.begin && event.begin <= event.end) << i;
    EXPECT_LE(free[event.stream], event.begin) << i;
    free[event.stream] = event.end;
  }
}

// `graphs`: every rank program's calls are marked as graphs of so many calls.
void expect_same_bits(plan::Scenario scenario, const fake::FakeOptions& options, std::uint32_t graph = 0) {
  program::Program program = plan::lower(scenario);
  for (std::size_t i = 0; graph > 0 && i < program.rank_programs.size(); ++i) {
    program::RankProgram& r = program.rank_programs[program::RankProgramId(i)];
    const auto calls = static_cast<std::uint32_t>(r.calls.size());
    for (std::uint32_t c = 0; c < calls; c += graph) r.graphs.push_back({c, std::min(c + graph, calls)});
  }
  const program::CheckedProgram checked(std::move(program));
  ExecOptions exec_options{.watchdog = Duration(20'000'000'000'000), .poison = true};
  Executor threads(checked, exec_options);
  fake::FakeHub hub(options);
  DeviceExecutor devices(checked, exec_options, hub.devices());
  for (int step = 0; step < kSteps; ++step) {
    const StepResult want = threads.run_step();
    const StepResult got = devices.run_step();
    ASSERT_TRUE(want.loss && got.loss);
    EXPECT_EQ(*want.loss, *got.loss) << "step " << step + 1;
    for (std::size_t i = 0; i < checked.program().parameters.size(); ++i) {
      const program::ParameterId id(i);
      expect_same_values(threads.gather_parameter(id, program::ShardKind::kGradient),
                         devices.gather_parameter(id, program::ShardKind::kGradient),
                         checked.program().parameters[id].name + " step " + std::to_string(step + 1));
    }
    ASSERT_EQ(threads.last_trace().tracks.size(), devices.last_trace().tracks.size());
    for (std::size_t r = 0; r < threads.last_trace().tracks.size(); ++r) {
      expect_same_track(threads.last_trace().tracks[r], devices.last_trace().tracks[r]);
    }
    EXPECT_EQ(got.time, devices.last_trace().step);
  }
  EXPECT_TRUE(graph > 0 || hub.graphs().empty());
}

// Every fourth plan of the table: each of its families in several degrees.
std::vector<TinyPlan> sampled_table() {
  std::vector<TinyPlan> plans;
  const std::vector<TinyPlan> table = plan::testing::plan_table();
  for (std::size_t i = 0; i < table.size(); i += 4) plans.push_back(table[i]);
  return stepcast::testing::sampled(plans);
}

class DevicePlans : public ::testing::TestWithParam<TinyPlan> {};

TEST_P(DevicePlans, HaveTheBitsOfThreads) {
  expect_same_bits(plan::testing::make_scenario(TinyShape{}, GetParam()), {.seed = 1});
}

// The hosts are a whole step ahead: blocks are reused by what is known of waits alone.
TEST_P(DevicePlans, HaveTheBitsOfThreadsWhenTheDeviceIsLate) {
  expect_same_bits(plan::testing::make_scenario(TinyShape{}, GetParam()), {.seed = 2, .late = true});
}

TEST_P(DevicePlans, HaveTheBitsOfThreadsInGraphs) {
  expect_same_bits(plan::testing::make_scenario(TinyShape{}, GetParam()), {.seed = 3}, 3);
}

INSTANTIATE_TEST_SUITE_P(Table, DevicePlans, ::testing::ValuesIn(sampled_table()),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace stepcast::exec
