// Commands on scenarios whose matmuls read 8 or 4 bits, and on fp16: what prices them, what does not run them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program_run.h"

namespace stepcast::cli {
namespace {

const std::string kModel = "llama-3.1-8b --gpus 8 --seq 4096 --gbs 16 --tp 2 --set model.num_hidden_layers=2 ";

nlohmann::json simulated(const std::string& settings) {
  const ProgramRun run = stepcast("simulate " + kModel + settings + " --json");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return nlohmann::json::parse(run.out);
}

// MFU is over the peak of what is quantised: NVIDIA's 1,979 TFLOP/s of fp8 on H100, 9,000 of fp4 on B200; the screen
// says what it is over the peak of bf16.
TEST(Precision, StatesThePeakThatMfuIsOver) {
  const nlohmann::json fp8 = simulated("--cluster hgx-h100 --set training.precision=fp8");
  EXPECT_EQ(fp8["peak_tflops"], 1979);
  EXPECT_EQ(fp8["plan"]["precision"]["recipe"], "delayed");
  EXPECT_FALSE(simulated("--cluster hgx-h100")["plan"].contains("precision"));
  EXPECT_EQ(simulated("--cluster hgx-b200 --set training.precision=nvfp4")["peak_tflops"], 9000);
  EXPECT_EQ(simulated("--cluster hgx-h100 --set training.precision=fp16")["peak_tflops"], 989.5);
  const std::string screen = stepcast("simulate " + kModel + "--cluster hgx-h100 --set training.precision=fp8").out;
  EXPECT_NE(screen.find("dense fp8"), std::string::npos) << screen;
  EXPECT_NE(screen.find("delayed"), std::string::npos) << screen;
}

// Blackwell has no measured fp8 matmuls, H100 has.
TEST(Precision, WarnsOfConstantsThatAreTaken) {
  EXPECT_NE(simulated("--cluster hgx-b200 --set training.precision=fp8")["warnings"].dump().find("W303"),
            std::string::npos);
  EXPECT_EQ(simulated("--cluster hgx-h100 --set training.precision=fp8")["warnings"].dump().find("W303"),
            std::string::npos);
}

// The flag is for what is computed in; what a file says of gradients stays.
TEST(Precision, FlagKeepsWhatTheFileSaysOfGradients) {
  const std::string file = scratch("grads.yaml");
  std::ofstream(file) << "extends: " STEPCAST_SOURCE_DIR "/" << kEight
                      << "\ntraining: {precision: {compute: bf16, grads: bf16}}\n";
  for (const char* flag : {"", " --precision bf16"}) {
    const ProgramRun run = stepcast("check --json " + file + flag);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto json = nlohmann::json::parse(run.out);
    std::string grads;
    for (const auto& entry : json["config"]) {
      if (entry["field"] == "training.precision.grads") grads = entry["value"];
    }
    EXPECT_EQ(grads, "bf16") << flag;
  }
  std::filesystem::remove(file);
}

TEST(Precision, IsPricedButNotRun) {
  const struct {
    std::string arguments;
    int exit_code;
  } cases[] = {{"check " + kModel + "--cluster hgx-h100 --set training.precision=fp8", 0},
               {"check " + kModel + "--cluster hgx-a100-80 --set training.precision=fp8", 1},
               {"simulate " + kModel + "--cluster hgx-a100-80 --set training.precision=fp8", 3},
               {"run " + kModel + "--cluster hgx-h100 --backend cpu --set training.precision=fp8", 4},
               {"run " + kModel + "--cluster hgx-h100 --backend cpu --set training.precision=fp16", 4},
               {"run " + kModel + "--cluster local-cpu --backend cpu --set training.precision=fp8", 4}};
  for (const auto& c : cases) {
    const ProgramRun run = stepcast(c.arguments);
    EXPECT_EQ(run.exit_code, c.exit_code) << c.arguments << run.err;
  }
}

}  // namespace
}  // namespace stepcast::cli
