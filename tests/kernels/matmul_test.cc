// The three forms of matmul against the definition, a triple loop in double.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/kernels/tensors.h"

namespace stepcast::kernels {
namespace {

using program::MatmulForm;

struct Size {
  std::int64_t m, n, k;
};

// Odd sizes: below and above the column block (256) and the unrolling (4), and with one extent of 1.
constexpr std::array<Size, 7> kSizes = {
    {{1, 1, 1}, {3, 5, 7}, {2, 259, 3}, {17, 33, 4}, {5, 1, 66}, {1, 300, 18}, {19, 256, 35}}};

struct Operands {
  Buffer a;
  Buffer b;
  std::vector<double> product;  // c[m][n], in double
};

Operands operands_of(MatmulForm form, Size s, DType dtype) {
  const bool a_transposed = form == MatmulForm::kTN;
  const bool b_transposed = form == MatmulForm::kNT;
  Operands result{random_buffer(dtype, a_transposed ? Shape{s.k, s.m} : Shape{s.m, s.k}, "a"),
                  random_buffer(dtype, b_transposed ? Shape{s.n, s.k} : Shape{s.k, s.n}, "b"),
                  {}};
  for (std::int64_t m = 0; m < s.m; ++m) {
    for (std::int64_t n = 0; n < s.n; ++n) {
      double sum = 0;
      for (std::int64_t k = 0; k < s.k; ++k) {
        sum += result.a.at(a_transposed ? k * s.m + m : m * s.k + k) *
               result.b.at(b_transposed ? n * s.k + k : k * s.n + n);
      }
      result.product.push_back(sum);
    }
  }
  return result;
}

Attributes with_form(MatmulForm form) {
  Attributes attributes;
  attributes.form = form;
  return attributes;
}

void expect_product(MatmulForm form, Size s, DType in, DType out, double tolerance, bool accumulate) {
  Operands o = operands_of(form, s, in);
  Buffer c(out, {s.m, s.n});
  const Buffer before = random_buffer(out, {s.m, s.n}, "c");
  if (accumulate) c = before;
  run(OpKind::kMatmul, with_form(form), {&o.a, &o.b, &c}, {.accumulate = accumulate});
  for (std::int64_t i = 0; i < c.size(); ++i) {
    const double expected = o.product[static_cast<std::size_t>(i)] + (accumulate ? before.at(i) : 0.0);
    ASSERT_NEAR(c.at(i), expected, tolerance)
        << "form " << static_cast<int>(form) << ' ' << s.m << 'x' << s.n << 'x' << s.k << " element " << i;
  }
}

constexpr std::array<MatmulForm, 3> kForms = {MatmulForm::kNT, MatmulForm::kNN, MatmulForm::kTN};

// Error bound of a sum of k products in a type of unit roundoff u: k * u * sum|a b| (Higham, Accuracy and Stability of
// Numerical Algorithms, eq. 3.5). Products of two normals have mean magnitude 2/pi and rarely exceed 20, and the sum
// has at most 66 terms plus c: 70 * u * 140 stays above it. u is 2^-24 for f32 and 2^-53 for f64.
TEST(Matmul, EqualsTheDefinitionInEveryForm) {
  for (const MatmulForm form : kForms) {
    for (const Size& s : kSizes) {
      for (const bool accumulate : {false, true}) {
        expect_product(form, s, DType::kF64, DType::kF64, 70 * 140 * 0x1p-53, accumulate);
        expect_product(form, s, DType::kF32, DType::kF32, 70 * 140 * 0x1p-24, accumulate);
        // Inputs are exact in bf16, the sum is kept in f32: the same bound as for f32.
        expect_product(form, s, DType::kBf16, DType::kF32, 70 * 140 * 0x1p-24, accumulate);
      }
    }
  }
}

// bf16 results are the f32 results rounded once: half a step, 2^-8 relative for 8 significant bits, on values whose
// magnitude is below 64 here (66 products of two normals have a standard deviation of 8.1).
TEST(Matmul, RoundsBf16ResultsOnce) {
  for (const MatmulForm form : kForms) {
    for (const Size& s : kSizes) {
      expect_product(form, s, DType::kBf16, DType::kBf16, 64 * 0x1p-8 + 70 * 140 * 0x1p-24, false);
    }
  }
}

// [1 2; 3 4] [5 6; 7 8] = [19 22; 43 50]. NT takes b transposed, TN takes a transposed.
TEST(Matmul, MultipliesByHand) {
  Buffer a(DType::kF32, {2, 2}, {1, 2, 3, 4});
  Buffer a_t(DType::kF32, {2, 2}, {1, 3, 2, 4});
  Buffer b(DType::kF32, {2, 2}, {5, 6, 7, 8});
  Buffer b_t(DType::kF32, {2, 2}, {5, 7, 6, 8});
  Buffer c(DType::kF32, {2, 2});
  const std::vector<double> expected = {19, 22, 43, 50};
  run(OpKind::kMatmul, with_form(MatmulForm::kNN), {&a, &b, &c});
  EXPECT_EQ(c.values(), expected);
  run(OpKind::kMatmul, with_form(MatmulForm::kNT), {&a, &b_t, &c});
  EXPECT_EQ(c.values(), expected);
  run(OpKind::kMatmul, with_form(MatmulForm::kTN), {&a_t, &b, &c});
  EXPECT_EQ(c.values(), expected);
}

// Tensor parallelism splits columns of c over ranks: each element is the same sum in the same order.
TEST(Matmul, GivesTheSameBytesForASplitOfTheColumns) {
  Buffer a = random_buffer(DType::kF32, {5, 37}, "a");
  Buffer b = random_buffer(DType::kF32, {300, 37}, "b");
  Buffer whole(DType::kF32, {5, 300});
  run(OpKind::kMatmul, with_form(MatmulForm::kNT), {&a, &b, &whole});
  const std::vector<double> rows = b.values();
  for (std::int64_t half = 0; half < 2; ++half) {
    const auto first = rows.begin() + half * 150 * 37;
    Buffer part(DType::kF32, {150, 37}, std::vector<double>(first, first + 150 * 37));
    Buffer c(DType::kF32, {5, 150});
    run(OpKind::kMatmul, with_form(MatmulForm::kNT), {&a, &part, &c});
    for (std::int64_t m = 0; m < 5; ++m) {
      for (std::int64_t n = 0; n < 150; ++n) ASSERT_EQ(c.at(m * 150 + n), whole.at(m * 300 + half * 150 + n));
    }
  }
}

TEST(Matmul, RefusesShapesThatDoNotFit) {
  Buffer a = random_buffer(DType::kF32, {2, 3}, "a");
  Buffer b = random_buffer(DType::kF32, {4, 5}, "b");
  Buffer c(DType::kF32, {2, 4});
  EXPECT_THROW(run(OpKind::kMatmul, with_form(MatmulForm::kNT), {&a, &b, &c}), InternalError);
}

}  // namespace
}  // namespace stepcast::kernels
