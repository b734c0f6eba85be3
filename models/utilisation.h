// Model FLOPs utilisation.
#pragma once

#include <cstdint>

namespace stepcast::models {

// The share of what `devices` could do that went into the model: its FLOP/s, of all of them together, over their dense
// peak FLOP/s (or any other unit in both). A data sheet's peak with sparsity is twice the dense one. Above 1 the inputs
// cannot belong together: tokens of a whole cluster over the peak of one device, say. Source: PaLM (arXiv 2204.02311),
// appendix B.
constexpr double utilisation(double flops_per_s, std::int64_t devices, double dense_peak_per_device) {
  return flops_per_s / (static_cast<double>(devices) * dense_peak_per_device);
}

}  // namespace stepcast::models
