// `stepcast coll` as a user runs it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program_run.h"

namespace stepcast::cli {
namespace {

TEST(Coll, PrintsEverySizeAndHowNcclRunsIt) {
  const ProgramRun run = stepcast("coll all_reduce --cluster hgx-h100 --gpus 8 -b 1M -e 8G --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const nlohmann::json json = nlohmann::json::parse(run.out);
  // 2^20 to 2^33: 14 sizes. LL at 1 MiB and NVLS from 2 MiB; 8 H100 measure 479 GB/s at 8 GiB
  // (Azure/AI-benchmarking-guide).
  ASSERT_EQ(json["rows"].size(), 14U);
  EXPECT_EQ(json["calibration"], "h100-default");
  EXPECT_EQ(json["rows"][0]["size_bytes"], 1 << 20);
  EXPECT_EQ(json["rows"][0]["protocol"], "ll");
  EXPECT_EQ(json["rows"][1]["algorithm"], "nvls");
  EXPECT_NEAR(json["rows"][13]["busbw_gb_per_s"].get<double>(), 479, 47.9);
}

TEST(Coll, TakesPinsAndSteps) {
  const ProgramRun run =
      stepcast("coll all_reduce --cluster hgx-h100 --gpus 8 -b 1G -e 4G -f 4 --env NCCL_NVLS_ENABLE=0");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("NCCL_NVLS_ENABLE=0"), std::string::npos);
  EXPECT_NE(run.out.find("1073741824"), std::string::npos);
  EXPECT_EQ(run.out.find("2147483648"), std::string::npos);
  EXPECT_NE(run.out.find("4294967296"), std::string::npos);
  EXPECT_EQ(run.out.find("nvls "), std::string::npos);
}

TEST(Coll, NamesVariablesWithoutInfluence) {
  const ProgramRun run = stepcast("coll all_reduce --cluster hgx-h100 --gpus 8 -b 1G --env FOO=1 --env NCCL_ALGO=Ring");
  EXPECT_EQ(run.err, "note: --env: without influence here: FOO\n");
  EXPECT_EQ(run.out.find("FOO"), std::string::npos);
  EXPECT_NE(run.out.find("NCCL_ALGO=Ring"), std::string::npos);
}

TEST(Coll, SaysWhatIsWrong) {
  EXPECT_NE(stepcast("coll all_reduce --cluster hgx-h100 --gpus 8 -b 0").err.find("-b 0 is no size"),
            std::string::npos);

  EXPECT_EQ(stepcast("coll all_reduces --cluster hgx-h100 --gpus 8").exit_code, 2);
  EXPECT_EQ(stepcast("coll all_reduce --cluster hgx-h100 --gpus 1").exit_code, 2);
  EXPECT_EQ(stepcast("coll all_reduce --cluster hgx-h100 --gpus 8 -b 1X").exit_code, 2);
  EXPECT_EQ(stepcast("coll all_reduce --cluster hgx-h100 --gpus 8 -b 2M -e 1M").exit_code, 2);
  EXPECT_EQ(stepcast("coll all_reduce --cluster hgx-h100 --gpus 16").exit_code, 3);  // no network
  EXPECT_EQ(stepcast("coll all_reduce --cluster no-such --gpus 8").exit_code, 3);
  const ProgramRun pins = stepcast("coll all_reduce --cluster hgx-h100 --gpus 8 --env NCCL_ALGO=Rong");
  EXPECT_EQ(pins.exit_code, 3);
  EXPECT_NE(pins.err.find("CollnetDirect"), std::string::npos);
}

}  // namespace
}  // namespace stepcast::cli
