#include "tests/kernels/products.h"

#include <cmath>

namespace stepcast::kernels {

std::vector<ProductSize> product_sizes() {
  return {{1, 1, 1}, {1, 7, 5}, {6, 5, 7}, {33, 65, 17}, {64, 64, 64}, {130, 96, 257}, {3, 300, 40}};
}

std::vector<ProductForm> product_forms() {
  std::vector<ProductForm> forms;
  for (const auto form : {program::MatmulForm::kNT, program::MatmulForm::kNN, program::MatmulForm::kTN}) {
    for (const auto source : {DType::kF32, DType::kBf16}) {
      for (const auto result : {DType::kF32, DType::kBf16}) {
        if (source == DType::kF32 && result == DType::kBf16) continue;
        forms.push_back({form, source, result, false, false});
        forms.push_back({form, source, result, true, false});
        forms.push_back({form, source, result, false, true});
      }
    }
  }
  return forms;
}

std::vector<Buffer> multiply(const ProductSize& p, const ProductForm& f,
                             const std::function<void(const KernelContext&)>& kernel, StreamState* state,
                             bool absolute) {
  Attributes attributes;
  attributes.form = f.form;
  const bool a_transposed = f.form == program::MatmulForm::kTN;
  const bool b_transposed = f.form == program::MatmulForm::kNT;
  const Shape shapes[] = {a_transposed ? Shape{p.k, p.m} : Shape{p.m, p.k},
                          b_transposed ? Shape{p.n, p.k} : Shape{p.k, p.n}, Shape{p.m, p.n}, Shape{p.n}};
  std::vector<Buffer> buffers;
  for (std::size_t i = 0; i < (f.bias ? 4U : 3U); ++i) {
    const Buffer random = random_buffer(DType::kBf16, shapes[i], "factor" + std::to_string(i));
    Buffer operand(i == 2 ? f.result : f.source, shapes[i]);  // NaN
    for (std::int64_t e = 0; e < operand.size() && (i != 2 || f.accumulate); ++e) {
      operand.set(e, absolute ? std::abs(random.at(e)) : random.at(e));
    }
    buffers.push_back(std::move(operand));
  }
  std::vector<Tensor> tensors;
  for (Buffer& buffer : buffers) tensors.push_back(buffer.tensor());
  kernel(KernelContext{.operands = tensors,
                       .attributes = &attributes,
                       .kind = OpKind::kMatmul,
                       .accumulate = f.accumulate,
                       .state = state});
  return buffers;
}

// A sum of k products, each rounded once at most, added one after the other in any order, errs by at most k roundings
// of the sum of the products' magnitudes (Higham 2002, Accuracy and Stability of Numerical Algorithms, section 3.1);
// that sum is the same product of the operands' magnitudes. One more for a bias or for what c held.
std::optional<std::string> product_difference(const ProductSize& p, const ProductForm& f,
                                              const std::function<void(const KernelContext&)>& kernel,
                                              StreamState* state) {
  const ProductForm in_f64{f.form, DType::kF64, DType::kF64, f.accumulate, f.bias};
  const Buffer got = multiply(p, f, kernel, state, false)[2];
  const Buffer exact = multiply(p, in_f64, reference_kernel(OpKind::kMatmul), nullptr, false)[2];
  const Buffer magnitude = multiply(p, in_f64, reference_kernel(OpKind::kMatmul), nullptr, true)[2];
  const double stored = f.result == DType::kBf16 ? kBf16Rounding : kF32Rounding;
  for (std::int64_t i = 0; i < exact.size(); ++i) {
    const double sum_error = static_cast<double>(p.k + 1) * kF32Rounding * magnitude.at(i);
    const double bound = sum_error + stored * (std::abs(exact.at(i)) + sum_error);
    if (std::abs(got.at(i) - exact.at(i)) <= bound) continue;  // not of a NaN
    return std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k) + " form " +
           std::to_string(static_cast<int>(f.form)) + ", source " + std::to_string(static_cast<int>(f.source)) +
           ", result " + std::to_string(static_cast<int>(f.result)) + (f.accumulate ? ", accumulated" : "") +
           (f.bias ? ", bias" : "") + ", element " + std::to_string(i) + ": " + std::to_string(got.at(i)) + " for " +
           std::to_string(exact.at(i));
  }
  return std::nullopt;
}

}  // namespace stepcast::kernels
