// Calibrations as text: read back they are what was written.
#include "calibrate/calibration_writer.h"

#include <gtest/gtest.h>

#include "calibrate/merge.h"
#include "sim/cost/calibration_reader.h"
#include "tests/sim/shipped_calibration.h"

namespace stepcast::calibrate {
namespace {

void expect_equal(const sim::CalibrationConstant& a, const sim::CalibrationConstant& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.value, b.value) << a.name;
  EXPECT_EQ(a.meaning, b.meaning) << a.name;
  EXPECT_EQ(a.source, b.source) << a.name;
}

TEST(CalibrationWriter, ShippedCalibrationsSurvive) {
  for (const char* name : {"a100-default", "h100-default", "b200-default", "mi300x-default", "cpu-reference"}) {
    const sim::Calibration given = testing::shipped_calibration(name);
    const sim::Calibration read = sim::read_calibration(calibration_text(given, "a line\nand another"), name);
    EXPECT_EQ(read.name, given.name);
    EXPECT_EQ(read.stack, given.stack);
    EXPECT_EQ(read.devices, given.devices);
    ASSERT_EQ(read.constants.size(), given.constants.size());
    for (std::size_t i = 0; i < given.constants.size(); ++i) expect_equal(read.constants[i], given.constants[i]);
    EXPECT_EQ(read.matmul_bf16, given.matmul_bf16);
    EXPECT_EQ(read.collective.half_size, given.collective.half_size);
  }
}

TEST(CalibrationWriter, QuotesAndBackslashesSurvive) {
  sim::Calibration given = testing::shipped_calibration("h100-default");
  given.constants[0].source = R"(a "b" \c: #d)";
  EXPECT_EQ(sim::read_calibration(calibration_text(given, ""), "f").constants[0].source, given.constants[0].source);
}

SourcedFit wave_fit() {
  KernelFit fit;
  fit.kernel = "matmul";
  fit.rows = 12;
  fit.after = {0.04, 0.131};
  fit.left_out = {0.05, 0.16};
  fit.constants = {{"matmul.bf16", "0.715", "0.7", "share (unit: fraction)", 0.012, ""},
                   {"matmul.wave_share", "", "0.25", "share (unit: fraction)", 0.08, ""}};
  return {fit, "/some/where/gemm.csv", {"s1", "s2"}};
}

TEST(Merge, ReplacesAddsAndSaysWhereFrom) {
  const sim::Calibration base = testing::shipped_calibration("h100-default");
  const SourcedFit fitted = wave_fit();
  const sim::Calibration merged = merge(base, "mine", std::vector<SourcedFit>{fitted});
  const sim::Calibration read = sim::read_calibration(calibration_text(merged, ""), "mine.yaml");
  EXPECT_EQ(read.name, "mine");
  EXPECT_EQ(read.matmul_bf16, 0.7);
  EXPECT_EQ(read.matmul_refinement.wave_share, 0.25);
  EXPECT_EQ(
      read.constants[0].source,
      "fit to the 12 rows of matmul of this device in gemm.csv (s1; s2): error 4.0 % in the median, 13.1 % at the "
      "90th percentile, of rows left out 5.0 % and 16.0 %; standard error of the value 1.2 %");
  EXPECT_EQ(read.elementwise, base.elementwise);
}

TEST(Merge, TakesOutWhatAFitOfMatmulsLeftOut) {
  sim::Calibration base = testing::shipped_calibration("h100-default");
  put_constant(base.constants, {"matmul.start", "9 us", "start (unit: time)", "s"});
  put_constant(base.constants, {"matmul.wave_share", "0.9", "share (unit: fraction)", "s"});
  const sim::Calibration merged = merge(base, "mine", std::vector<SourcedFit>{wave_fit()});
  const sim::Calibration read = sim::read_calibration(calibration_text(merged, ""), "mine.yaml");
  EXPECT_FALSE(read.matmul_start.has_value());
  EXPECT_EQ(read.matmul_refinement.wave_share, 0.25);
}

}  // namespace
}  // namespace stepcast::calibrate
