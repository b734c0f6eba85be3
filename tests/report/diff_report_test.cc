// Whole means that sum to the step, and what a diff makes of two results.
#include "report/diff_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/report/by_hand.h"

namespace stepcast::report {
namespace {

// Three ranks of a step of 100 ps: 34 + 66, 33 + 67 and 33 + 67 are means of 100/3 and 200/3, so one of the two parts
// gets the picosecond that rounding down would lose: the bubble, whose remainder 2/3 is the larger.
TEST(MeanParts, SumToTheStep) {
  sim::Prediction prediction;
  prediction.step = Duration(100);
  for (const std::int64_t compute : {34, 33, 33}) {
    sim::ClassResult result;
    result.ranks = 1;
    result.time.compute = Duration(compute);
    result.time.bubble = Duration(100 - compute);
    prediction.classes.push_back(result);
  }
  const sim::TimeParts parts = mean_parts(prediction);
  EXPECT_EQ(parts.compute.ps, 33);
  EXPECT_EQ(parts.bubble.ps, 67);
  EXPECT_EQ(parts.sum(), prediction.step);
}

DiffSide side(const sim::Prediction& predicted, const program::CheckedProgram& p,
              std::vector<plan::ConfigValue> values) {
  const plan::Scenario s = scenario();
  return {.subject = "by hand",
          .report = make_simulation_report({.scenario = s,
                                            .program = p,
                                            .prediction = predicted,
                                            .calibration = {"none", 0, "no kernels"},
                                            .warnings = {},
                                            .published = {}}),
          .parts = mean_parts(predicted),
          .values = std::move(values)};
}

TEST(Diff, ExplainsTheDifferenceByPartsOfTime) {
  using literals::operator""_us;
  const program::CheckedProgram p = matmul_program();
  const sim::Prediction a = prediction(p);
  // B: stage 1 computes 0.2 ms longer, stage 0 waits for it.
  sim::Prediction b = a;
  b.step += 200_us;
  b.classes[1].time.compute += 200_us;
  b.classes[0].time.bubble += 200_us;
  const DiffReport diff = make_diff(side(a, p, {{"name", "x", ""}, {"plan.tp", "8", "a"}, {"plan.pp", "2", "a"}}),
                                    side(b, p, {{"plan.tp", "4", "b"}, {"plan.pp", "2", "b"}, {"plan.vp", "2", "b"}}));
  ASSERT_EQ(diff.fields.size(), 2U);
  EXPECT_EQ(diff.fields[0].field, "plan.tp");
  EXPECT_EQ(diff.fields[0].a, "8");
  EXPECT_EQ(diff.fields[0].b, "4");
  EXPECT_EQ(diff.fields[1].field, "plan.vp");
  EXPECT_EQ(diff.fields[1].a, "");
  // Half the ranks each: 0.1 ms of compute and 0.1 ms of bubble in the mean.
  std::int64_t sum = 0;
  for (const DiffPart& part : diff.waterfall) {
    const bool changes = part.part == "compute" || part.part == "bubble";
    EXPECT_EQ(part.change_ps(), changes ? 100'000'000 : 0) << part.part;
    sum += part.change_ps();
  }
  EXPECT_EQ(sum, diff.step_b_ps - diff.step_a_ps);
  EXPECT_EQ(sum, 200'000'000);
  const std::string screen = diff_screen(diff);
  EXPECT_TRUE(screen.starts_with("SLOWER  B takes 20.0 % longer for a step: 1.000 -> 1.200 ms (+0.200): ")) << screen;
  // One peak, one row of it too many.
  EXPECT_EQ(screen.find("of a peak of (MFU)"), std::string::npos);
  DiffReport other_peak = diff;
  other_peak.b.report.peak_tflops *= 2;
  EXPECT_NE(diff_screen(other_peak).find("of a peak of (MFU)"), std::string::npos);
  const auto json = nlohmann::json::parse(diff_json(diff));
  EXPECT_EQ(json["change_ps"], 200'000'000);
  EXPECT_EQ(json["memory"].size(), 5U);
}

TEST(Diff, OfAPlanWithItselfIsNothing) {
  const program::CheckedProgram p = matmul_program();
  sim::Prediction predicted = prediction(p);
  add_traffic(predicted);
  const DiffReport diff = make_diff(side(predicted, p, {}), side(predicted, p, {}));
  EXPECT_TRUE(diff.fields.empty());
  for (const DiffPart& part : diff.waterfall) EXPECT_EQ(part.change_ps(), 0) << part.part;
  EXPECT_TRUE(diff_screen(diff).starts_with("SAME  ")) << diff_screen(diff);
}

}  // namespace
}  // namespace stepcast::report
