// Vocabulary-parallel cross-entropy in four kernels, between which the plan reduces over the holders of the vocabulary
// (Megatron-LM, arXiv:1909.08053, section 3): max per row, all-reduce max; sum of exp and target logit, all-reduce sum;
// then loss and gradient are local. The holder with index i has columns [i*V, (i+1)*V). Scalar sums are kept in double
// and rounded once, so that a split vocabulary differs from the whole by a few roundings only.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/access.h"
#include "kernels/cpu/reference.h"

namespace stepcast::kernels::cpu {
namespace {

// The target's column on this holder, or a value outside [0, width) when another holder has it.
std::int64_t local_target(const KernelContext& context, std::int32_t target, std::int64_t width) {
  CHECK(target >= 0 && target < context.index_count * width, target, context.index_count, width);
  return target - context.index * width;
}

template <class S>
void row_max(const KernelContext& context) {
  const auto logits = rows<S>(context, 0);
  const auto max = rows<Accumulate<S>>(context, 1);
  CHECK(max.size() == logits.count && logits.width > 0, max.size(), logits.count, logits.width);
  for (std::int64_t t = 0; t < logits.count; ++t) {
    Accumulate<S> largest = widen(logits[t][0]);
    for (std::int64_t v = 1; v < logits.width; ++v) largest = std::max(largest, widen(logits[t][v]));
    max.data[t] = largest;
  }
}

template <class S>
void row_sum(const KernelContext& context) {
  using A = Accumulate<S>;
  const auto logits = rows<S>(context, 0);
  const auto max = rows<A>(context, 1);
  const auto targets = rows<std::int32_t>(context, 2);
  const auto sums = rows<A>(context, 3);
  const std::int64_t tokens = logits.count;
  CHECK(max.size() == tokens && targets.size() == tokens && sums.size() == 2 * tokens, tokens, max.size(),
        targets.size(), sums.size());
  for (std::int64_t t = 0; t < tokens; ++t) {
    double sum = 0;
    for (std::int64_t v = 0; v < logits.width; ++v) {
      sum += static_cast<double>(std::exp(widen(logits[t][v]) - max.data[t]));
    }
    const std::int64_t target = local_target(context, targets.data[t], logits.width);
    sums.data[t] = static_cast<A>(sum);
    sums.data[tokens + t] = target >= 0 && target < logits.width ? widen(logits[t][target]) : A(0);
  }
}

template <class A>
void loss(const KernelContext& context) {
  const auto max = rows<A>(context, 0);
  const auto sums = rows<A>(context, 1);
  const auto total = rows<A>(context, 2);
  const std::int64_t tokens = max.size();
  CHECK(sums.size() == 2 * tokens && total.size() == 1, sums.size(), tokens, total.size());
  double sum = 0;
  for (std::int64_t t = 0; t < tokens; ++t) {
    sum += std::log(static_cast<double>(sums.data[t])) + static_cast<double>(max.data[t]) -
           static_cast<double>(sums.data[tokens + t]);
  }
  total.data[0] = static_cast<A>(static_cast<double>(total.data[0]) + attributes(context).value * sum);
}

template <class S>
void backward(const KernelContext& context) {
  using A = Accumulate<S>;
  const auto max = rows<A>(context, 0);
  const auto sums = rows<A>(context, 1);
  const auto targets = rows<std::int32_t>(context, 2);
  const auto logits = rows<S>(context, 3);
  const std::int64_t tokens = logits.count;
  CHECK(max.size() == tokens && targets.size() == tokens && sums.size() == 2 * tokens, tokens, max.size(),
        targets.size(), sums.size());
  const A scale = static_cast<A>(attributes(context).value);
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::int64_t target = local_target(context, targets.data[t], logits.width);
    const A inverse_sum = A(1) / sums.data[t];
    for (std::int64_t v = 0; v < logits.width; ++v) {
      const A probability = std::exp(widen(logits[t][v]) - max.data[t]) * inverse_sum;
      logits[t][v] = narrow<S>(scale * (v == target ? probability - A(1) : probability));
    }
  }
}

}  // namespace

void cross_entropy_max(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { row_max<S>(context); });
}

void cross_entropy_sum(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { row_sum<S>(context); });
}

void cross_entropy_loss(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { loss<Accumulate<S>>(context); });
}

void cross_entropy_backward(const KernelContext& context) {
  for_storage(dtype(context, 3), [&]<class S>() { backward<S>(context); });
}

}  // namespace stepcast::kernels::cpu
