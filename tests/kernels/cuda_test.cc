// The CUDA kernels against the reference kernels in f64, run as blocks of threads on the CPU (kernels/cuda/simt): the
// cases and bounds of fast_cases.h, f32 and bf16, outputs NaN before.
#include <gtest/gtest.h>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/reduce.h"
#include "tests/kernels/fast_cases.h"
#include "tests/kernels/products.h"

namespace stepcast::kernels {
namespace {

void expect_cases(const std::vector<FastCase>& cases) {
  for (const FastCase& c : cases) {
    const Kernel kernel = cuda::kernel_of(c.kind);
    ASSERT_NE(kernel, nullptr) << c.name;
    const std::vector<Buffer> exact = run_fast_case(c, DType::kF64, reference_kernel(c.kind), nullptr);
    for (const DType storage : {DType::kF32, DType::kBf16}) {
      const std::optional<std::string> wrong =
          difference(c, storage, run_fast_case(c, storage, kernel, nullptr), exact);
      ASSERT_FALSE(wrong) << *wrong;
    }
  }
}

TEST(Cuda, Elementwise) { expect_cases(elementwise_cases()); }
TEST(Cuda, Memory) { expect_cases(memory_cases()); }
TEST(Cuda, Norms) { expect_cases(norm_cases()); }
TEST(Cuda, NormsOfQueriesAndKeys) { expect_cases(qk_norm_cases()); }
TEST(Cuda, Activations) { expect_cases(activation_cases()); }
TEST(Cuda, Rotary) { expect_cases(rotary_cases()); }
TEST(Cuda, Embedding) { expect_cases(embedding_cases()); }
TEST(Cuda, Positions) { expect_cases(position_cases()); }
TEST(Cuda, Tokens) { expect_cases(token_cases()); }
TEST(Cuda, Dropout) { expect_cases(dropout_cases()); }
TEST(Cuda, Softmax) { expect_cases(softmax_cases()); }
TEST(Cuda, RowCopies) { expect_cases(row_copy_cases()); }
TEST(Cuda, CrossEntropy) { expect_cases(cross_entropy_cases()); }
TEST(Cuda, Scalars) { expect_cases(scalar_cases()); }
TEST(Cuda, Optimizer) { expect_cases(optimizer_cases()); }
TEST(Cuda, LargeRows) { expect_cases(large_row_cases()); }

TEST(Cuda, Attention) { expect_cases(attention_cases()); }
TEST(Cuda, ShareAttention) { expect_cases(share_attention_cases()); }
TEST(Cuda, UnfusedAttention) { expect_cases(unfused_attention_cases()); }

TEST(Cuda, Matmul) {
  for (const ProductSize& p : product_sizes()) {
    for (const ProductForm& f : product_forms()) {
      const std::optional<std::string> wrong = product_difference(p, f, cuda::matmul, nullptr);
      ASSERT_FALSE(wrong) << *wrong;
    }
  }
}

std::vector<FastCase> all_cases() {
  std::vector<FastCase> cases;
  for (const auto& more : {elementwise_cases(), memory_cases(), norm_cases(), qk_norm_cases(), activation_cases(),
                           rotary_cases(), embedding_cases(), position_cases(), token_cases(), dropout_cases(),
                           softmax_cases(), row_copy_cases(), cross_entropy_cases(), scalar_cases(), optimizer_cases(),
                           large_row_cases(), attention_cases(), share_attention_cases(), unfused_attention_cases()}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  return cases;
}

// Matmuls have cases of their own.
TEST(Cuda, EveryKindThatComputesHasAKernelAndACase) {
  std::vector<bool> has_case(program::kOpKindCount);
  for (const FastCase& c : all_cases()) has_case[static_cast<std::size_t>(c.kind)] = true;
  for (int k = 0; k < program::kOpKindCount; ++k) {
    const auto kind = static_cast<OpKind>(k);
    EXPECT_EQ(cuda::kernel_of(kind) != nullptr, reference_kernel(kind) != nullptr) << program::to_string(kind);
    if (kind == OpKind::kMatmul) continue;
    EXPECT_EQ(has_case[static_cast<std::size_t>(k)], reference_kernel(kind) != nullptr) << program::to_string(kind);
  }
}

// The same operands give the same bytes, whatever the order in which threads run: each run has another.
TEST(Cuda, ResultsRepeat) {
  constexpr std::size_t kStep = 7;  // a few of every kind
  const std::vector<FastCase> cases = all_cases();
  for (std::size_t at = 0; at < cases.size(); at += kStep) {
    const FastCase& c = cases[at];
    const std::vector<Buffer> once = run_fast_case(c, DType::kBf16, cuda::kernel_of(c.kind), nullptr);
    const std::vector<Buffer> again = run_fast_case(c, DType::kBf16, cuda::kernel_of(c.kind), nullptr);
    for (std::size_t i = 0; i < once.size(); ++i) ASSERT_EQ(once[i].bytes(), again[i].bytes()) << c.name;
  }
  const ProductSize p{130, 96, 257};
  const ProductForm f{program::MatmulForm::kTN, DType::kBf16, DType::kF32, true, false};
  EXPECT_EQ(multiply(p, f, cuda::matmul, nullptr, false)[2].bytes(),
            multiply(p, f, cuda::matmul, nullptr, false)[2].bytes());
}

__global__ void sum_blocks(const double* in, double* out) {
  const double sum = cuda::block_sum(in[cuda::first_element()]);
  out[cuda::first_element()] = sum;
}

// Of blocks of 1, 2 and 8 warps: small integers, so that every order gives the same sum.
TEST(Simt, SumsOverABlock) {
  for (const unsigned threads : {32U, 64U, 256U}) {
    std::vector<double> in(std::size_t{3} * threads);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<double>(i % 7);
    std::vector<double> out(in.size(), -1);
    cuda::launch({}, {.blocks = cuda::dim3(3), .threads = cuda::dim3(threads)}, &sum_blocks, in.data(), out.data());
    for (std::size_t i = 0; i < out.size(); ++i) {
      double sum = 0;
      for (unsigned t = 0; t < threads; ++t) sum += in[i / threads * threads + t];
      ASSERT_EQ(out[i], sum) << threads << " threads, element " << i;
    }
  }
}

__global__ void reverse_block(int* values) {
  int* shared = cuda::shared_memory<int>();
  shared[cuda::threadIdx.x] = values[cuda::threadIdx.x];
  cuda::__syncthreads();
  values[cuda::threadIdx.x] = shared[cuda::blockDim.x - 1 - cuda::threadIdx.x];
}

TEST(Simt, SharesMemoryWithinABlock) {
  std::vector<int> values(100);
  for (int i = 0; i < 100; ++i) values[static_cast<std::size_t>(i)] = i;
  cuda::launch({}, {.blocks = cuda::dim3(1), .threads = cuda::dim3(100), .shared_bytes = 400}, &reverse_block,
               values.data());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], 99 - i);
}

__global__ void vote(unsigned* votes, int* lowest) {
  const unsigned bits = cuda::__ballot_sync(0xffffffffU, cuda::threadIdx.x % 3 == 2);
  votes[cuda::threadIdx.x] = bits;
  lowest[cuda::threadIdx.x] = cuda::__ffs(bits);
}

// Of two warps, each of its own: bits 2, 5, ... 29 of the first; thread 32 of the block is lane 0 of the second, and
// 32 % 3 is 2.
TEST(Simt, VotesOfAWarp) {
  std::vector<unsigned> votes(64);
  std::vector<int> lowest(64);
  cuda::launch({}, {.blocks = cuda::dim3(1), .threads = cuda::dim3(64)}, &vote, votes.data(), lowest.data());
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(votes[i], i < 32 ? 0x24924924U : 0x49249249U) << i;
    EXPECT_EQ(lowest[i], i < 32 ? 3 : 1) << i;
  }
  EXPECT_EQ(cuda::__ffs(0), 0);
}

// Half of a warp waits for the other half, which waits for the block.
__global__ void never_meet() {
  if (cuda::threadIdx.x < 16) {
    cuda::__syncwarp();
  } else {
    cuda::__syncthreads();
  }
}

TEST(Simt, TellsThatThreadsCannotMeet) {
  EXPECT_THROW(cuda::launch({}, {.blocks = cuda::dim3(1), .threads = cuda::dim3(32)}, &never_meet), InternalError);
}

}  // namespace
}  // namespace stepcast::kernels
