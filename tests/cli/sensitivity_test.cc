// `simulate --sensitivity` and job totals as a user asks for them.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program_run.h"

namespace stepcast::cli {
namespace {

const std::string kSixteen = "scenarios/runs/nanotron-3b-h100x16.yaml";

std::map<std::string, nlohmann::json> sensitivity_of(const std::string& arguments) {
  const ProgramRun run = stepcast("simulate --json --sensitivity " + arguments);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  std::map<std::string, nlohmann::json> changes;
  const auto json = nlohmann::json::parse(run.out);
  for (const auto& change : json["sensitivity"]) changes[change["change"]] = change;
  return changes;
}

TEST(Sensitivity, IsWhatTheChangedScenarioTakes) {
  const auto changes = sensitivity_of(kEight);
  for (const auto& [change, setting] :
       std::map<std::string, std::string>{{"scale_up +10 %", "cluster.scale_up.bandwidth=495 GB/s"},
                                          {"vp 2", "plan.vp=2"},
                                          {"mbs 2", "plan.micro_batch_size=2"}}) {
    ASSERT_TRUE(changes.contains(change)) << change;
    const auto alone = nlohmann::json::parse(stepcast("simulate --json --set '" + setting + "' " + kEight).out);
    EXPECT_EQ(changes.at(change)["step_time_s"], alone["step_time_s"]) << change;
    EXPECT_EQ(changes.at(change)["verdict"], alone["memory"]["verdict"]) << change;
  }
  // One node has no network.
  EXPECT_FALSE(changes.contains("NIC 2x"));
}

TEST(Sensitivity, OfMatmulsIsAtMostTheirShare) {
  const auto changes = sensitivity_of(kEight);
  const double gemm = changes.at("gemm +10 %")["relative_change"];
  // Were all of the step matmuls it would shorten by 1 - 1/1.1 = 9.1 %; they are most of it (HFU above half).
  EXPECT_LT(gemm, -0.04);
  EXPECT_GT(gemm, -1.0 / 11);
}

TEST(Sensitivity, ChangesTheNetworkWhereThereIsOne) {
  const auto changes = sensitivity_of(kSixteen);
  ASSERT_TRUE(changes.contains("NIC 2x"));
  const auto twice =
      nlohmann::json::parse(stepcast("simulate --json --set 'cluster.nic.rate=200 Gb/s' " + kSixteen).out);
  EXPECT_EQ(changes.at("NIC 2x")["step_time_s"], twice["step_time_s"]);
  // Tensor parallelism across nodes: the network is most of the step.
  EXPECT_LT(changes.at("NIC 2x")["relative_change"].get<double>(), -0.05);
}

TEST(Sensitivity, IsOnlyThereWhenAsked) {
  EXPECT_FALSE(nlohmann::json::parse(stepcast("simulate --json " + kEight).out).contains("sensitivity"));
  const ProgramRun screen = stepcast("simulate --sensitivity " + kEight);
  EXPECT_NE(screen.out.find("gemm +10 % -"), std::string::npos) << screen.out;
}

TEST(Job, HasTheTotalsOfItsTokens) {
  const ProgramRun run =
      stepcast("simulate --json --set 'job={tokens: 15 Ttok, price: 2.5 $/GPU-h, pue: 1.12}' " + kEight);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  const auto& job = json["job"];
  // 15e12 / (128 x 8,192) = 14,305,114.7.
  EXPECT_EQ(job["steps"], 14305115);
  const double seconds = 14305115 * json["step_time_s"].get<double>();
  EXPECT_NEAR(job["days"].get<double>() / (seconds / 86400), 1, 1e-12);
  EXPECT_NEAR(job["gpu_hours"].get<double>() / (seconds / 3600 * 8), 1, 1e-12);
  EXPECT_NEAR(job["cost_dollars"].get<double>() / (seconds / 3600 * 8 * 2.5), 1, 1e-12);
  EXPECT_EQ(stepcast("simulate --set 'job={tokens: 1 Ttok, spares: 2}' " + kEight).exit_code, 4);
  EXPECT_NE(stepcast("simulate --set 'job.tokens=1 Ttok' " + kEight).out.find("\njob      1.00 Ttok: "),
            std::string::npos);
}

}  // namespace
}  // namespace stepcast::cli
