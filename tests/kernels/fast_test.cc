// The fast kernels against the reference kernels in f64, from the same operands: many shapes, f32 and bf16, outputs NaN
// before. Bounds: roundings of f32 (2^-24) of the largest exact result of the operand, or of 1, as each case says; what
// is stored as bf16, of 8 significant bits, is rounded once more by up to 2^-8 of the value.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/cpu_fast/fast.h"
#include "kernels/cpu_fast/vector.h"
#include "tests/kernels/fast_cases.h"
#include "tests/kernels/products.h"

namespace stepcast::kernels {
namespace {

void expect_case(const FastCase& c, const std::vector<Buffer>& exact, DType storage, StreamState* state) {
  const std::vector<Buffer> got = run_fast_case(c, storage, fast_kernel(c.kind), state);
  const std::optional<std::string> wrong = difference(c, storage, got, exact);
  ASSERT_FALSE(wrong) << *wrong;
}

// On one thread and on two.
void expect_cases(const std::vector<FastCase>& cases) {
  const std::unique_ptr<StreamState> states[] = {fast_state(1), fast_state(2)};
  for (const FastCase& c : cases) {
    ASSERT_TRUE(has_fast_kernel(c.kind)) << c.name;
    const std::vector<Buffer> exact = run_fast_case(c, DType::kF64, reference_kernel(c.kind), nullptr);
    for (const std::unique_ptr<StreamState>& state : states) {
      state->begin_thread();
      for (const DType storage : {DType::kF32, DType::kBf16}) expect_case(c, exact, storage, state.get());
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Fast, Norms) { expect_cases(norm_cases()); }
TEST(Fast, Activations) { expect_cases(activation_cases()); }
TEST(Fast, Elementwise) { expect_cases(elementwise_cases()); }
TEST(Fast, Rotary) { expect_cases(rotary_cases()); }
TEST(Fast, CrossEntropy) { expect_cases(cross_entropy_cases()); }
TEST(Fast, Optimizer) { expect_cases(optimizer_cases()); }
TEST(Fast, Attention) { expect_cases(attention_cases()); }
TEST(Fast, ShareAttention) { expect_cases(share_attention_cases()); }

TEST(Fast, Matmul) {
  for (const int threads : {1, 2}) {
    const std::unique_ptr<StreamState> state = fast_state(threads);
    state->begin_thread();
    for (const ProductSize& p : product_sizes()) {
      for (const ProductForm& f : product_forms()) {
        const std::optional<std::string> wrong = product_difference(p, f, fast_kernel(OpKind::kMatmul), state.get());
        ASSERT_FALSE(wrong) << *wrong;
      }
    }
  }
}

// The same operands give the same bytes, with one state and with another; kernels that oneDNN has no part in give them
// with any number of threads too.
TEST(Fast, ResultsRepeat) {
  std::vector<FastCase> cases = norm_cases();
  for (const auto& more : {activation_cases(), cross_entropy_cases(), optimizer_cases(), rotary_cases()}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  const std::unique_ptr<StreamState> one = fast_state(1);
  const std::unique_ptr<StreamState> two = fast_state(2);
  for (const FastCase& c : cases) {
    one->begin_thread();
    const std::vector<Buffer> alone = run_fast_case(c, DType::kBf16, fast_kernel(c.kind), one.get());
    two->begin_thread();
    const std::vector<Buffer> shared = run_fast_case(c, DType::kBf16, fast_kernel(c.kind), two.get());
    for (std::size_t i = 0; i < alone.size(); ++i) ASSERT_EQ(alone[i].bytes(), shared[i].bytes()) << c.name;
  }
  const ProductSize p{130, 96, 257};
  const ProductForm f{program::MatmulForm::kTN, DType::kBf16, DType::kF32, true, false};
  const std::unique_ptr<StreamState> again = fast_state(2);
  EXPECT_EQ(multiply(p, f, fast_kernel(OpKind::kMatmul), two.get(), false)[2].bytes(),
            multiply(p, f, fast_kernel(OpKind::kMatmul), again.get(), false)[2].bytes());
}

// f64 goes to the reference kernels, to the bit.
TEST(Fast, LeavesDoubleToTheReference) {
  const std::unique_ptr<StreamState> state = fast_state(1);
  std::vector<FastCase> cases = norm_cases();
  for (const auto& more : {activation_cases(), elementwise_cases(), rotary_cases(), cross_entropy_cases(),
                           optimizer_cases(), attention_cases(), share_attention_cases()}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  for (const FastCase& c : cases) {
    const std::vector<Buffer> exact = run_fast_case(c, DType::kF64, reference_kernel(c.kind), nullptr);
    const std::vector<Buffer> got = run_fast_case(c, DType::kF64, fast_kernel(c.kind), state.get());
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i].bytes(), exact[i].bytes()) << c.name;
  }
}

TEST(Fast, OtherKindsAreTheReferences) {
  EXPECT_EQ(fast_kernel(OpKind::kTokenLoad), reference_kernel(OpKind::kTokenLoad));
  EXPECT_EQ(fast_kernel(OpKind::kAllReduce), nullptr);
  EXPECT_FALSE(has_fast_kernel(OpKind::kSoftmaxForward));
}

TEST(Fast, RefusesToRunWithoutItsState) {
  const ProductSize p{6, 5, 7};
  const ProductForm f{program::MatmulForm::kNT, DType::kF32, DType::kF32, false, false};
  EXPECT_THROW(multiply(p, f, fast_kernel(OpKind::kMatmul), nullptr, false), InternalError);
  EXPECT_THROW(fast_state(0), InternalError);
}

// What vector.h promises: 3e-7 over the whole range; far below it, next to nothing.
TEST(Exponential, IsWithinItsBound) {
  for (int i = -87000; i <= 88000; i += 7) {
    const float x = static_cast<float>(i) / 1000.0F;
    const double exact = std::exp(static_cast<double>(x));
    ASSERT_LE(std::abs(static_cast<double>(cpu_fast::exponential(x)) - exact), 3e-7 * exact) << x;
  }
  EXPECT_EQ(cpu_fast::exponential(0.0F), 1.0F);
  EXPECT_LT(cpu_fast::exponential(-1e30F), 2e-38F);
  EXPECT_TRUE(std::isnan(cpu_fast::exponential(std::nanf(""))));
}

}  // namespace
}  // namespace stepcast::kernels
