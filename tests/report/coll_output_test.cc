// The columns of nccl-tests: rounding, words, units.
#include "report/coll_output.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace stepcast::report {
namespace {

using sim::CollectiveOp;

TEST(CollOutput, SplitBuffersAreWholePartsOf16Bytes) {
  // 1,000,000 B are 250,000 floats; of 8 members 31,250 each, 31,248 in whole fours: 999,936 B.
  EXPECT_EQ(coll_row(CollectiveOp::kAllGather, 1'000'000, 8).count, 31'248);
  EXPECT_EQ(coll_row(CollectiveOp::kAllGather, 1'000'000, 8).size, 999'936);
  EXPECT_EQ(coll_row(CollectiveOp::kAllToAll, 1'000'000, 8).size, 999'936);
  EXPECT_EQ(coll_row(CollectiveOp::kAllReduce, 1'000'002, 8).count, 250'000);
  EXPECT_EQ(coll_row(CollectiveOp::kAllReduce, 1'000'002, 8).size, 1'000'000);
}

CollResult one_row(CollectiveOp op) {
  CollResult result{op, "pair", 2, 1, "constants", {{"NCCL_ALGO", "Ring"}}, {}};
  CollRow row{8'000'000, 2'000'000, {}};
  row.transfer.cost.time = Duration(100'000'000);  // 100 us: 80 GB/s
  row.transfer.cost.bus_bandwidth = 60e9;
  row.transfer.cost.algorithm = sim::Algorithm::kRing;
  row.transfer.cost.protocol = sim::Protocol::kLl128;
  row.transfer.channels = 24;
  result.rows.push_back(row);
  return result;
}

TEST(CollOutput, ScreenHasTheColumnsOfNcclTests) {
  const std::string screen = coll_screen(one_row(CollectiveOp::kAllReduce));
  const std::string row =
      "       8000000      2000000  float    sum    -1      100.00    80.00    60.00  ring       ll128          24\n";
  EXPECT_NE(screen.find(row), std::string::npos) << screen;
  EXPECT_NE(screen.find("# all_reduce: 2 GPUs in 1 node of pair, calibration constants NCCL_ALGO=Ring"),
            std::string::npos);
  EXPECT_NE(screen.find("# Avg bus bandwidth    : 60.0000\n"), std::string::npos);
}

TEST(CollOutput, JsonHasOneObjectPerSize) {
  const nlohmann::json json = nlohmann::json::parse(coll_json(one_row(CollectiveOp::kBroadcast)));
  EXPECT_EQ(json["schema"], "stepcast/coll/1");
  EXPECT_EQ(json["op"], "broadcast");
  EXPECT_EQ(json["environment"]["NCCL_ALGO"], "Ring");
  ASSERT_EQ(json["rows"].size(), 1U);
  const nlohmann::json& row = json["rows"][0];
  EXPECT_EQ(row["size_bytes"], 8'000'000);
  EXPECT_EQ(row["root"], 0);
  EXPECT_EQ(row["redop"], "none");
  EXPECT_DOUBLE_EQ(row["time_us"], 100.0);
  EXPECT_DOUBLE_EQ(row["algbw_gb_per_s"], 80.0);
  EXPECT_DOUBLE_EQ(row["busbw_gb_per_s"], 60.0);
  EXPECT_EQ(row["algorithm"], "ring");
  EXPECT_EQ(row["channels"], 24);
}

}  // namespace
}  // namespace stepcast::report
