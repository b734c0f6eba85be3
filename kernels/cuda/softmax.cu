// Causal softmax over materialised scores, with ALiBi, and its gradient; formulas and source: cpu/attention_unfused.cc.
// A block for each row.
#include <cmath>

#include "kernels/cpu/attention_layout.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/reduce.h"

namespace stepcast::kernels::cuda {
namespace {

struct OwnHeads {
  std::int64_t count;
  std::int64_t first;     // in the model
  std::int64_t of_model;  // 0: no ALiBi
};

template <class S>
__global__ void softmax_rows(Rows<S> scores, OwnHeads heads, S* probabilities) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t sequence = scores.width;
  const std::int64_t query = row % sequence;
  const double slope =
      heads.of_model == 0 ? 0 : cpu::alibi_slope(heads.first + row / sequence % heads.count, heads.of_model);
  const S* in = scores[row];
  const auto score = [&](std::int64_t key) {
    return widen(in[key]) - static_cast<float>(slope * static_cast<double>(query - key));
  };
  const float lowest = -std::numeric_limits<float>::infinity();
  float largest = lowest;
  for (std::int64_t j = threadIdx.x; j <= query; j += blockDim.x) largest = Max()(largest, score(j));
  largest = over_block<Max>(largest, lowest);
  double total = 0;
  for (std::int64_t j = threadIdx.x; j <= query; j += blockDim.x) {
    total += static_cast<double>(std::exp(score(j) - largest));
  }
  const float sum = static_cast<float>(block_sum(total));
  S* out = probabilities + row * sequence;
  for (std::int64_t j = threadIdx.x; j < sequence; j += blockDim.x) {
    out[j] = j <= query ? narrow<S>(std::exp(score(j) - largest) / sum) : S{};
  }
}

template <class S>
__global__ void softmax_gradients(Rows<S> probabilities, S* gradient) {
  const std::int64_t row = blockIdx.x;
  const S* p = probabilities[row];
  S* g = gradient + row * probabilities.width;
  double sum = 0;
  for (std::int64_t j = threadIdx.x; j < probabilities.width; j += blockDim.x) {
    sum += static_cast<double>(widen(p[j]) * widen(g[j]));
  }
  const float mean = static_cast<float>(block_sum(sum));
  for (std::int64_t j = threadIdx.x; j < probabilities.width; j += blockDim.x) {
    g[j] = narrow<S>(widen(p[j]) * (widen(g[j]) - mean));
  }
}

}  // namespace

void softmax_forward(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() {
    const auto scores = rows<S>(context, 0);
    const auto probabilities = rows<S>(context, 1);
    CHECK(probabilities.size() == scores.size() && scores.count % scores.width == 0, scores.count, scores.width);
    const program::Attributes& a = attributes(context);
    CHECK(a.count == 0 || a.heads > 0, a.heads);
    const OwnHeads heads{a.heads, context.index * a.heads, a.count};
    launch(context, grid_over_rows(scores.count, scores.width), &softmax_rows<S>, scores, heads, probabilities.data);
  });
}

void softmax_backward(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() {
    const auto probabilities = rows<S>(context, 0);
    const auto gradient = rows<S>(context, 1);
    CHECK(probabilities.size() == gradient.size(), probabilities.size(), gradient.size());
    launch(context, grid_over_rows(probabilities.count, probabilities.width), &softmax_gradients<S>, probabilities,
           gradient.data);
  });
}

}  // namespace stepcast::kernels::cuda
