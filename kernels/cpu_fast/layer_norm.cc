// LayerNorm and the gradient of a projection's bias; formulas and their source: cpu/layer_norm.cc. Sums of a row are in
// double, in lanes; gradients of weights and biases are summed row by row in float, each thread having its own columns.
#include <cmath>

#include "kernels/cpu/reference.h"
#include "kernels/cpu_fast/fast_kernels.h"
#include "kernels/cpu_fast/float_rows.h"
#include "kernels/cpu_fast/parallel.h"
#include "kernels/cpu_fast/vector.h"

namespace stepcast::kernels::cpu_fast {
namespace {

using cpu::Rows;
using cpu::rows;

// What a row was normalised by.
struct Statistics {
  float mean = 0;
  float rstd = 0;
};

[[STEPCAST_VECTORISED]] double squares_about(const float* x, double mean, std::int64_t n) {
  return sum_in_lanes(n, [=](std::int64_t i) {
    const double d = static_cast<double>(x[i]) - mean;
    return d * d;
  });
}

[[STEPCAST_VECTORISED]] void normalise(const float* x, Statistics s, const float* weight, const float* bias,
                                       std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - s.mean) * s.rstd * weight[i] + bias[i];
}

[[STEPCAST_VECTORISED]] double sum_of_weighted(const float* dy, const float* weight, std::int64_t n) {
  return sum_in_lanes(n, [=](std::int64_t i) { return dy[i] * weight[i]; });
}

[[STEPCAST_VECTORISED]] double sum_along(const float* dy, const float* weight, const float* x, Statistics s,
                                         std::int64_t n) {
  return sum_in_lanes(n, [=](std::int64_t i) {
    return static_cast<double>(dy[i] * weight[i]) * static_cast<double>((x[i] - s.mean) * s.rstd);
  });
}

[[STEPCAST_VECTORISED]] void input_gradient(const float* dy, const float* x, const float* weight, Statistics s,
                                            float mean_g, float mean_gn, std::int64_t n, float* dx) {
  for (std::int64_t i = 0; i < n; ++i) {
    dx[i] = s.rstd * (dy[i] * weight[i] - mean_g - (x[i] - s.mean) * s.rstd * mean_gn);
  }
}

[[STEPCAST_VECTORISED]] void add_weight_terms(const float* dy, const float* x, Statistics s, std::int64_t n,
                                              float* sum) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] += dy[i] * (x[i] - s.mean) * s.rstd;
}

template <class S>
void forward(const KernelContext& context) {
  const auto x = rows<S>(context, 0);
  const auto weight = rows<S>(context, 1);
  const auto bias = rows<S>(context, 2);
  const auto y = rows<S>(context, 3);
  const auto stats = rows<float>(context, 4);
  CHECK(x.size() == y.size() && weight.size() == x.width && bias.size() == x.width, x.width, weight.size());
  CHECK(stats.size() == 2 * x.count, stats.size(), x.count);
  const double eps = cpu::attributes(context).value;
  const double width = static_cast<double>(x.width);
  parallel_for(x.count, least_rows(x.width), [&](std::int64_t begin, std::int64_t end) {
    FloatInput<S> weights(x.width), biases(x.width), in(x.width);
    FloatOutput<S> out(x.width);
    const float* w = weights.of(weight.data, x.width);
    const float* b = biases.of(bias.data, x.width);
    for (std::int64_t t = begin; t < end; ++t) {
      const float* from = in.of(x[t], x.width);
      const double mean = sum_of(from, x.width) / width;
      const double variance = squares_about(from, mean, x.width) / width;
      const Statistics s{static_cast<float>(mean), static_cast<float>(1.0 / std::sqrt(variance + eps))};
      normalise(from, s, w, b, x.width, out.begin(y[t]));
      out.store(y[t], x.width);
      stats.data[t] = s.mean;
      stats.data[x.count + t] = s.rstd;
    }
  });
}

template <class S>
void backward_input(const KernelContext& context) {
  const auto dy = rows<S>(context, 0);
  const auto x = rows<S>(context, 1);
  const auto stats = rows<float>(context, 2);
  const auto weight = rows<S>(context, 3);
  const auto dx = rows<S>(context, 4);
  const bool has_residual = context.operands.size() > 5;
  const auto residual = has_residual ? rows<S>(context, 5) : Rows<S>{};
  CHECK(dy.size() == x.size() && dx.size() == x.size() && weight.size() == x.width, dy.size(), x.size(), dx.size());
  CHECK(stats.size() == 2 * x.count, stats.size(), x.count);
  CHECK(!has_residual || residual.size() == x.size(), residual.size(), x.size());
  const double width = static_cast<double>(x.width);
  parallel_for(x.count, least_rows(x.width), [&](std::int64_t begin, std::int64_t end) {
    FloatInput<S> weights(x.width), dys(x.width), xs(x.width), residuals(x.width);
    std::vector<float> sum(static_cast<std::size_t>(x.width));
    FloatOutput<S> out(x.width);
    const float* w = weights.of(weight.data, x.width);
    for (std::int64_t t = begin; t < end; ++t) {
      const Statistics s{stats.data[t], stats.data[x.count + t]};
      const float* d = dys.of(dy[t], x.width);
      const float* from = xs.of(x[t], x.width);
      const auto mean_g = static_cast<float>(sum_of_weighted(d, w, x.width) / width);
      const auto mean_gn = static_cast<float>(sum_along(d, w, from, s, x.width) / width);
      input_gradient(d, from, w, s, mean_g, mean_gn, x.width, sum.data());
      if (has_residual) add_row(residuals.of(residual[t], x.width), x.width, sum.data());
      std::copy_n(sum.data(), x.width, out.begin(dx[t]));
      out.store(dx[t], x.width);
    }
  });
}

template <class S, class G>
void backward_weight(const KernelContext& context) {
  const auto dy = rows<S>(context, 0);
  const auto x = rows<S>(context, 1);
  const auto stats = rows<float>(context, 2);
  const auto dweight = rows<G>(context, 3);
  const auto dbias = rows<G>(context, 4);
  CHECK(dy.size() == x.size() && stats.size() == 2 * x.count, dy.size(), x.size(), stats.size());
  CHECK(dweight.size() == x.width && dbias.size() == x.width, dweight.size(), dbias.size(), x.width);
  parallel_for(x.width, least_rows(x.count), [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t n = end - begin;
    FloatInput<S> dys(n), xs(n);
    std::vector<float> weight_sum(static_cast<std::size_t>(n), 0.0F);
    std::vector<float> bias_sum(static_cast<std::size_t>(n), 0.0F);
    for (std::int64_t t = 0; t < x.count; ++t) {
      const float* d = dys.of(dy[t] + begin, n);
      add_weight_terms(d, xs.of(x[t] + begin, n), {stats.data[t], stats.data[x.count + t]}, n, weight_sum.data());
      add_row(d, n, bias_sum.data());
    }
    cpu::add_sums(weight_sum.data(), n, dweight.data + begin);
    cpu::add_sums(bias_sum.data(), n, dbias.data + begin);
  });
}

template <class S, class G>
void sum_rows(const KernelContext& context) {
  const auto dout = rows<S>(context, 0);
  const auto dbias = rows<G>(context, 1);
  CHECK(dbias.size() == dout.width, dbias.size(), dout.width);
  parallel_for(dout.width, least_rows(dout.count), [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t n = end - begin;
    FloatInput<S> douts(n);
    std::vector<float> sum(static_cast<std::size_t>(n), 0.0F);
    for (std::int64_t t = 0; t < dout.count; ++t) add_row(douts.of(dout[t] + begin, n), n, sum.data());
    cpu::add_sums(sum.data(), n, dbias.data + begin);
  });
}

}  // namespace

void layer_norm_forward(const KernelContext& context) {
  fast_or_reference(context, cpu::dtype(context, 0), cpu::layer_norm_forward, [&]<class S>() { forward<S>(context); });
}

void layer_norm_backward_input(const KernelContext& context) {
  fast_or_reference(context, cpu::dtype(context, 1), cpu::layer_norm_backward_input,
                    [&]<class S>() { backward_input<S>(context); });
}

void layer_norm_backward_weight(const KernelContext& context) {
  fast_or_reference(context, cpu::dtype(context, 1), cpu::dtype(context, 3), cpu::layer_norm_backward_weight,
                    [&]<class S, class G>() { backward_weight<S, G>(context); });
}

void bias_backward(const KernelContext& context) {
  fast_or_reference(context, cpu::dtype(context, 0), cpu::dtype(context, 1), cpu::bias_backward,
                    [&]<class S, class G>() { sum_rows<S, G>(context); });
}

}  // namespace stepcast::kernels::cpu_fast
