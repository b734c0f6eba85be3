// Gradient norm, clip factor and Adam on f32 masters; formulas and source: kernels/adam.h, cpu/optimizer.cc. The sum of
// squares has two passes: blocks, whose number depends on the elements' alone, then one block over their sums.
#include <cmath>

#include "kernels/adam.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/reduce.h"

namespace stepcast::kernels::cuda {
namespace {

template <class S>
__global__ void sum_squares_of_blocks(const S* in, std::int64_t count, double* sums) {
  double sum = 0;
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    const auto x = static_cast<double>(widen(in[i]));
    sum += x * x;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void add_block_sums(const double* sums, std::int64_t blocks, double scale, float* out) {
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < blocks; i += blockDim.x) sum += sums[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) out[0] = static_cast<float>(static_cast<double>(out[0]) + scale * sum);
}

__global__ void clip(const float* squares, double max_norm, float* factor) {
  constexpr double kNormEpsilon = 1e-6;
  factor[0] = static_cast<float>(std::min(1.0, max_norm / (std::sqrt(static_cast<double>(squares[0])) + kNormEpsilon)));
}

// G, M and W: storage of the gradient, of the moments and of the working weight.
template <class G, class M, class W>
struct AdamOperands {
  const G* gradient;
  const float* factor;
  M* m;
  M* v;
  float* master;
  W* weight;  // nullptr: none
};

template <class G, class M, class W>
__global__ void step_elements(AdamStep<float> step, AdamOperands<G, M, W> at, std::int64_t count) {
  const float factor = at.factor[0];
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    const AdamElement<float> before{widen(at.m[i]), widen(at.v[i]), at.master[i]};
    const AdamElement<float> after = adam_update(step, before, widen(at.gradient[i]) * factor);
    at.m[i] = narrow<M>(after.m);
    at.v[i] = narrow<M>(after.v);
    at.master[i] = after.master;
    if (at.weight != nullptr) at.weight[i] = narrow<W>(after.master);
  }
}

template <class G, class M, class W>
void step_master(const KernelContext& context, bool has_weight) {
  const auto m = rows<M>(context, 2);
  const auto v = rows<M>(context, 3);
  const std::int64_t n = m.size();
  const auto factor = rows<float>(context, 1);
  CHECK(v.size() == n && factor.size() == 1, n, v.size());
  const AdamOperands<G, M, W> at{own_part<G>(context, 0, n),
                                 factor.data,
                                 m.data,
                                 v.data,
                                 own_part<float>(context, 4, n),
                                 has_weight ? own_part<W>(context, 5, n) : nullptr};
  launch_elements(context, n, &step_elements<G, M, W>, adam_step<float>(attributes(context), context.step), at, n);
}

template <class S>
void add_squares(const KernelContext& context) {
  const std::int64_t elements = rows<S>(context, 0).size();
  const auto out = rows<float>(context, 1);
  const std::int64_t parts = attributes(context).count;
  CHECK(out.size() == 1 && (parts == 0 || parts == context.index_count), out.size(), parts, context.index_count);
  CHECK(parts == 0 || elements % parts == 0, elements, parts);
  const std::int64_t n = parts == 0 ? elements : elements / parts;
  constexpr std::int64_t kElementsOfBlock = 16 * kBlock;
  constexpr std::int64_t kMostBlocks = 2048;
  const std::int64_t blocks = std::clamp<std::int64_t>((n + kElementsOfBlock - 1) / kElementsOfBlock, 1, kMostBlocks);
  auto* sums = reinterpret_cast<double*>(scratch(context, static_cast<std::size_t>(blocks) * sizeof(double)));
  launch(context, {.blocks = dim3(static_cast<unsigned>(blocks))}, &sum_squares_of_blocks<S>,
         own_part<S>(context, 0, n), n, sums);
  launch(context, grid_over_rows(1, blocks), &add_block_sums, sums, blocks, attributes(context).value, out.data);
}

}  // namespace

void sum_squares(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() { add_squares<S>(context); });
}

void clip_factor(const KernelContext& context) {
  const auto squares = rows<float>(context, 0);
  const auto factor = rows<float>(context, 1);
  CHECK(squares.size() == 1 && factor.size() == 1, squares.size(), factor.size());
  launch(context, {.blocks = dim3(1), .threads = dim3(1), .meets = false}, &clip, squares.data,
         attributes(context).value, factor.data);
}

void adam(const KernelContext& context) {
  const bool has_weight = context.operands.size() > 5;
  const program::DType weight = has_weight ? dtype(context, 5) : program::DType::kF32;
  for_device_storage(dtype(context, 0), [&]<class G>() {
    for_device_storage(dtype(context, 2), [&]<class M>() {
      for_device_storage(weight, [&]<class W>() { step_master<G, M, W>(context, has_weight); });
    });
  });
}

}  // namespace stepcast::kernels::cuda
