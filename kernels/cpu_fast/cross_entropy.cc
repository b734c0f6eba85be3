// The three passes of cross-entropy over the logits; formulas and their source: cpu/cross_entropy.cc. Sums of
// exponentials are in double, in lanes.
#include <algorithm>

#include "kernels/cpu/reference.h"
#include "kernels/cpu_fast/fast_kernels.h"
#include "kernels/cpu_fast/float_rows.h"
#include "kernels/cpu_fast/parallel.h"
#include "kernels/cpu_fast/vector.h"

namespace stepcast::kernels::cpu_fast {
namespace {

using cpu::Rows;
using cpu::rows;

// logits become scale * exp(logit - largest) / sum.
[[STEPCAST_VECTORISED]] void scaled_softmax(const float* logits, float largest, float inverse_sum, float scale,
                                            std::int64_t n, float* out) {
#pragma GCC ivdep  // in place where logits are f32
  for (std::int64_t i = 0; i < n; ++i) out[i] = scale * (exponential(logits[i] - largest) * inverse_sum);
}

void require_targets(const KernelContext& context, const Rows<std::int32_t>& targets, std::int64_t width) {
  const std::int64_t vocabulary = context.index_count * width;
  for (std::int64_t t = 0; t < targets.size(); ++t) {
    CHECK(targets.data[t] >= 0 && targets.data[t] < vocabulary, targets.data[t], vocabulary);
  }
}

template <class S>
void row_max(const KernelContext& context) {
  const auto logits = rows<S>(context, 0);
  const auto max = rows<float>(context, 1);
  CHECK(max.size() == logits.count && logits.width > 0, max.size(), logits.count, logits.width);
  parallel_for(logits.count, least_rows(logits.width), [&](std::int64_t begin, std::int64_t end) {
    FloatInput<S> in(logits.width);
    for (std::int64_t t = begin; t < end; ++t) max.data[t] = largest_of(in.of(logits[t], logits.width), logits.width);
  });
}

template <class S>
void row_sum(const KernelContext& context) {
  const auto logits = rows<S>(context, 0);
  const auto max = rows<float>(context, 1);
  const auto targets = rows<std::int32_t>(context, 2);
  const auto sums = rows<float>(context, 3);
  const std::int64_t tokens = logits.count;
  CHECK(max.size() == tokens && targets.size() == tokens && sums.size() == 2 * tokens, tokens, max.size(),
        targets.size(), sums.size());
  require_targets(context, targets, logits.width);
  parallel_for(tokens, least_rows(logits.width), [&](std::int64_t begin, std::int64_t end) {
    FloatInput<S> in(logits.width);
    for (std::int64_t t = begin; t < end; ++t) {
      const float* from = in.of(logits[t], logits.width);
      const std::int64_t target = targets.data[t] - context.index * logits.width;
      sums.data[t] = static_cast<float>(sum_of_exponentials(from, logits.width, max.data[t]));
      sums.data[tokens + t] = target >= 0 && target < logits.width ? from[target] : 0.0F;
    }
  });
}

template <class S>
void backward(const KernelContext& context) {
  const auto max = rows<float>(context, 0);
  const auto sums = rows<float>(context, 1);
  const auto targets = rows<std::int32_t>(context, 2);
  const auto logits = rows<S>(context, 3);
  const std::int64_t tokens = logits.count;
  CHECK(max.size() == tokens && targets.size() == tokens && sums.size() == 2 * tokens, tokens, max.size(),
        targets.size(), sums.size());
  require_targets(context, targets, logits.width);
  const auto scale = static_cast<float>(cpu::attributes(context).value);
  parallel_for(tokens, least_rows(logits.width), [&](std::int64_t begin, std::int64_t end) {
    FloatInput<S> in(logits.width);
    FloatOutput<S> out(logits.width);
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t target = targets.data[t] - context.index * logits.width;
      const float inverse_sum = 1.0F / sums.data[t];
      const float* from = in.of(logits[t], logits.width);
      const bool own = target >= 0 && target < logits.width;
      const float at_target = own ? exponential(from[target] - max.data[t]) * inverse_sum : 0.0F;
      float* to = out.begin(logits[t]);
      scaled_softmax(from, max.data[t], inverse_sum, scale, logits.width, to);
      if (own) to[target] = scale * (at_target - 1.0F);
      out.store(logits[t], logits.width);
    }
  });
}

}  // namespace

void cross_entropy_max(const KernelContext& context) {
  fast_or_reference(context, cpu::dtype(context, 0), cpu::cross_entropy_max, [&]<class S>() { row_max<S>(context); });
}

void cross_entropy_sum(const KernelContext& context) {
  fast_or_reference(context, cpu::dtype(context, 0), cpu::cross_entropy_sum, [&]<class S>() { row_sum<S>(context); });
}

void cross_entropy_backward(const KernelContext& context) {
  fast_or_reference(context, cpu::dtype(context, 3), cpu::cross_entropy_backward,
                    [&]<class S>() { backward<S>(context); });
}

}  // namespace stepcast::kernels::cpu_fast
