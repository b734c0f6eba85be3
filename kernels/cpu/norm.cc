// RMSNorm (Zhang, Sennrich 2019, arXiv:1910.07467, eq. 4): y = x * rstd * w with rstd = 1 / sqrt(mean(x^2) + eps).
//
// Backward, with r = rstd and g = w * dy: dx = r * g - x * r^3 * mean(g * x), dw = sum over rows of dy * x * r. The
// scalar means are summed in double, the rest in the accumulate type.
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
  const auto y = rows<S>(context, 2);
  const auto rstd = rows<A>(context, 3);
  CHECK(x.size() == y.size() && weight.size() == x.width && rstd.size() == x.count, x.width, weight.size(), x.count);
  const double eps = attributes(context).value;
  for (std::int64_t t = 0; t < x.count; ++t) {
    double squares = 0;
    for (std::int64_t c = 0; c < x.width; ++c) squares += static_cast<double>(widen(x[t][c])) * widen(x[t][c]);
    const A r = static_cast<A>(1.0 / std::sqrt(squares / static_cast<double>(x.width) + eps));
    for (std::int64_t c = 0; c < x.width; ++c) {
      y[t][c] = narrow<S>(widen(x[t][c]) * r * widen(weight.data[c]));
    }
    rstd.data[t] = r;
  }
}

template <class S>
void backward_input(const KernelContext& context) {
  using A = Accumulate<S>;
  const auto dy = rows<S>(context, 0);
  const auto x = rows<S>(context, 1);
  const auto rstd = rows<A>(context, 2);
  const auto weight = rows<S>(context, 3);
  const auto dx = rows<S>(context, 4);
  const bool has_residual = context.operands.size() > 5;
  const auto residual = has_residual ? rows<S>(context, 5) : Rows<S>{};
  CHECK(dy.size() == x.size() && dx.size() == x.size() && weight.size() == x.width && rstd.size() == x.count, dy.size(),
        x.size(), dx.size(), weight.size(), rstd.size());
  CHECK(!has_residual || residual.size() == x.size(), residual.size(), x.size());
  for (std::int64_t t = 0; t < x.count; ++t) {
    double dot = 0;
    for (std::int64_t c = 0; c < x.width; ++c) {
      dot += static_cast<double>(widen(dy[t][c]) * widen(weight.data[c])) * widen(x[t][c]);
    }
    const A r = rstd.data[t];
    const A along_x = static_cast<A>(dot / static_cast<double>(x.width)) * r * r * r;
    for (std::int64_t c = 0; c < x.width; ++c) {
      const A through_norm = r * widen(weight.data[c]) * widen(dy[t][c]) - along_x * widen(x[t][c]);
      dx[t][c] = narrow<S>(has_residual ? widen(residual[t][c]) + through_norm : through_norm);
    }
  }
}

template <class S, class G>
void backward_weight(const KernelContext& context) {
  using A = Accumulate<S>;
  const auto dy = rows<S>(context, 0);
  const auto x = rows<S>(context, 1);
  const auto rstd = rows<A>(context, 2);
  const auto dweight = rows<G>(context, 3);
  CHECK(dy.size() == x.size() && dweight.size() == x.width && rstd.size() == x.count, dy.size(), x.size(),
        dweight.size(), rstd.size());
  std::vector<A> sum(static_cast<std::size_t>(x.width), A(0));
  for (std::int64_t t = 0; t < x.count; ++t) {
    const A r = rstd.data[t];
    A* column = sum.data();
    for (std::int64_t c = 0; c < x.width; ++c) column[c] += widen(dy[t][c]) * widen(x[t][c]) * r;
  }
  add_sums(sum.data(), x.width, dweight.data);
}

}  // namespace

void rms_norm_forward(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { forward<S>(context); });
}

void rms_norm_backward_input(const KernelContext& context) {
  for_storage(dtype(context, 1), [&]<class S>() { backward_input<S>(context); });
}

void rms_norm_backward_weight(const KernelContext& context) {
  for_source_and_result(dtype(context, 1), dtype(context, 3),
                        [&]<class S, class G>() { backward_weight<S, G>(context); });
}

}  // namespace stepcast::kernels::cpu
