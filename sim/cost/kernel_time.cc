// Powers of four and their roots are products and square roots, which IEEE 754 rounds correctly: equal inputs give
// equal times on every machine.
#include "sim/cost/kernel_time.h"

#include <algorithm>
#include <cmath>

namespace stepcast::sim {
namespace {

constexpr std::int64_t kTile = 128;         // edge of a tile of a matmul's output
constexpr std::int64_t kTileQueries = 128;  // of a block of FlashAttention's kernels and cuDNN's
// An incomplete wave counts at most this many times its tiles: libraries split K among idle multiprocessors then. Of 2
// to 12, 5 and 6 leave the least to the tables of matmuls on A100 and H100 (calibrate/README.md).
constexpr double kMostSplits = 6;

double power_of_four(double x) { return (x * x) * (x * x); }

std::int64_t tiles_of(std::int64_t elements, std::int64_t edge) { return (elements + edge - 1) / edge; }

}  // namespace

double tile_area_factor(std::int64_t m, std::int64_t n, const MatmulRefinement& refinement,
                        std::int32_t multiprocessors) {
  if (m <= 0 || n <= 0 || (refinement.tile_share == 0 && refinement.wave_share == 0)) return 1;
  const double tiles = static_cast<double>(tiles_of(m, kTile)) * static_cast<double>(tiles_of(n, kTile));
  const auto padded = [&](std::int64_t edge) {
    const double whole = static_cast<double>(tiles_of(edge, kTile) * kTile);
    return (1 - refinement.tile_share) * static_cast<double>(edge) + refinement.tile_share * whole;
  };
  const double area = padded(m) * padded(n);
  const double all = multiprocessors > 0 ? static_cast<double>(multiprocessors) : 1;
  const double in_waves = std::min(std::ceil(tiles / all) * all, kMostSplits * tiles);
  const double wave_area = in_waves * static_cast<double>(kTile * kTile);
  const double refined = (1 - refinement.wave_share) * area + refinement.wave_share * std::max(area, wave_area);
  return refined / (static_cast<double>(m) * static_cast<double>(n));
}

double matmul_seconds(const MatmulShape& shape, const MatmulRate& rate, double memory_share,
                      const MatmulRefinement& refinement, const KernelRates& rates) {
  const double ramp = 1 + rate.k_half / static_cast<double>(std::max<std::int64_t>(1, shape.k));
  const double reached = rates.peak * rate.efficiency * rates.multiprocessor_share;
  const double area = tile_area_factor(shape.m, shape.n, refinement, rates.multiprocessors);
  const double slower = shape.accumulates ? refinement.accumulation : 1;
  const double work = shape.flops * ramp * area * slower / reached;
  const double sustained = refinement.sustained_after.seconds();
  const double drop = refinement.sustained_drop == 0 ? 0 : refinement.sustained_drop * work / (work + sustained);
  const double memory = shape.bytes / (memory_share * rates.memory);
  return std::sqrt(std::sqrt(power_of_four(work * (1 + drop)) + power_of_four(memory)));
}

double attention_slowdown(const AttentionConstants& constants, double head_dim, double keys, double tiles,
                          bool masked) {
  const double computed = masked ? 1 + constants.diagonal_keys / keys : 1;
  return computed * (1 + constants.head_dim_half / head_dim) * (1 + constants.sequence_half / keys) *
         (1 + constants.tiles_half / tiles);
}

std::int64_t query_tiles(std::int64_t queries) { return tiles_of(queries, kTileQueries); }

}  // namespace stepcast::sim
