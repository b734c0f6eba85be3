// Every calibration shipped, with the unit of every constant.
#include "report/calibrations_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace stepcast::report {
namespace {

TEST(Calibrations, SplitsTheUnitOffTheMeaning) {
  EXPECT_EQ(split_unit("a share (of peak) (unit: fraction)").meaning, "a share (of peak)");
  EXPECT_EQ(split_unit("a share (of peak) (unit: fraction)").unit, "fraction");
  EXPECT_EQ(split_unit("a share (of peak)").meaning, "a share (of peak)");
  EXPECT_EQ(split_unit("a share (of peak)").unit, "");
}

TEST(Calibrations, StateMeaningUnitValueAndSourceOfEveryConstant) {
  const auto json = nlohmann::json::parse(calibrations_json(read_all_calibrations({})));
  EXPECT_EQ(json["schema"], "stepcast/calibrations/1");
  EXPECT_GE(json["calibrations"].size(), 5U);  // cpu-reference and defaults of A100, H100, B200, MI300X
  EXPECT_EQ(json["unreadable"].size(), 0U);
  for (const auto& calibration : json["calibrations"]) {
    EXPECT_GT(calibration["constants"].size(), 30U) << calibration["name"];
    for (const auto& constant : calibration["constants"]) {
      for (const char* key : {"name", "value", "unit", "meaning", "source"}) {
        EXPECT_FALSE(constant[key].get<std::string>().empty()) << calibration["name"] << constant;
      }
    }
  }
}

TEST(Calibrations, ShowsOneWithItsFigures) {
  const CalibrationEntry entry = read_calibration_entry("h100-default", {});
  const std::string screen = calibration_screen(entry);
  // scenarios/calibrations/h100-default.yaml.
  EXPECT_NE(screen.find("matmul.bf16"), std::string::npos);
  EXPECT_NE(screen.find("0.715 fraction"), std::string::npos) << screen;
  EXPECT_NE(screen.find("source: fit of the smooth roofline"), std::string::npos) << screen;
  EXPECT_THROW(read_calibration_entry("h10O-default", {}), Error);
}

}  // namespace
}  // namespace stepcast::report
