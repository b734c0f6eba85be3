// The form of a matmul's time, by hand, and what it promises.
#include "sim/cost/kernel_time.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stepcast::sim {
namespace {

constexpr KernelRates kRates = {1e15, 2e12, 132, 1};

MatmulShape shape_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto area = static_cast<double>(m) * static_cast<double>(n);
  const auto inner = static_cast<double>(k);
  return {m, n, k, 2 * area * inner, 2 * (static_cast<double>(m + n) * inner + area), false};
}

MatmulRefinement refinement(double tile_share, double wave_share) {
  MatmulRefinement r;
  r.tile_share = tile_share;
  r.wave_share = wave_share;
  return r;
}

TEST(KernelTime, PartsOfTilesAndWavesAreCountedByTheirShares) {
  EXPECT_EQ(tile_area_factor(100, 100, {}, 132), 1);
  // 192 x 128 in tiles of 128 x 128: 256 x 128 whole, half of the excess is 224 x 128.
  EXPECT_DOUBLE_EQ(tile_area_factor(192, 128, refinement(0.5, 0), 132), 224.0 / 192);
  // 12 x 12 tiles on 132 multiprocessors are two waves, 264 places for 144.
  EXPECT_DOUBLE_EQ(tile_area_factor(1536, 1536, refinement(0, 1), 132), 264.0 / 144);
  EXPECT_DOUBLE_EQ(tile_area_factor(1536, 1536, refinement(0, 0.25), 132), 0.75 + 0.25 * 264 / 144);
  // Ten tiles leave 122 places empty, but count six times at most.
  EXPECT_DOUBLE_EQ(tile_area_factor(128, 1280, refinement(0, 1), 132), 6);
  // Many small products have no area of their own; of a device of unknown size no wave is known.
  EXPECT_EQ(tile_area_factor(0, 0, refinement(1, 1), 132), 1);
  EXPECT_EQ(tile_area_factor(1536, 1536, refinement(0, 1), 0), 1);
}

TEST(KernelTime, LongMatmulsDropAndAccumulatingOnesAreSlower) {
  // 2 x 1000^3 x (1 + 1000/1000) at half of 1e15 is 8 us; the traffic, 6e6 bytes, is far below: 3 us to the fourth is 2
  // % of 8 us to the fourth.
  const MatmulShape shape = shape_of(1000, 1000, 1000);
  const double memory = 6e6 / 2e12;
  const auto smooth = [&](double work) { return std::pow(std::pow(work, 4) + std::pow(memory, 4), 0.25); };
  EXPECT_NEAR(matmul_seconds(shape, {0.5, 1000}, 1, {}, kRates), smooth(8e-6), 1e-15);
  MatmulRefinement r;
  r.sustained_drop = 0.5;
  r.sustained_after = Duration(8'000'000);  // at 8 us half of the drop shows: a quarter longer
  EXPECT_NEAR(matmul_seconds(shape, {0.5, 1000}, 1, r, kRates), smooth(10e-6), 1e-15);
  MatmulRefinement slower;
  slower.accumulation = 1.5;
  MatmulShape accumulating = shape;
  accumulating.accumulates = true;
  EXPECT_NEAR(matmul_seconds(accumulating, {0.5, 1000}, 1, slower, kRates), smooth(12e-6), 1e-15);
  EXPECT_EQ(matmul_seconds(shape, {0.5, 1000}, 1, slower, kRates), matmul_seconds(shape, {0.5, 1000}, 1, {}, kRates));
}

TEST(KernelTime, MaskedAttentionComputesTheDiagonalsTilesWhole) {
  // Each half point at its own value doubles the time; 64 keys on 256 seen add a quarter where there is a mask.
  const AttentionConstants c = {
      .efficiency = 1, .head_dim_half = 64, .sequence_half = 256, .tiles_half = 100, .diagonal_keys = 64};
  EXPECT_DOUBLE_EQ(attention_slowdown(c, 64, 256, 100, false), 8);
  EXPECT_DOUBLE_EQ(attention_slowdown(c, 64, 256, 100, true), 10);
  EXPECT_EQ(query_tiles(129), 2);
}

TEST(KernelTime, NoPartMakesAFasterDeviceOrASmallerMatmulSlower) {
  MatmulRefinement r = refinement(0.6, 0.7);
  r.accumulation = 1.2;
  r.sustained_drop = 1.1;
  r.sustained_after = Duration(60'000'000);
  for (const std::int64_t m : {1, 64, 100, 128, 129, 1000, 1408, 1409, 4096, 16900}) {
    for (const std::int64_t n : {96, 128, 1280, 4000, 28672}) {
      for (const std::int64_t k : {16, 1024, 16384}) {
        const double seconds = matmul_seconds(shape_of(m, n, k), {0.8, 90}, 0.8, r, kRates);
        const KernelRates peak = {1.1e15, 2e12, 132, 1}, memory = {1e15, 2.2e12, 132, 1},
                          fewer = {1e15, 2e12, 116, 116.0 / 132};
        EXPECT_LE(matmul_seconds(shape_of(m, n, k), {0.8, 90}, 0.8, r, peak), seconds);
        EXPECT_LE(matmul_seconds(shape_of(m, n, k), {0.8, 90}, 0.8, r, memory), seconds);
        EXPECT_GE(matmul_seconds(shape_of(m, n, k), {0.8, 90}, 0.8, r, fewer), seconds);
        EXPECT_GE(matmul_seconds(shape_of(m + 1, n, k), {0.8, 90}, 0.8, r, kRates), seconds);
        EXPECT_GE(matmul_seconds(shape_of(m, n, k + 1), {0.8, 90}, 0.8, r, kRates), seconds);
      }
    }
  }
}

}  // namespace
}  // namespace stepcast::sim
