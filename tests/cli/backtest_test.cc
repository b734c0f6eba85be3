// `stepcast backtest` as a user runs it: a row is what simulate says of its settings; options, reasons, exit codes.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program_run.h"

namespace stepcast::cli {
namespace {

const std::string kTable = "scenarios/measured/published_runs_dense.csv";

// dgxc-001 is Llama 3.1 8B on 8 H100 with cp 2, bf16 gradients and overlapped gathers (12.27 s measured).
TEST(Backtest, SaysOfARowWhatSimulateSays) {
  const ProgramRun run = stepcast("backtest " + kTable + " --only dgxc-001 --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto row = nlohmann::json::parse(run.out)["rows"].at(0);
  const ProgramRun alone = stepcast(
      "simulate llama-3.1-8b --cluster hgx-h100 --gpus 8 --seq 8192 --gbs 128 --cp 2 --set training.dropout=0 "
      "--set training.precision.grads=bf16 --set plan.overlap.param_gather=true "
      "--set stack.env.NCCL_NVLS_ENABLE=0 --json");
  const auto answer = nlohmann::json::parse(alone.out);
  EXPECT_EQ(row["predicted_step_time_s"], answer["step_time_s"]);
  EXPECT_EQ(row["predicted_memory_bytes"], answer["memory"]["allocated_bytes"]);
  const double error = 100 * (answer["step_time_s"].get<double>() / 12.27 - 1);
  EXPECT_NEAR(row["error_pct"].get<double>(), error, 1e-9);
}

TEST(Backtest, ChoosesRowsAndKeepsTheirOrder) {
  const ProgramRun run = stepcast("validate " + kTable + " --only titan-004,dgxc-001 --group 'H100|titan' --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  ASSERT_EQ(json["rows"].size(), 2U);
  EXPECT_EQ(json["rows"][0]["id"], "dgxc-001");
  EXPECT_EQ(json["by_group"].size(), 2U);
  EXPECT_EQ(run.out, stepcast("backtest " + kTable + " --only dgxc-001,titan-004 --json").out);
}

// A row whose plan breaks a rule is skipped with the rule's words; the others are predicted.
TEST(Backtest, SkipsWhatCannotBeSimulated) {
  std::ifstream table(std::string(STEPCAST_SOURCE_DIR) + "/" + kTable);
  std::string header;
  std::getline(table, header);
  std::string line;
  while (std::getline(table, line) && !line.starts_with("dgxc-001,")) {
  }
  std::string broken = "broken" + line.substr(std::string("dgxc-001").size());
  const std::string layers = ",llama3-8b,8.03,32,";
  ASSERT_NE(broken.find(layers), std::string::npos);
  broken.replace(broken.find(layers), layers.size(), ",palm,8.03,32,");
  const std::string path = scratch("runs.csv");
  std::ofstream(path) << header << "\n" << line << "\n" << broken << "\n";
  const ProgramRun run = stepcast("backtest '" + path + "' --json --fail-over 50");
  std::filesystem::remove(path);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["summary"]["count"], 1);
  EXPECT_EQ(json["summary"]["skipped"], 1);
  EXPECT_NE(json["rows"][1]["skipped"].get<std::string>().find("model 'palm'"), std::string::npos);
}

TEST(Backtest, KeepsTheExitCodes) {
  const std::string one = "backtest " + kTable + " --only dgxc-001";
  struct Case {
    std::string arguments;
    int code;
  };
  for (const Case& c : {Case{one, 0}, Case{one + " --fail-over 50", 0}, Case{one + " --fail-over 0.001", 1},
                        Case{one + " --fail-over -1", 2}, Case{"backtest", 2}, Case{"backtest none.csv", 3},
                        Case{"backtest " + kTable + " --only nobody-001", 2},
                        Case{"backtest " + kTable + " --group '('", 2}, Case{"backtest " + kTable + " --group zzz", 2},
                        Case{"backtest scenarios/README.md", 3}, Case{"backtest " + kTable + " --only bloom-037", 0},
                        Case{"backtest " + kTable + " --only bloom-037 --fail-over 50", 1}}) {
    EXPECT_EQ(stepcast(c.arguments).exit_code, c.code) << c.arguments;
  }
}

}  // namespace
}  // namespace stepcast::cli
