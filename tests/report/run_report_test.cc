// Comparisons of `run`: gradient errors, engine checks, overlap, medians.
#include "report/run_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace stepcast::report {
namespace {

TEST(GradientError, IsRelativeToTheReferencesNorm) {
  // |(3,4)| = 5, the difference is (0, 0.005): 0.001.
  const std::vector<float> reference = {3, 4};
  const std::vector<float> other = {3, 4.005F};
  EXPECT_NEAR(gradient_error(other, reference, 5), 1e-3, 1e-7);
  EXPECT_EQ(gradient_error(reference, reference, 5), 0);
}

TEST(GradientError, HasAFloorForTinyGradients) {
  // The reference is zero; the floor is 1e-4 of the global norm 100, so 0.001 / 0.01 = 0.1.
  const std::vector<float> reference = {0};
  const std::vector<float> other = {0.001F};
  EXPECT_NEAR(gradient_error(other, reference, 100), 0.1, 1e-7);
}

TEST(GradientError, FailsOnElementsNobodyHolds) {
  const std::vector<float> reference = {1, 2};
  const std::vector<float> other = {1, std::numeric_limits<float>::quiet_NaN()};
  const double error = gradient_error(other, reference, 1);
  EXPECT_TRUE(std::isnan(error));
  ReferenceComparison c;
  c.bounds = bounds_for(program::DType::kF32);
  EXPECT_TRUE(c.passes());
  c.gradient_error = error;
  EXPECT_FALSE(c.passes());
}

trace::Trace one_rank(const std::string& source) {
  trace::Trace t;
  t.source = source;
  t.class_of_rank = {0};
  trace::Track track;
  track.peak = 10;
  track.class_peak = {4, 6, 0, 0, 0};
  trace::Event e;
  e.end = SimTime(10);
  track.events = {e};
  t.tracks = {track};
  return t;
}

TEST(EngineChecks, PassWhenOpsAndBytesAgree) {
  const EngineChecks checks = check_engines(one_rank("exec"), one_rank("sim"));
  EXPECT_TRUE(checks.passes());
  EXPECT_EQ(checks.measured_ops, 1);
  EXPECT_EQ(checks.simulated_peak, 10);
}

TEST(EngineChecks, NameTheRankAndClassThatDiffers) {
  trace::Trace measured = one_rank("exec");
  measured.tracks[0].class_peak[1] = 7;
  const EngineChecks checks = check_engines(measured, one_rank("sim"));
  EXPECT_FALSE(checks.passes());
  ASSERT_EQ(checks.memory_differences.size(), 1U);
  EXPECT_EQ(checks.memory_differences[0], "rank 0 gradients: 7 B measured, 6 B simulated");
}

TEST(EngineChecks, CountOpsOfOneSideOnly) {
  trace::Trace measured = one_rank("exec");
  measured.tracks[0].events.clear();
  const EngineChecks checks = check_engines(measured, one_rank("sim"));
  EXPECT_EQ(checks.unmatched_ops, 1);
  EXPECT_FALSE(checks.passes());
}

TEST(Overlap, IsTheShareOfTransfersUnderCompute) {
  trace::Trace t = one_rank("exec");
  const auto add = [&t](program::Stream stream, std::int64_t transfer, std::int64_t end) {
    trace::Event e;
    e.stream = static_cast<std::uint8_t>(stream);
    e.begin = e.transfer = SimTime(transfer);
    e.end = SimTime(end);
    t.tracks[0].events.push_back(e);
  };
  EXPECT_EQ(beside_compute(t, {program::Stream::kDp}), std::nullopt);
  // Compute is busy in [0,10) and [20,30); the transfers [5,15) and [18,28) overlap it by 5 + 8 of 20.
  add(program::Stream::kCompute, 20, 30);
  add(program::Stream::kDp, 5, 15);
  add(program::Stream::kDp, 18, 28);
  EXPECT_DOUBLE_EQ(*beside_compute(t, {program::Stream::kDp}), 0.65);
}

TEST(RunReport, LeavesTheFirstStepOutOfTheMedian) {
  RunReport r;
  r.steps = {{.step_time_s = 9}, {.step_time_s = 1}, {.step_time_s = 2}, {.step_time_s = 4}};
  EXPECT_EQ(r.median_step_time_s(), 2);
  r.steps.resize(1);
  EXPECT_EQ(r.median_step_time_s(), 9);
}

TEST(RunReport, HasTheContractsJsonKeys) {
  RunReport r;
  r.steps = {{.step_time_s = 0.5, .loss = 6.25, .reference_loss = 6.25, .gradient_error = 1e-6}};
  r.reference = ReferenceComparison{.bounds = bounds_for(program::DType::kF32), .gradient_error = 1e-6};
  const auto json = nlohmann::json::parse(run_json(r));
  for (const char* key :
       {"backend", "ranks", "steps", "median_step_time_s", "allocated_bytes", "loss_error", "gradient_error"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["steps"][0]["loss"], 6.25);
  EXPECT_EQ(json["passes"], true);
}

}  // namespace
}  // namespace stepcast::report
