// LayerNorm (Ba, Kiros, Hinton 2016, arXiv:1607.06450, eq. 4): y = (x - mean) * rstd * w + b with rstd =
// 1 / sqrt(var + eps), var = mean((x - mean)^2); statistics are kept as [means, rstds].
//
// Backward, with n = (x - mean) * rstd and g = w * dy: dx = rstd * (g - mean(g) - n * mean(g * n)), dw = sum over rows
// of dy * n, db = sum over rows of dy. The scalar means are summed in double, the rest in the accumulate type. Also
// here: the gradient of a projection's bias, the same sum over rows.
#include <cmath>
#include <vector>

#include "kernels/cpu/access.h"
#include "kernels/cpu/reference.h"

namespace stepcast::kernels::cpu {
namespace {

template <class S>
void forward(const KernelContext& context) {
  using A = Accumulate<S>;
  const auto x = rows<S>(context, 0);
  const auto weight = rows<S>(context, 1);
  const auto bias = rows<S>(context, 2);
  const auto y = rows<S>(context, 3);
  const auto stats = rows<A>(context, 4);
  CHECK(x.size() == y.size() && weight.size() == x.width && bias.size() == x.width, x.width, weight.size());
  CHECK(stats.size() == 2 * x.count, stats.size(), x.count);
  const double eps = attributes(context).value;
  const double width = static_cast<double>(x.width);
  for (std::int64_t t = 0; t < x.count; ++t) {
    double sum = 0;
    for (std::int64_t c = 0; c < x.width; ++c) sum += static_cast<double>(widen(x[t][c]));
    const double mean = sum / width;
    double squares = 0;
    for (std::int64_t c = 0; c < x.width; ++c) {
      const double d = static_cast<double>(widen(x[t][c])) - mean;
      squares += d * d;
    }
    const A m = static_cast<A>(mean);
    const A r = static_cast<A>(1.0 / std::sqrt(squares / width + eps));
    for (std::int64_t c = 0; c < x.width; ++c) {
      y[t][c] = narrow<S>((widen(x[t][c]) - m) * r * widen(weight.data[c]) + widen(bias.data[c]));
    }
    stats.data[t] = m;
    stats.data[x.count + t] = r;
  }
}

template <class S>
void backward_input(const KernelContext& context) {
  using A = Accumulate<S>;
  const auto dy = rows<S>(context, 0);
  const auto x = rows<S>(context, 1);
  const auto stats = rows<A>(context, 2);
  const auto weight = rows<S>(context, 3);
  const auto dx = rows<S>(context, 4);
  const bool has_residual = context.operands.size() > 5;
  const auto residual = has_residual ? rows<S>(context, 5) : Rows<S>{};
  CHECK(dy.size() == x.size() && dx.size() == x.size() && weight.size() == x.width, dy.size(), x.size(), dx.size());
  CHECK(stats.size() == 2 * x.count, stats.size(), x.count);
  CHECK(!has_residual || residual.size() == x.size(), residual.size(), x.size());
  const double width = static_cast<double>(x.width);
  for (std::int64_t t = 0; t < x.count; ++t) {
    const A m = stats.data[t];
    const A r = stats.data[x.count + t];
    double sum = 0;
    double along = 0;
    for (std::int64_t c = 0; c < x.width; ++c) {
      const A g = widen(dy[t][c]) * widen(weight.data[c]);
      sum += static_cast<double>(g);
      along += static_cast<double>(g) * static_cast<double>((widen(x[t][c]) - m) * r);
    }
    const A mean_g = static_cast<A>(sum / width);
    const A mean_gn = static_cast<A>(along / width);
    for (std::int64_t c = 0; c < x.width; ++c) {
      const A g = widen(dy[t][c]) * widen(weight.data[c]);
      const A through_norm = r * (g - mean_g - (widen(x[t][c]) - m) * r * mean_gn);
      dx[t][c] = narrow<S>(has_residual ? widen(residual[t][c]) + through_norm : through_norm);
    }
  }
}

template <class S, class G>
void backward_weight(const KernelContext& context) {
  using A = Accumulate<S>;
  const auto dy = rows<S>(context, 0);
  const auto x = rows<S>(context, 1);
  const auto stats = rows<A>(context, 2);
  const auto dweight = rows<G>(context, 3);
  const auto dbias = rows<G>(context, 4);
  CHECK(dy.size() == x.size() && stats.size() == 2 * x.count, dy.size(), x.size(), stats.size());
  CHECK(dweight.size() == x.width && dbias.size() == x.width, dweight.size(), dbias.size(), x.width);
  std::vector<A> weight_sum(static_cast<std::size_t>(x.width), A(0));
  std::vector<A> bias_sum(static_cast<std::size_t>(x.width), A(0));
  for (std::int64_t t = 0; t < x.count; ++t) {
    const A m = stats.data[t];
    const A r = stats.data[x.count + t];
    for (std::int64_t c = 0; c < x.width; ++c) {
      const A d = widen(dy[t][c]);
      weight_sum[static_cast<std::size_t>(c)] += d * (widen(x[t][c]) - m) * r;
      bias_sum[static_cast<std::size_t>(c)] += d;
    }
  }
  add_sums(weight_sum.data(), x.width, dweight.data);
  add_sums(bias_sum.data(), x.width, dbias.data);
}

template <class S, class G>
void sum_rows(const KernelContext& context) {
  using A = Accumulate<S>;
  const auto dout = rows<S>(context, 0);
  const auto dbias = rows<G>(context, 1);
  CHECK(dbias.size() == dout.width, dbias.size(), dout.width);
  std::vector<A> sum(static_cast<std::size_t>(dout.width), A(0));
  for (std::int64_t t = 0; t < dout.count; ++t) {
    for (std::int64_t c = 0; c < dout.width; ++c) sum[static_cast<std::size_t>(c)] += widen(dout[t][c]);
  }
  add_sums(sum.data(), dout.width, dbias.data);
}

}  // namespace

void layer_norm_forward(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { forward<S>(context); });
}

void layer_norm_backward_input(const KernelContext& context) {
  for_storage(dtype(context, 1), [&]<class S>() { backward_input<S>(context); });
}

void layer_norm_backward_weight(const KernelContext& context) {
  for_source_and_result(dtype(context, 1), dtype(context, 3),
                        [&]<class S, class G>() { backward_weight<S, G>(context); });
}

void bias_backward(const KernelContext& context) {
  for_source_and_result(dtype(context, 0), dtype(context, 1), [&]<class S, class G>() { sum_rows<S, G>(context); });
}

}  // namespace stepcast::kernels::cpu
