// RMSNorm of queries and keys before their positions (Henry et al. 2020, arXiv:2010.04245, with RMSNorm as Qwen3 and
// OLMo 2 have it): in place in the q and k columns of a qkv row [q heads | k heads | v heads], over one head at a time
// or over all heads of q, and of k, at once; the extent of a weight says which.
//
// Formulas as in norm.cc, in the same types.
#include <cmath>
#include <vector>

#include "kernels/cpu/qk_layout.h"
#include "kernels/cpu/reference.h"

namespace stepcast::kernels::cpu {
namespace {

template <class S>
void normalise(S* row, const Stretches& s, const S* weight, double eps, Accumulate<S>* rstd) {
  using A = Accumulate<S>;
  for (std::int64_t i = 0; i < s.count; ++i) {
    S* x = row + s.begin + i * s.width;
    double squares = 0;
    for (std::int64_t c = 0; c < s.width; ++c) squares += static_cast<double>(widen(x[c])) * widen(x[c]);
    const A r = static_cast<A>(1.0 / std::sqrt(squares / static_cast<double>(s.width) + eps));
    for (std::int64_t c = 0; c < s.width; ++c) x[c] = narrow<S>(widen(x[c]) * r * widen(weight[c]));
    rstd[s.statistic + i] = r;
  }
}

template <class S>
void forward(const KernelContext& context) {
  const auto q_weight = rows<S>(context, 0);
  const auto k_weight = rows<S>(context, 1);
  const auto qkv = rows<S>(context, 2);
  const auto raw = rows<S>(context, 3);
  const auto rstd = rows<Accumulate<S>>(context, 4);
  const QkLayout at = qk_layout(attributes(context), q_weight.size(), k_weight.size());
  CHECK(raw.count == qkv.count && raw.width == at.columns && qkv.width > at.columns, raw.width, at.columns, qkv.width);
  CHECK(rstd.count == qkv.count && rstd.width == at.statistics, rstd.width, at.statistics);
  const double eps = attributes(context).value;
  for (std::int64_t t = 0; t < qkv.count; ++t) {
    for (std::int64_t c = 0; c < at.columns; ++c) raw[t][c] = qkv[t][c];
    normalise(qkv[t], at.q, q_weight.data, eps, rstd[t]);
    normalise(qkv[t], at.k, k_weight.data, eps, rstd[t]);
  }
}

// Of one row: d becomes the gradient of x.
template <class S>
void through_norm(S* d, const S* x, const Stretches& s, const S* weight, const Accumulate<S>* rstd) {
  using A = Accumulate<S>;
  for (std::int64_t i = 0; i < s.count; ++i) {
    const std::int64_t begin = s.begin + i * s.width;
    double dot = 0;
    for (std::int64_t c = 0; c < s.width; ++c) {
      dot += static_cast<double>(widen(d[begin + c]) * widen(weight[c])) * widen(x[begin + c]);
    }
    const A r = rstd[s.statistic + i];
    const A along_x = static_cast<A>(dot / static_cast<double>(s.width)) * r * r * r;
    for (std::int64_t c = 0; c < s.width; ++c) {
      d[begin + c] = narrow<S>(r * widen(weight[c]) * widen(d[begin + c]) - along_x * widen(x[begin + c]));
    }
  }
}

template <class S>
void backward_input(const KernelContext& context) {
  const auto raw = rows<S>(context, 0);
  const auto rstd = rows<Accumulate<S>>(context, 1);
  const auto q_weight = rows<S>(context, 2);
  const auto k_weight = rows<S>(context, 3);
  const auto dqkv = rows<S>(context, 4);
  const QkLayout at = qk_layout(attributes(context), q_weight.size(), k_weight.size());
  CHECK(raw.count == dqkv.count && raw.width == at.columns && dqkv.width > at.columns, raw.width, at.columns);
  for (std::int64_t t = 0; t < dqkv.count; ++t) {
    through_norm(dqkv[t], raw[t], at.q, q_weight.data, rstd[t]);
    through_norm(dqkv[t], raw[t], at.k, k_weight.data, rstd[t]);
  }
}

template <class S>
void add_weight_gradient(const S* d, const S* x, const Stretches& s, const Accumulate<S>* rstd, Accumulate<S>* sum) {
  for (std::int64_t i = 0; i < s.count; ++i) {
    const std::int64_t begin = s.begin + i * s.width;
    const Accumulate<S> r = rstd[s.statistic + i];
    for (std::int64_t c = 0; c < s.width; ++c) sum[c] += widen(d[begin + c]) * widen(x[begin + c]) * r;
  }
}

template <class S, class G>
void backward_weight(const KernelContext& context) {
  using A = Accumulate<S>;
  const auto dqkv = rows<S>(context, 0);
  const auto raw = rows<S>(context, 1);
  const auto rstd = rows<A>(context, 2);
  const auto dq_weight = rows<G>(context, 3);
  const auto dk_weight = rows<G>(context, 4);
  const QkLayout at = qk_layout(attributes(context), dq_weight.size(), dk_weight.size());
  std::vector<A> q_sum(static_cast<std::size_t>(at.q.width), A(0));
  std::vector<A> k_sum(static_cast<std::size_t>(at.k.width), A(0));
  for (std::int64_t t = 0; t < raw.count; ++t) {
    add_weight_gradient(dqkv[t], raw[t], at.q, rstd[t], q_sum.data());
    add_weight_gradient(dqkv[t], raw[t], at.k, rstd[t], k_sum.data());
  }
  add_sums(q_sum.data(), at.q.width, dq_weight.data);
  add_sums(k_sum.data(), at.k.width, dk_weight.data);
}

}  // namespace

void qk_norm_forward(const KernelContext& context) {
  for_storage(dtype(context, 2), [&]<class S>() { forward<S>(context); });
}

void qk_norm_backward_input(const KernelContext& context) {
  for_storage(dtype(context, 4), [&]<class S>() { backward_input<S>(context); });
}

void qk_norm_backward_weight(const KernelContext& context) {
  for_source_and_result(dtype(context, 0), dtype(context, 3),
                        [&]<class S, class G>() { backward_weight<S, G>(context); });
}

}  // namespace stepcast::kernels::cpu
