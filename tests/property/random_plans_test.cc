// Properties of the engines over random small plans. The seed is printed with every failure.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "exec/executor.h"
#include "plan/lowering.h"
#include "program/check.h"
#include "program/ops/rules.h"
#include "sim/prediction.h"
#include "tests/plan/random_plan.h"
#include "tests/property/simple_costs.h"
#include "tests/random_cases.h"

namespace stepcast {
namespace {

constexpr std::uint64_t kSeed = 20261129;

program::CheckedProgram random_program(std::uint64_t i) {
  return program::CheckedProgram(plan::lower(plan::testing::random_scenario(kSeed, i)));
}

// Costs with one kind of rate changed: `local` and `message` multiply local and communication times, in percent.
class ScaledCosts final : public sim::CostModel {
 public:
  ScaledCosts(std::int64_t local, std::int64_t message) : local_(local), message_(message) {}
  sim::DeviceClass device_class(std::int32_t d) const override { return base_.device_class(d); }
  sim::PathClass path_class(std::span<const std::int32_t> d) const override { return base_.path_class(d); }
  sim::LocalCost local_cost(const program::Op& op, std::span<const program::TensorType> t,
                            sim::DeviceClass d) const override {
    return percent(base_.local_cost(op, t, d).time, local_);
  }
  sim::TransferCost collective_cost(const program::Op& op, std::span<const program::TensorType> t, sim::PathClass p,
                                    std::int64_t n) const override {
    return percent(base_.collective_cost(op, t, p, n).time, message_);
  }
  sim::TransferCost message_cost(Bytes b, sim::PathClass p) const override {
    return percent(base_.message_cost(b, p).time, message_);
  }
  Duration launch_time(const program::Op& op) const override { return base_.launch_time(op); }
  Duration graph_launch_time() const override { return base_.graph_launch_time(); }

 private:
  static Duration percent(Duration d, std::int64_t p) { return Duration(d.ps * p / 100); }
  testing::SimpleCosts base_;
  std::int64_t local_, message_;
};

// The engine and its oracle, folded and not, on 1,000 plans.
TEST(RandomPlans, EngineEqualsRelaxationAndFoldingIsExact) {
  const testing::SimpleCosts costs;
  for (std::uint64_t i = 0; i < testing::random_cases(1000); ++i) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + " plan " + std::to_string(i));
    const program::CheckedProgram p = random_program(i);
    const testing::SimpleCosts uneven(/*slow_device=*/static_cast<std::int32_t>(i % 8));
    const sim::CostModel& model = i % 2 == 0 ? static_cast<const sim::CostModel&>(costs) : uneven;
    const sim::Prediction folded = sim::simulate(p, model, {});
    const sim::Prediction every = sim::simulate(p, model, {.fold = false});
    const sim::Prediction relaxed = sim::relax(p, model, {.fold = false});
    ASSERT_EQ(every.step, relaxed.step);
    ASSERT_EQ(folded.step, every.step);
    for (std::size_t r = 0; r < p.program().ranks.size(); ++r) {
      const sim::ClassResult& e = every.classes[every.class_of_rank[r]];
      ASSERT_TRUE(e.events == relaxed.classes[relaxed.class_of_rank[r]].events) << "rank " << r;
      ASSERT_TRUE(e.events == folded.classes[folded.class_of_rank[r]].events) << "rank " << r;
    }
  }
}

// A step is never shorter than any stream's own work, and the parts of every rank's step sum to it.
TEST(RandomPlans, StepCoversEveryStreamAndPartsSum) {
  const testing::SimpleCosts costs;
  for (std::uint64_t i = 0; i < testing::random_cases(300); ++i) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + " plan " + std::to_string(i));
    const program::CheckedProgram p = random_program(i);
    const sim::Prediction prediction = sim::simulate(p, costs, {});
    for (const sim::ClassResult& c : prediction.classes) {
      std::map<int, std::int64_t> busy;
      for (const trace::Event& e : c.events) busy[e.stream] += (e.end - e.transfer).ps;
      for (const auto& [stream, ps] : busy) ASSERT_LE(ps, prediction.step.ps) << "stream " << stream;
      ASSERT_EQ(c.time.sum(), prediction.step);
      // The compute stream's work is what the accounting calls compute and optimizer.
      ASSERT_EQ((c.time.compute + c.time.optimizer).ps, busy[static_cast<int>(program::Stream::kCompute)]);
    }
  }
}

// Without contention, a faster device or a faster link never slows a step.
TEST(RandomPlans, FasterPartsNeverSlowAStep) {
  for (std::uint64_t i = 0; i < testing::random_cases(200); ++i) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + " plan " + std::to_string(i));
    const program::CheckedProgram p = random_program(i);
    const auto step = [&](std::int64_t local, std::int64_t message) {
      return sim::simulate(p, ScaledCosts(local, message), {.record_events = false}).step;
    };
    const Duration base = step(100, 100);
    ASSERT_LE(step(80, 100), base);
    ASSERT_LE(step(100, 50), base);
    ASSERT_LE(step(50, 50), base);
    ASSERT_GE(step(100, 130), base);
  }
}

// Every byte sent is received: per ordered pair of ranks, role and channel.
TEST(RandomPlans, EveryByteSentIsReceived) {
  for (std::uint64_t i = 0; i < testing::random_cases(300); ++i) {
    const program::CheckedProgram checked = random_program(i);
    const program::Program& p = checked.program();
    std::map<std::tuple<std::uint32_t, std::uint32_t, int>, std::int64_t> balance;
    for (std::size_t r = 0; r < p.ranks.size(); ++r) {
      const program::Rank& rank = p.ranks[program::RankId(r)];
      for (const program::Call& call : p.rank_programs[rank.program].calls) {
        const program::Segment& segment = p.segments[call.segment];
        for (const program::Op& op : segment.ops) {
          for (const program::P2pPart& part : op.parts) {
            const program::Membership& m = program::membership(p, program::RankId(r), part.role);
            const auto& members = p.groups[m.group].members;
            const auto n = static_cast<std::int64_t>(members.size());
            const auto peer = members[static_cast<std::size_t>((m.index + n + part.offset) % n)].value;
            const auto self = static_cast<std::uint32_t>(r);
            const std::int64_t bytes = segment.type_of(op.operands[part.operand]).bytes();
            const auto key = part.send ? std::tuple(self, peer, static_cast<int>(part.channel))
                                       : std::tuple(peer, self, static_cast<int>(part.channel));
            balance[key] += part.send ? bytes : -bytes;
          }
        }
      }
    }
    for (const auto& [key, bytes] : balance) ASSERT_EQ(bytes, 0) << "plan " << i;
  }
}

// Real execution of 200 plans under a watchdog that would print each rank's current call. Bytes equal the derived ones.
TEST(RandomPlans, ExecuteWithoutAHang) {
  exec::ExecOptions options;
  options.watchdog = Duration(20'000'000'000'000);  // 20 s
  for (std::uint64_t i = 0; i < testing::random_cases(200); ++i) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + " plan " + std::to_string(i));
    const program::CheckedProgram p = random_program(i);
    exec::Executor executor(p, options);
    const exec::StepResult result = executor.run_step();
    ASSERT_TRUE(result.loss.has_value());
    ASSERT_NEAR(*result.loss, 3.4657, 0.1);  // log(32): initial weights are small
    for (const trace::Track& track : executor.last_trace().tracks) {
      const program::Rank& rank = p.program().ranks[program::RankId(track.rank)];
      const auto& rank_program = p.program().rank_programs[rank.program];
      const program::Lifetimes l = program::derive_lifetimes(p.program(), rank_program, p.resolution(rank.program));
      ASSERT_EQ(track.peak, l.peak);
      ASSERT_TRUE(std::equal(track.class_peak.begin(), track.class_peak.end(), l.class_peak.begin()));
    }
  }
}

}  // namespace
}  // namespace stepcast
