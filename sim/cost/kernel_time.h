// What matmuls and fused attention take on a device that does nothing else, as functions of their shape. The cost
// model prices ops with these, and calibrate/ fits their constants to tables of kernels.
//
// Matmul: [ (2 A K (1 + K0/K) g D / (peak e s))^4 + (bytes / (f HBM))^4 ]^(1/4): a smooth roofline. A is the area that
// is computed: of what whole tiles of 128 x 128 add to M x N, and of what whole waves of such tiles over the
// multiprocessors add to that, a share each (libraries choose among tiles and split K, so that the whole of it is never
// paid and that of a few tiles is bounded; NVIDIA, Matrix Multiplication Background User's Guide). g: how much slower a
// product is that is added to its output, as weight gradients are. D: how much slower long kernels run than short ones,
// because the device's clock falls under its power limit or operands do not stay in its caches. s: the share of
// multiprocessors it runs on.
//
// Attention: calibration.h.
//
// A higher peak or memory rate never makes either slower: A does not depend on them, and time x (1 + d time / (time +
// t)) grows with time.
#pragma once

#include <cstdint>

#include "sim/cost/calibration.h"

namespace stepcast::sim {

struct MatmulShape {
  std::int64_t m = 0, n = 0, k = 0;  // k >= 1; m = 0: of many small products (attention's), whose area is not refined
  double flops = 0;
  double bytes = 0;          // read and written
  bool accumulates = false;  // into its output
};

// What the device offers to a kernel.
struct KernelRates {
  double peak = 0;                   // FLOP/s of the operands' type
  double memory = 0;                 // bytes/s
  std::int32_t multiprocessors = 0;  // that it runs on; 0: not known, waves cost nothing
  double multiprocessor_share = 1;   // of all
};

// Seconds, without the kernel's start.
double matmul_seconds(const MatmulShape& shape, const MatmulRate& rate, double memory_share,
                      const MatmulRefinement& refinement, const KernelRates& rates);

// M x N as computed over M x N: at least 1.
double tile_area_factor(std::int64_t m, std::int64_t n, const MatmulRefinement& refinement,
                        std::int32_t multiprocessors);

// Peak times efficiency over what attention reaches with heads of `head_dim` elements, queries that see `keys` keys in
// the mean, and `tiles` of 128 queries. Under the causal mask tiles on the diagonal are computed whole, though half of
// them is masked: diagonal_keys more for every query, half a tile's edge where tiles are square.
double attention_slowdown(const AttentionConstants& constants, double head_dim, double keys, double tiles, bool masked);

// Of one head's queries of one sequence.
std::int64_t query_tiles(std::int64_t queries);

}  // namespace stepcast::sim
