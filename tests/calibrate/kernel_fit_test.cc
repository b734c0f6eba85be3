// Constants recovered from tables that the cost model itself made.
#include "calibrate/kernel_fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace stepcast::calibrate {
namespace {

topology::DeviceSpec device() {
  topology::DeviceSpec d;
  d.name = "device";
  d.peak_bf16 = FlopsPerSecond(1e15);
  d.memory_bandwidth = BytesPerSecond(3e12);
  d.multiprocessors = 132;
  return d;
}

// What a table of the constants 0.7, 80, 0.85, a wave share of 0.3, 10 % slower accumulation and a start of 5 us says.
KernelRows<MatmulRow> table_of_matmuls() {
  sim::MatmulRefinement refinement;
  refinement.wave_share = 0.3;
  refinement.accumulation = 1.1;
  const sim::KernelRates rates = {1e15, 3e12, 132, 1};
  KernelRows<MatmulRow> rows;
  for (const std::int64_t n : {1024, 2560, 4096, 8192, 14336}) {
    for (const std::int64_t k : {256, 1024, 4096, 16384}) {
      for (const std::int64_t m : {16, 128, 384, 1024, 1536, 4096}) {
        MatmulRow row;
        const bool accumulates = m == 1536;
        row.shape = {
            m,          n, k, 2.0 * static_cast<double>(m * n * k), 2.0 * static_cast<double>(m * k + n * k + m * n),
            accumulates};
        row.seconds = sim::matmul_seconds(row.shape, {0.7, 80}, 0.85, refinement, rates) + 5e-6;
        rows.rows.push_back(row);
      }
    }
  }
  return rows;
}

double value_of(const KernelFit& fit, const std::string& name) {
  for (const FittedConstant& c : fit.constants) {
    if (c.name == name) return std::stod(c.value);
  }
  return -1;
}

TEST(KernelFit, RecoversMatmulsConstantsAndLeavesOutWhatIsNotThere) {
  sim::Calibration base;
  base.matmul_bf16 = 0.6;
  base.matmul_k_half = 50;
  base.matmul_memory = 0.7;
  base.kernel_gap = Duration(3'000'000);
  const KernelFit fit = fit_matmul(table_of_matmuls(), base, device());
  EXPECT_NEAR(value_of(fit, "matmul.bf16"), 0.7, 0.002);
  EXPECT_NEAR(value_of(fit, "matmul.k_half"), 80, 1);
  EXPECT_NEAR(value_of(fit, "matmul.memory"), 0.85, 0.002);
  EXPECT_NEAR(value_of(fit, "matmul.wave_share"), 0.3, 0.005);
  EXPECT_NEAR(value_of(fit, "matmul.accumulation"), 1.1, 0.005);
  EXPECT_NEAR(value_of(fit, "matmul.start"), 5, 0.05);  // "5 us"
  EXPECT_EQ(value_of(fit, "matmul.tile_share"), -1);
  EXPECT_EQ(value_of(fit, "matmul.sustained_drop"), -1);
  EXPECT_LT(fit.after.p90, 0.002);
  EXPECT_LT(fit.left_out.p90, 0.004);
  EXPECT_GT(fit.before.median, 0.05);
}

TEST(KernelFit, RefusesATableOfFewMatmulsByItsName) {
  KernelRows<MatmulRow> rows = table_of_matmuls();
  rows.file = "few.csv";
  rows.rows.resize(9);
  try {
    fit_matmul(rows, {}, device());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.problems()[0].where.file, "few.csv");
  }
}

TEST(KernelFit, RecoversAttentionsConstantsByKernel) {
  const sim::AttentionConstants truth = {
      .efficiency = 0.8, .head_dim_half = 40, .sequence_half = 300, .tiles_half = 90};
  KernelRows<AttentionRow> rows;
  for (const double head_dim : {64.0, 128.0, 256.0}) {
    for (const double keys : {256.0, 1024.0, 8192.0}) {
      for (const double tiles : {64.0, 512.0, 4096.0}) {
        const double rate = 1e15 * truth.efficiency / sim::attention_slowdown(truth, head_dim, keys, tiles, false);
        rows.rows.push_back({"X bwd", head_dim, keys, tiles, false, rate, 0});
      }
    }
  }
  rows.rows.push_back({"few fwd", 64, 1, 1, false, 1e12, 0});  // one row of a kernel is no table
  sim::Calibration base;
  base.attention_backward = {.efficiency = 0.5, .head_dim_half = 30, .sequence_half = 200, .tiles_half = 100};
  const std::vector<KernelFit> fits = fit_attention(rows, base, device());
  ASSERT_EQ(fits.size(), 1U);
  EXPECT_EQ(fits[0].kernel, "X bwd");
  EXPECT_NEAR(value_of(fits[0], "attention.backward.efficiency"), 0.8, 0.01);
  EXPECT_NEAR(value_of(fits[0], "attention.backward.head_dim_half"), 40, 1);
  EXPECT_NEAR(value_of(fits[0], "attention.backward.sequence_half"), 300, 5);
  EXPECT_NEAR(value_of(fits[0], "attention.backward.tiles_half"), 90, 2);
}

}  // namespace
}  // namespace stepcast::calibrate
