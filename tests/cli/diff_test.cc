// `stepcast diff` as a user runs it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program_run.h"

namespace stepcast::cli {
namespace {

nlohmann::json diff(const std::string& arguments) {
  const ProgramRun run = stepcast("diff " + arguments + " --json");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return nlohmann::json::parse(run.out);
}

TEST(Diff, AddsUpToTheDifferenceToThePicosecond) {
  for (const char* settings : {"--set plan.tp=4", "--set plan.pp=1", "--set plan.recompute=full", "--set plan.zero=0",
                               "--set training.global_batch_size=64", "--set cluster=hgx-a100-80"}) {
    const auto json = diff(kEight + " " + settings);
    std::int64_t a = 0;
    std::int64_t b = 0;
    for (const auto& part : json["waterfall"]) {
      a += part["a_ps"].get<std::int64_t>();
      b += part["b_ps"].get<std::int64_t>();
    }
    EXPECT_EQ(a, json["step_a_ps"]) << settings;
    EXPECT_EQ(b, json["step_b_ps"]) << settings;
    EXPECT_EQ(b - a, json["change_ps"]) << settings;
    EXPECT_NE(b, a) << settings;
  }
}

TEST(Diff, SaysOfBothSidesWhatSimulateSays) {
  const auto json = diff(kEight + " --set plan.tp=4");
  const auto a = nlohmann::json::parse(stepcast("simulate --json " + kEight).out);
  const auto b = nlohmann::json::parse(stepcast("simulate --json --set plan.tp=4 " + kEight).out);
  const std::pair<const char*, const nlohmann::json*> sides[] = {{"a", &a}, {"b", &b}};
  for (const auto& [side, answer] : sides) {
    for (const char* key : {"step_time_s", "tokens_per_s_per_gpu", "mfu", "bubble_fraction", "fingerprint"}) {
      EXPECT_EQ(json[side][key], (*answer)[key]) << side << key;
    }
    // Parts are means over ranks, rounded to picoseconds.
    for (const auto& part : json["waterfall"]) {
      const std::string name = part["part"];
      const auto& time = (*answer)["time_s"];
      const double seconds =
          name.starts_with("exposed ") ? time["exposed"][name.substr(8)].get<double>() : time[name].get<double>();
      EXPECT_NEAR(part[std::string(side) + "_ps"].get<double>() * 1e-12, seconds, 1.5e-12) << side << name;
    }
  }
}

TEST(Diff, ListsWhatDiffersWithWhatFollowsFromIt) {
  const auto json = diff(kEight + " --set plan.tp=4");
  std::map<std::string, std::pair<std::string, std::string>> fields;
  for (const auto& f : json["config"]) fields[f["field"]] = {f["a"], f["b"]};
  const std::pair<std::string, std::string> tp{"2", "4"};
  const std::pair<std::string, std::string> dp{"2", "1"};  // 8 devices over tp and pp
  EXPECT_EQ(fields["plan.tp"], tp);
  EXPECT_EQ(fields["plan.dp"], dp);
  EXPECT_FALSE(fields.contains("gpus"));
  // Half the weights of a stage on each device, as tp doubles.
  const auto& weights = json["memory"][0];
  EXPECT_EQ(weights["class"], "weights");
  EXPECT_NEAR(weights["b_bytes"].get<double>() / weights["a_bytes"].get<double>(), 0.5, 0.01);
}

TEST(Diff, TakesTwoFilesAndKeepsWithinItsColumns) {
  const ProgramRun run = stepcast("diff " + kEight + " scenarios/runs/nanotron-3b-h100x8.yaml");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("hgx-h100"), std::string::npos) << run.out;
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120U) << line;
}

}  // namespace
}  // namespace stepcast::cli
