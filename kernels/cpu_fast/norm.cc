// RMSNorm; formulas and their source: cpu/norm.cc. A row's sum of squares is in double, in lanes; weight gradients are
// summed row by row in float, in the order of the rows, each thread having its own columns.
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

[[STEPCAST_VECTORISED]] void scale_by_weight(const float* x, float r, const float* weight, std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * r * weight[i];
}

[[STEPCAST_VECTORISED]] double weighted_dot(const float* dy, const float* weight, const float* x, std::int64_t n) {
  return sum_in_lanes(n, [=](std::int64_t i) { return static_cast<double>(dy[i] * weight[i]) * x[i]; });
}

// `residual` may be null.
[[STEPCAST_VECTORISED]] void input_gradient(const float* dy, const float* x, const float* weight, const float* residual,
                                            float r, float along_x, std::int64_t n, float* dx) {
  if (residual == nullptr) {
    for (std::int64_t i = 0; i < n; ++i) dx[i] = r * weight[i] * dy[i] - along_x * x[i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) dx[i] = residual[i] + (r * weight[i] * dy[i] - along_x * x[i]);
  }
}

[[STEPCAST_VECTORISED]] void add_weight_terms(const float* dy, const float* x, float r, std::int64_t n, float* sum) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] += dy[i] * x[i] * r;
}

template <class S>
void forward(const KernelContext& context) {
  const auto x = rows<S>(context, 0);
  const auto weight = rows<S>(context, 1);
  const auto y = rows<S>(context, 2);
  const auto rstd = rows<float>(context, 3);
  CHECK(x.size() == y.size() && weight.size() == x.width && rstd.size() == x.count, x.width, weight.size(), x.count);
  const double eps = cpu::attributes(context).value;
  parallel_for(x.count, least_rows(x.width), [&](std::int64_t begin, std::int64_t end) {
    FloatInput<S> weights(x.width);
    FloatInput<S> in(x.width);
    FloatOutput<S> out(x.width);
    const float* w = weights.of(weight.data, x.width);
    for (std::int64_t t = begin; t < end; ++t) {
      const float* from = in.of(x[t], x.width);
      const double mean = sum_of_squares(from, x.width) / static_cast<double>(x.width);
      rstd.data[t] = static_cast<float>(1.0 / std::sqrt(mean + eps));
      scale_by_weight(from, rstd.data[t], w, x.width, out.begin(y[t]));
      out.store(y[t], x.width);
    }
  });
}

template <class S>
void backward_input(const KernelContext& context) {
  const auto dy = rows<S>(context, 0);
  const auto x = rows<S>(context, 1);
  const auto rstd = rows<float>(context, 2);
  const auto weight = rows<S>(context, 3);
  const auto dx = rows<S>(context, 4);
  const bool has_residual = context.operands.size() > 5;
  const auto residual = has_residual ? rows<S>(context, 5) : Rows<S>{};
  CHECK(dy.size() == x.size() && dx.size() == x.size() && weight.size() == x.width && rstd.size() == x.count, dy.size(),
        x.size(), dx.size(), weight.size(), rstd.size());
  CHECK(!has_residual || residual.size() == x.size(), residual.size(), x.size());
  parallel_for(x.count, least_rows(x.width), [&](std::int64_t begin, std::int64_t end) {
    FloatInput<S> weights(x.width), dys(x.width), xs(x.width), residuals(x.width);
    FloatOutput<S> out(x.width);
    const float* w = weights.of(weight.data, x.width);
    for (std::int64_t t = begin; t < end; ++t) {
      const float* d = dys.of(dy[t], x.width);
      const float* from = xs.of(x[t], x.width);
      const float r = rstd.data[t];
      const double dot = weighted_dot(d, w, from, x.width);
      const float along_x = static_cast<float>(dot / static_cast<double>(x.width)) * r * r * r;
      input_gradient(d, from, w, has_residual ? residuals.of(residual[t], x.width) : nullptr, r, along_x, x.width,
                     out.begin(dx[t]));
      out.store(dx[t], x.width);
    }
  });
}

template <class S, class G>
void backward_weight(const KernelContext& context) {
  const auto dy = rows<S>(context, 0);
  const auto x = rows<S>(context, 1);
  const auto rstd = rows<float>(context, 2);
  const auto dweight = rows<G>(context, 3);
  CHECK(dy.size() == x.size() && dweight.size() == x.width && rstd.size() == x.count, dy.size(), x.size(),
        dweight.size(), rstd.size());
  parallel_for(x.width, least_rows(x.count), [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t n = end - begin;
    FloatInput<S> dys(n), xs(n);
    std::vector<float> sum(static_cast<std::size_t>(n), 0.0F);
    for (std::int64_t t = 0; t < x.count; ++t) {
      add_weight_terms(dys.of(dy[t] + begin, n), xs.of(x[t] + begin, n), rstd.data[t], n, sum.data());
    }
    cpu::add_sums(sum.data(), n, dweight.data + begin);
  });
}

}  // namespace

void rms_norm_forward(const KernelContext& context) {
  fast_or_reference(context, cpu::dtype(context, 0), cpu::rms_norm_forward, [&]<class S>() { forward<S>(context); });
}

void rms_norm_backward_input(const KernelContext& context) {
  fast_or_reference(context, cpu::dtype(context, 1), cpu::rms_norm_backward_input,
                    [&]<class S>() { backward_input<S>(context); });
}

void rms_norm_backward_weight(const KernelContext& context) {
  fast_or_reference(context, cpu::dtype(context, 1), cpu::dtype(context, 3), cpu::rms_norm_backward_weight,
                    [&]<class S, class G>() { backward_weight<S, G>(context); });
}

}  // namespace stepcast::kernels::cpu_fast
