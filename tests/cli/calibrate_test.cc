// `stepcast calibrate --from` as a user runs it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program_run.h"

namespace stepcast::cli {
namespace {

const std::string kFrom = "calibrate --from scenarios/measured/gemm.csv scenarios/measured/attention.csv ";
const std::string kH100 = "--gpu H100-SXM --cluster hgx-h100 --base h100-default ";

TEST(Calibrate, WritesACalibrationThatSimulateTakes) {
  const std::string file = scratch("my-h100.yaml");
  const ProgramRun run = stepcast(kFrom + kH100 + "--attention FA3 --out " + file);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("matmul.wave_share"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("cuDNN fwd: 27 rows"), std::string::npos) << run.out;
  const std::string text = file_text(file);
  EXPECT_NE(text.find("name: \"" + std::filesystem::path(file).stem().string() + "\""), std::string::npos);
  EXPECT_NE(text.find("fit to the 179 rows of matmul of this device in gemm.csv (microsoft/vidur"), std::string::npos);
  EXPECT_NE(text.find("fit to the 12 rows of FA3 bwd"), std::string::npos);
  EXPECT_EQ(text.find("cuDNN fwd of this device"), std::string::npos) << "only the one asked for";
  EXPECT_EQ(stepcast("simulate " + kEight + " --calibration " + file).exit_code, 0);
}

TEST(Calibrate, AnswersInJson) {
  const ProgramRun run = stepcast(kFrom + kH100 + "--json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["schema"], "stepcast/calibrate/1");
  EXPECT_EQ(json["fits"][0]["kernel"], "matmul");
  EXPECT_EQ(json["fits"][0]["rows"], 179);
  EXPECT_LT(json["fits"][0]["after"]["median_abs_error_pct"], json["fits"][0]["before"]["median_abs_error_pct"]);
  EXPECT_TRUE(json["out"].is_null());
}

TEST(Calibrate, SaysWhichRowsItDidNotTake) {
  const std::string table = scratch("table.csv");
  std::ofstream(table) << file_text(std::string(STEPCAST_SOURCE_DIR) + "/scenarios/measured/gemm.csv")
                       << "s,H100-SXM,fp8,64,64,64,,1,1,1,9,\n";
  const ProgramRun run = stepcast("calibrate --from " + table + " " + kH100);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("1 row not taken: not of 16-bit operands"), std::string::npos) << run.out;
}

TEST(Calibrate, FaultsNameTheirPlaceAndWriteNothing) {
  const std::string file = scratch("none.yaml");
  const ProgramRun device = stepcast(kFrom + "--gpu H100 --cluster hgx-h100 --base h100-default --out " + file);
  EXPECT_EQ(device.exit_code, 3);
  EXPECT_NE(device.err.find("scenarios/measured/gemm.csv"), std::string::npos) << device.err;
  EXPECT_NE(device.err.find("H100-SXM"), std::string::npos) << device.err;
  EXPECT_EQ(stepcast(kFrom + kH100 + "--attention FA9 --out " + file).exit_code, 2);
  EXPECT_EQ(stepcast("calibrate " + kH100).exit_code, 2);
  EXPECT_EQ(stepcast("calibrate --backend cpu").exit_code, 4);
  EXPECT_FALSE(std::filesystem::exists(file));
}

}  // namespace
}  // namespace stepcast::cli
