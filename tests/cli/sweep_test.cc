// `stepcast sweep` as a user runs it: every row is what simulate says alone.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program_run.h"

namespace stepcast::cli {
namespace {

const std::string kEight = "scenarios/runs/llama-3.1-8b-h100x8.yaml";

std::string set_flags(const nlohmann::json& settings) {
  std::string flags;
  for (const auto& [field, value] : settings.items())
    flags += " --set '" + field + "=" + value.get<std::string>() + "'";
  return flags;
}

TEST(Sweep, SaysOfEachVariantWhatSimulateSays) {
  const ProgramRun run = stepcast("sweep " + kEight +
                                  " --vary plan.tp=1,2 --vary plan.pp=1,2,3 --vary plan.zero=0,1,2 "
                                  "--vary 'plan.recompute=none,selective[layernorm,mlp_act]' --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  ASSERT_EQ(json["variants"].size(), 36U);
  int answered = 0;
  int refused = 0;
  for (const auto& variant : json["variants"]) {
    const ProgramRun alone = stepcast("simulate " + kEight + set_flags(variant["settings"]) + " --json");
    if (variant["step_time_s"].is_null()) {
      ++refused;
      // What simulate refuses with 3 or 4 is a row that says so.
      EXPECT_EQ(alone.exit_code, variant["status"] == "unsupported" ? 4 : 3) << variant;
      EXPECT_GE(variant["problems"].size(), 1U);
      continue;
    }
    ++answered;
    const auto answer = nlohmann::json::parse(alone.out);
    for (const char* key : {"step_time_s", "tokens_per_s", "tokens_per_s_per_gpu", "mfu", "hfu", "bubble_fraction"}) {
      EXPECT_EQ(variant[key], answer[key]) << key << variant;
    }
    const auto& memory = answer["memory"];
    EXPECT_EQ(variant["status"], memory["verdict"]);
    EXPECT_EQ(variant["allocated_bytes"], memory["allocated_bytes"]);
    EXPECT_EQ(variant["device_bytes"], memory["device_bytes"]);
    const std::int64_t left = memory["capacity_bytes"].get<std::int64_t>() - memory["device_bytes"].get<std::int64_t>();
    EXPECT_EQ(variant["over_bytes"], std::max<std::int64_t>(0, -left));
  }
  // 32 layers do not divide over 3 stages, and zero 2 is not supported yet: 2 x 2 x 2 combinations are left, twice.
  EXPECT_EQ(answered, 16);
  EXPECT_EQ(refused, 20);
}

TEST(Sweep, WritesTheSameBytesInEveryRun) {
  const std::string arguments = "sweep " + kTiny + " --vary plan.tp=1,2,4 --vary plan.pp=1,2,4 --vary mbs=1,2 --json";
  const ProgramRun first = stepcast(arguments);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.out, stepcast(arguments).out);
  // On one core no other thread helps.
  const std::string binary = std::string("taskset -c 0 '") + STEPCAST_BINARY + "' ";
  const std::string out = scratch("one-core");
  const std::string command = std::string("cd '") + STEPCAST_SOURCE_DIR + "' && " + binary + arguments + " > " + out;
  ASSERT_EQ(std::system(command.c_str()), 0);  // NOLINT(concurrency-mt-unsafe): tests run one at a time
  EXPECT_EQ(first.out, file_text(out));
}

TEST(Sweep, MarksTheFastestThatFits) {
  const auto json = nlohmann::json::parse(stepcast("sweep " + kEight + " --vary tp=1,2,4 --vary pp=1,2 --json").out);
  const auto& best = json["variants"][json["best"].get<std::size_t>()];
  double most = 0;
  for (const auto& v : json["variants"]) {
    if (v["status"] == "oom") {
      EXPECT_GT(v["over_bytes"].get<std::int64_t>(), 0);
    }
    if (v["status"] == "oom" || v["step_time_s"].is_null()) continue;
    most = std::max(most, v["tokens_per_s_per_gpu"].get<double>());
  }
  EXPECT_EQ(best["tokens_per_s_per_gpu"], most);
  // A replica a device needs 18 bytes of 8.03e9 parameters less what eight share, and activations: over 80 GB.
  EXPECT_EQ(json["variants"][0]["status"], "oom");
}

TEST(Sweep, SpeaksOfAFieldNobodyKnowsOnce) {
  const ProgramRun run = stepcast("sweep " + kTiny + " --vary plan.tpp=1,2");
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find("plan.tpp"), std::string::npos) << run.err;
}

TEST(Sweep, KeepsAValueThatMakesNoScenarioAsARow) {
  const auto json = nlohmann::json::parse(stepcast("sweep " + kEight + " --vary cluster=hgx-h100,hgx-h10O --json").out);
  EXPECT_EQ(json["variants"][1]["status"], "refused");
  EXPECT_NE(json["variants"][1]["problems"].dump().find("hgx-h10O"), std::string::npos);
}

TEST(Sweep, EndsAtAnInterruptWithoutATable) {
  std::vector<std::string> arguments = {"sweep", kTiny, "--vary"};
  std::string seeds = "training.seed=0";
  for (int i = 1; i < 15'000; ++i) seeds += "," + std::to_string(i);
  arguments.push_back(seeds);
  EXPECT_EQ(interrupted(arguments), 130);
}

}  // namespace
}  // namespace stepcast::cli
