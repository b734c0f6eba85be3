// Matmuls by cuBLASLt: what its descriptors say, run by a library of the same functions on the CPU (fake_cublaslt.cc)
// and held against the reference kernel.
#include <gtest/gtest.h>

#include <array>

#include "kernels/cuda/cublas_matmul.h"
#include "tests/kernels/fake_cublaslt.h"
#include "tests/kernels/products.h"

namespace stepcast::kernels {
namespace {

using cuda::CublasMatmuls;
using cuda::Element;
using cuda::MatmulOperands;
using cuda::MatmulShape;

class Cublas : public ::testing::Test {
 protected:
  Cublas() { cublaslt_calls() = {}; }

  // As the matmul kernel of kernels/cuda/matmul.cu does it.
  static bool run(CublasMatmuls& matmuls, const KernelContext& context) {
    MatmulOperands operands;
    operands.a = context.operands[0].data;
    operands.b = context.operands[1].data;
    operands.c = context.operands[2].data;
    if (context.operands.size() > 3) operands.bias = context.operands[3].data;
    return matmuls.multiply(cuda::matmul_shape(context), operands);
  }

  std::vector<std::byte> workspace = std::vector<std::byte>(4096);
};

TEST_F(Cublas, MultipliesInEveryForm) {
  CublasMatmuls matmuls(nullptr, workspace);
  for (const ProductSize& p : product_sizes()) {
    for (const ProductForm& f : product_forms()) {
      if (f.bias && f.result != f.source) continue;  // refused: the next test
      const std::optional<std::string> wrong = product_difference(
          p, f,
          [&](const KernelContext& context) {
            if (context.operands[0].type.dtype == DType::kF64) return reference_kernel(OpKind::kMatmul)(context);
            EXPECT_TRUE(run(matmuls, context));
          },
          nullptr);
      ASSERT_FALSE(wrong) << *wrong;
    }
  }
}

// The epilogue's bias is of the result's type, ours of the factors'.
TEST_F(Cublas, RefusesABiasOfAnotherType) {
  CublasMatmuls matmuls(nullptr, workspace);
  bool taken = true;
  const ProductForm form{program::MatmulForm::kNT, DType::kBf16, DType::kF32, false, true};
  multiply(
      {6, 5, 7}, form, [&](const KernelContext& context) { taken = run(matmuls, context); }, nullptr, false);
  EXPECT_FALSE(taken);
  EXPECT_EQ(cublaslt_calls().matmuls, 0);
}

TEST_F(Cublas, AsksOnceForEachShape) {
  CublasMatmuls matmuls(nullptr, workspace);
  std::vector<float> memory(3 * 64 + 1, 1.0F);
  float* base = memory.data();
  const MatmulShape shape{.rows = 2, .columns = 3, .depth = 4};
  const auto call = [&](const MatmulShape& s, std::ptrdiff_t offset) {
    return matmuls.multiply(s, {.a = base, .b = base + 64, .c = base + 128 + offset});
  };
  EXPECT_TRUE(call(shape, 0));
  EXPECT_TRUE(call(shape, 0));
  EXPECT_EQ(cublaslt_calls().heuristics, 1);
  EXPECT_EQ(cublaslt_calls().matmuls, 2);
  MatmulShape accumulated = shape;
  accumulated.accumulate = true;
  EXPECT_TRUE(call(accumulated, 0));
  EXPECT_EQ(cublaslt_calls().heuristics, 2);
  EXPECT_TRUE(call(shape, 1));  // another alignment: 4 bytes
  EXPECT_EQ(cublaslt_calls().heuristics, 3);
  EXPECT_EQ(cublaslt_calls().matmuls, 4);
}

// Partial sums neither in the result's type nor in place; all of the workspace.
TEST_F(Cublas, KeepsPartialSumsInF32) {
  CublasMatmuls matmuls(nullptr, workspace);
  std::vector<float> memory(64, 1.0F);
  EXPECT_TRUE(matmuls.multiply({.rows = 2, .columns = 2, .depth = 2},
                               {.a = memory.data(), .b = memory.data(), .c = memory.data() + 32}));
  EXPECT_EQ(cublaslt_calls().reduction_schemes, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  EXPECT_EQ(cublaslt_calls().workspace_bytes, 4096U);
}

TEST_F(Cublas, DestroysWhatItMakes) {
  {
    CublasMatmuls matmuls(nullptr, workspace);
    std::vector<float> memory(64, 1.0F);
    EXPECT_TRUE(matmuls.multiply({.rows = 2, .columns = 2, .depth = 2},
                                 {.a = memory.data(), .b = memory.data(), .c = memory.data() + 32}));
    EXPECT_EQ(cublaslt_calls().alive, 5);  // a handle, an operation and three layouts
  }
  EXPECT_EQ(cublaslt_calls().alive, 0);
}

// OFP8, table 1: one; the largest; the smallest normal; the smallest subnormal.
TEST(Ofp8, HasTheValuesOfTheStandard) {
  EXPECT_EQ(e4m3_value(0x38), 1.0F);
  EXPECT_EQ(e4m3_value(0x7e), 448.0F);
  EXPECT_EQ(e4m3_value(0x08), 0x1p-6F);
  EXPECT_EQ(e4m3_value(0x81), -0x1p-9F);
  EXPECT_EQ(e5m2_value(0x3c), 1.0F);
  EXPECT_EQ(e5m2_value(0x7b), 57344.0F);
  EXPECT_EQ(e5m2_value(0x04), 0x1p-14F);
  EXPECT_EQ(e5m2_value(0x81), -0x1p-16F);
}

// Values that both types have, by their bits.
struct Ofp8Value {
  float value;
  std::uint8_t e4m3, e5m2;
};
constexpr Ofp8Value kValues[] = {{0, 0x00, 0x00},  {1, 0x38, 0x3c},   {-1, 0xb8, 0xbc}, {1.5, 0x3c, 0x3e},
                                 {-2, 0xc0, 0xc0}, {0.5, 0x30, 0x38}, {3, 0x44, 0x42}};

const Ofp8Value& value_at(std::int64_t i, std::int64_t offset) {
  return kValues[static_cast<std::size_t>((i * i + offset * i + offset) % std::ssize(kValues))];
}

// c[32, 48] = 0.5 * 0.25 * a[32, 64] b[48, 64]^T: sums of eighths below 2^10, exact in f32.
void expect_8_bit_product(Element a_type, Element b_type) {
  constexpr std::int64_t kRows = 32, kColumns = 48, kDepth = 64;
  alignas(16) static std::array<std::uint8_t, kRows * kDepth> a;
  alignas(16) static std::array<std::uint8_t, kColumns * kDepth> b;
  alignas(16) static std::array<float, kRows * kColumns> c;
  const auto bits = [](const Ofp8Value& v, Element type) { return type == Element::kE4m3 ? v.e4m3 : v.e5m2; };
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = bits(value_at(static_cast<std::int64_t>(i), 3), a_type);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = bits(value_at(static_cast<std::int64_t>(i), 5), b_type);
  c.fill(std::nanf(""));
  const float a_scale = 0.5F;
  const float b_scale = 0.25F;
  std::vector<std::byte> workspace(16);
  CublasMatmuls matmuls(nullptr, workspace);
  const MatmulShape shape{.rows = kRows,
                          .columns = kColumns,
                          .depth = kDepth,
                          .b_transposed = true,
                          .a = a_type,
                          .b = b_type,
                          .result = Element::kF32};
  ASSERT_TRUE(
      matmuls.multiply(shape, {.a = a.data(), .b = b.data(), .c = c.data(), .a_scale = &a_scale, .b_scale = &b_scale}));
  for (std::int64_t m = 0; m < kRows; ++m) {
    for (std::int64_t n = 0; n < kColumns; ++n) {
      float sum = 0;
      for (std::int64_t k = 0; k < kDepth; ++k)
        sum += value_at(m * kDepth + k, 3).value * value_at(n * kDepth + k, 5).value;
      ASSERT_EQ(c[static_cast<std::size_t>(m * kColumns + n)], sum * 0.125F) << m << ", " << n;
    }
  }
}

TEST_F(Cublas, MultipliesEightBitsWithScales) {
  expect_8_bit_product(Element::kE4m3, Element::kE4m3);
  expect_8_bit_product(Element::kE4m3, Element::kE5m2);
  expect_8_bit_product(Element::kE5m2, Element::kE4m3);
}

TEST_F(Cublas, RefusesWhatEightBitsCannot) {
  CublasMatmuls matmuls(nullptr, workspace);
  alignas(16) std::array<std::uint8_t, 1024> bytes{};
  alignas(16) std::array<float, 1024> c{};
  const float scale = 1;
  MatmulShape shape{
      .rows = 16, .columns = 16, .depth = 24, .b_transposed = true, .a = Element::kE4m3, .b = Element::kE4m3};
  const MatmulOperands operands{
      .a = bytes.data(), .b = bytes.data(), .c = c.data(), .a_scale = &scale, .b_scale = &scale};
  EXPECT_FALSE(matmuls.multiply(shape, operands));  // 24 is no multiple of 16
  EXPECT_FALSE(matmuls.multiply(shape, operands));
  EXPECT_EQ(cublaslt_calls().heuristics, 1);
  shape.depth = 32;
  EXPECT_TRUE(matmuls.multiply(shape, operands));
  MatmulOperands unaligned = operands;
  unaligned.a = bytes.data() + 8;
  EXPECT_FALSE(matmuls.multiply(shape, unaligned));
  MatmulShape wide = shape;
  wide.a = wide.b = Element::kE5m2;
  EXPECT_FALSE(matmuls.multiply(wide, operands));
  shape.b_transposed = false;
  EXPECT_THROW(matmuls.multiply(shape, operands), InternalError);
}

}  // namespace
}  // namespace stepcast::kernels
