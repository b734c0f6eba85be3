// Vocabulary-parallel cross-entropy; formulas and source: cpu/cross_entropy.cc. A block for each token; one block for
// the loss. Targets lie in device memory, so those beyond all holders are not refused: they count as other holders'.
#include <cmath>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/reduce.h"

namespace stepcast::kernels::cuda {
namespace {

template <class S>
__global__ void row_max(Rows<S> logits, float* max) {
  const std::int64_t t = blockIdx.x;
  const float lowest = -std::numeric_limits<float>::infinity();
  float largest = lowest;
  for (std::int64_t v = threadIdx.x; v < logits.width; v += blockDim.x) largest = Max()(largest, widen(logits[t][v]));
  largest = over_block<Max>(largest, lowest);
  if (threadIdx.x == 0) max[t] = largest;
}

// The sum of exp and the target's logit; `first` is the number of column 0 in the whole vocabulary.
template <class S>
__global__ void row_sums(Rows<S> logits, const float* max, const std::int32_t* targets, std::int64_t first,
                         float* sums) {
  const std::int64_t t = blockIdx.x;
  double sum = 0;
  for (std::int64_t v = threadIdx.x; v < logits.width; v += blockDim.x) {
    sum += static_cast<double>(std::exp(widen(logits[t][v]) - max[t]));
  }
  sum = block_sum(sum);
  if (threadIdx.x != 0) return;
  const std::int64_t target = targets[t] - first;
  sums[t] = static_cast<float>(sum);
  sums[logits.count + t] = target >= 0 && target < logits.width ? widen(logits[t][target]) : 0.0F;
}

__global__ void add_losses(const float* max, const float* sums, std::int64_t tokens, double scale, float* total) {
  double sum = 0;
  for (std::int64_t t = threadIdx.x; t < tokens; t += blockDim.x) {
    sum += std::log(static_cast<double>(sums[t])) + static_cast<double>(max[t]) - static_cast<double>(sums[tokens + t]);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) total[0] = static_cast<float>(static_cast<double>(total[0]) + scale * sum);
}

template <class S>
__global__ void logit_gradients(const float* max, const float* sums, const std::int32_t* targets, std::int64_t first,
                                float scale, Rows<S> logits) {
  const std::int64_t t = blockIdx.x;
  const std::int64_t target = targets[t] - first;
  const float inverse_sum = 1.0F / sums[t];
  S* row = logits[t];
  for (std::int64_t v = threadIdx.x; v < logits.width; v += blockDim.x) {
    const float probability = std::exp(widen(row[v]) - max[t]) * inverse_sum;
    row[v] = narrow<S>(scale * (v == target ? probability - 1.0F : probability));
  }
}

}  // namespace

void cross_entropy_max(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() {
    const auto logits = rows<S>(context, 0);
    const auto max = rows<float>(context, 1);
    CHECK(max.size() == logits.count && logits.width > 0, max.size(), logits.count, logits.width);
    launch(context, grid_over_rows(logits.count, logits.width), &row_max<S>, logits, max.data);
  });
}

void cross_entropy_sum(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() {
    const auto logits = rows<S>(context, 0);
    const auto max = rows<float>(context, 1);
    const auto targets = rows<std::int32_t>(context, 2);
    const auto sums = rows<float>(context, 3);
    const std::int64_t tokens = logits.count;
    CHECK(max.size() == tokens && targets.size() == tokens && sums.size() == 2 * tokens, tokens, max.size(),
          targets.size(), sums.size());
    launch(context, grid_over_rows(tokens, logits.width), &row_sums<S>, logits, max.data, targets.data,
           context.index * logits.width, sums.data);
  });
}

void cross_entropy_loss(const KernelContext& context) {
  const auto max = rows<float>(context, 0);
  const auto sums = rows<float>(context, 1);
  const auto total = rows<float>(context, 2);
  const std::int64_t tokens = max.size();
  CHECK(sums.size() == 2 * tokens && total.size() == 1, sums.size(), tokens, total.size());
  launch(context, grid_over_rows(1, tokens), &add_losses, max.data, sums.data, tokens, attributes(context).value,
         total.data);
}

void cross_entropy_backward(const KernelContext& context) {
  for_device_storage(dtype(context, 3), [&]<class S>() {
    const auto max = rows<float>(context, 0);
    const auto sums = rows<float>(context, 1);
    const auto targets = rows<std::int32_t>(context, 2);
    const auto logits = rows<S>(context, 3);
    const std::int64_t tokens = logits.count;
    CHECK(max.size() == tokens && targets.size() == tokens && sums.size() == 2 * tokens, tokens, max.size(),
          targets.size(), sums.size());
    launch_rows(context, tokens, logits.width, &logit_gradients<S>, max.data, sums.data, targets.data,
                context.index * logits.width, static_cast<float>(attributes(context).value), logits);
  });
}

}  // namespace stepcast::kernels::cuda
