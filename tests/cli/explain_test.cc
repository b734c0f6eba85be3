// `stepcast explain` and `stepcast calibrations` as a user runs them.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program_run.h"

namespace stepcast::cli {
namespace {

TEST(Explain, GivesMeaningFormulaAndSource) {
  const ProgramRun run = stepcast("explain exposed tp");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.out.starts_with("exposed tp\n")) << run.out;
  EXPECT_NE(stepcast("explain bubble").out.find("(p - 1) / (v m)"), std::string::npos);
  EXPECT_NE(stepcast("explain W302").out.find("relative"), std::string::npos);
}

TEST(Explain, KnowsKeysByTheirPath) {
  EXPECT_TRUE(stepcast("explain plan.overlap.tp_comm").out.starts_with("tp_comm\n"));
  EXPECT_TRUE(stepcast("explain cp").out.starts_with("context parallelism\n"));
  EXPECT_TRUE(stepcast("explain dp_cp").out.starts_with("dp_cp\n"));
}

TEST(Explain, OffersTheNearestTerm) {
  const ProgramRun run = stepcast("explain bubbel");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("did you mean bubble"), std::string::npos) << run.err;
}

TEST(Explain, ListsAllTerms) {
  const auto json = nlohmann::json::parse(stepcast("explain --json").out);
  EXPECT_EQ(json["schema"], "stepcast/explain/1");
  const std::string list = stepcast("explain").out;
  for (const auto& term : json["terms"]) {
    EXPECT_NE(list.find(term["name"].get<std::string>().substr(0, 4)), std::string::npos) << term["name"];
  }
}

TEST(Calibrations, ListsThemAndShowsOne) {
  EXPECT_NE(stepcast("calibrations").out.find("h100-default"), std::string::npos);
  const ProgramRun run = stepcast("calibrations scenarios/calibrations/h100-default.yaml --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["calibrations"].size(), 1U);
  const auto simulated = nlohmann::json::parse(stepcast("simulate --json scenarios/runs/llama-3.1-8b-h100x8.yaml").out);
  // A bf16 step is priced without the constants of 8-bit matmuls.
  const auto& constants = json["calibrations"][0]["constants"];
  const auto used = std::count_if(constants.begin(), constants.end(), [](const nlohmann::json& c) {
    return !c["name"].get<std::string>().starts_with("matmul.fp8");
  });
  EXPECT_EQ(used, simulated["calibration"]["constants"]);
}

}  // namespace
}  // namespace stepcast::cli
