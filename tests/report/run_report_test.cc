// Comparisons of `run`: gradient errors, engine checks, overlap, medians.
#include "report/run_report.h"

#include <gtest/gtest.h>

#include <cmath>

#include <limits>
#include <nlohmann/json.hpp>

namespace stepcast::report {
namespace {

TEST(GradientErrors, AreRelativeToNorms) {
  // |(3, 4)| = 5, the difference is (0, 0.005): 0.001 of its own norm. Together: 0.005 of |(3, 4, 12)| = 13.
  const Gradients reference = {{"a", {3, 4}}, {"b", {12}}};
  const GradientErrors errors = gradient_errors({{"a", {3, 4.005F}}, {"b", {12}}}, reference);
  EXPECT_NEAR(errors.worst, 1e-3, 1e-7);
  EXPECT_EQ(errors.worst_parameter, "a");
  EXPECT_NEAR(errors.together, 0.005 / 13, 1e-7);
  EXPECT_EQ(gradient_errors(reference, reference).worst, 0);
  EXPECT_EQ(gradient_errors(reference, reference).together, 0);
}

TEST(GradientErrors, HaveAFloorForTinyGradients) {
  // The reference of b is zero; the floor is 1e-4 of the global norm 100, so 0.001 / 0.01 = 0.1.
  const GradientErrors errors = gradient_errors({{"a", {100}}, {"b", {0.001F}}}, {{"a", {100}}, {"b", {0}}});
  EXPECT_NEAR(errors.worst, 0.1, 1e-7);
  EXPECT_EQ(errors.worst_parameter, "b");
}

TEST(GradientErrors, FailOnElementsNobodyHolds) {
  const GradientErrors errors =
      gradient_errors({{"a", {1, std::numeric_limits<float>::quiet_NaN()}}, {"b", {3}}}, {{"a", {1, 2}}, {"b", {2}}});
  EXPECT_TRUE(std::isnan(errors.worst));
  EXPECT_EQ(errors.worst_parameter, "a");
  for (const std::int64_t step : {1, 2}) {
    ReferenceComparison c;
    c.bounds = bounds_for(program::DType::kF32);
    EXPECT_TRUE(c.passes());
    c.add(step, 1, 1, errors);
    EXPECT_FALSE(c.passes());
    EXPECT_NE(c.faults().find("at step " + std::to_string(step) + " (worst a)"), std::string::npos) << c.faults();
  }
}

// Step 1 by parameter, later steps by all of them together, up to the third.
TEST(ReferenceComparison, JudgesLaterStepsTogether) {
  ReferenceComparison c;
  c.bounds = {1e-5, 1e-4, 1e-3};
  c.add(1, 2, 2, {9e-5, "a", 1e-9});
  c.add(2, 2, 2.00001, {0.5, "b", 9e-4});
  c.add(3, 2, 2, {0.1, "c", 1e-4});
  EXPECT_TRUE(c.passes()) << c.faults();
  EXPECT_EQ(c.later_parameter, "b");
  ReferenceComparison first = c;
  first.add(1, 2, 2, {2e-4, "a", 1e-9});
  EXPECT_EQ(first.faults(), "gradients 2.0e-04 at step 1 (worst a)");
  ReferenceComparison later = c;
  later.add(3, 2, 2.001, {0.1, "c", 2e-3});
  EXPECT_EQ(later.faults(), "loss 5.0e-04 at step 3, gradients together 2.0e-03 at step 3 (worst c)");
  c.add(4, 2, 3, {9, "d", 9});
  EXPECT_TRUE(c.passes());
}

// Where one rank alone gets worse than its first guess, rounding decides what plans do.
TEST(RunReport, TellsTrainingThatDiverges) {
  RunReport r;
  const auto step = [](double loss) { return RunStep{.step_time_s = 1, .loss = loss, .reference_loss = loss}; };
  r.steps = {step(5.5), step(5.9), step(5.4)};
  EXPECT_EQ(r.divergence(), std::nullopt);
  r.steps[1] = step(6.1);  // above 1.1 * 5.5 = 6.05
  EXPECT_EQ(r.divergence(), "5.5 at step 1, 6.1 at step 2");
  r.steps[1] = step(std::nan(""));
  EXPECT_EQ(r.divergence(), "5.5 at step 1, nan at step 2");
  r.steps = {step(5.5), step(5.5), step(5.5), step(99)};  // later steps are not judged
  EXPECT_EQ(r.divergence(), std::nullopt);
  r.steps = {RunStep{.step_time_s = 1, .loss = 1e9}};  // no reference
  EXPECT_EQ(r.divergence(), std::nullopt);
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
