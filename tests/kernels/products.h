// Matmuls by which kernels of other backends are held against the reference kernel in f64.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/kernels/fast_cases.h"

namespace stepcast::kernels {

struct ProductSize {
  std::int64_t m, n, k;
};

struct ProductForm {
  program::MatmulForm form;
  DType source, result;
  bool accumulate, bias;
};

// One element, odd extents, and extents around the tiles of kernels.
std::vector<ProductSize> product_sizes();
// Every form in f32, in bf16 and from bf16 to f32; alone, accumulated, and with a bias.
std::vector<ProductForm> product_forms();

// The operands a, b, c and, where the form has one, bias after the kernel ran on random ones (exact in bf16). c holds
// NaN before, unless it is accumulated. `absolute`: on their magnitudes.
std::vector<Buffer> multiply(const ProductSize& p, const ProductForm& f,
                             const std::function<void(const KernelContext&)>& kernel, StreamState* state,
                             bool absolute);

// The first element of c that is further from the reference's in f64 than rounding explains; empty when none is.
std::optional<std::string> product_difference(const ProductSize& p, const ProductForm& f,
                                              const std::function<void(const KernelContext&)>& kernel,
                                              StreamState* state);

}  // namespace stepcast::kernels
