// Gradient norm, clip factor and Adam (Kingma, Ba 2015, arXiv:1412.6980, algorithm 1) on f32 master weights.
//
// The clip factor is that of torch.nn.utils.clip_grad_norm_: min(1, max_norm / (norm + 1e-6)). Adam applies it to the
// gradient as it reads it. It computes in the master's type (f32; f64 in checks); gradient and moments may be stored
// as bf16, as by Megatron-Core's precision-aware optimizer. The optional working weight is the master rounded to its
// own type.
#include <algorithm>
#include <cmath>

#include "kernels/adam.h"
#include "kernels/cpu/access.h"
#include "kernels/cpu/reference.h"

namespace stepcast::kernels::cpu {
namespace {

constexpr double kNormEpsilon = 1e-6;

template <class S>
void add_squares(const KernelContext& context) {
  using A = Accumulate<S>;
  const std::int64_t elements = rows<S>(context, 0).size();
  const auto out = rows<A>(context, 1);
  const std::int64_t parts = attributes(context).count;
  CHECK(out.size() == 1 && (parts == 0 || parts == context.index_count), out.size(), parts, context.index_count);
  CHECK(parts == 0 || elements % parts == 0, elements, parts);
  const std::int64_t n = parts == 0 ? elements : elements / parts;
  const S* in = own_part<S>(context, 0, n);
  double sum = 0;  // a flat gradient buffer has too many elements for a float sum
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(widen(in[i]));
    sum += x * x;
  }
  out.data[0] = static_cast<A>(static_cast<double>(out.data[0]) + attributes(context).value * sum);
}

template <class A>
void factor_of(const KernelContext& context) {
  const auto squares = rows<A>(context, 0);
  const auto factor = rows<A>(context, 1);
  CHECK(squares.size() == 1 && factor.size() == 1, squares.size(), factor.size());
  const double norm = std::sqrt(static_cast<double>(squares.data[0]));
  factor.data[0] = static_cast<A>(std::min(1.0, attributes(context).value / (norm + kNormEpsilon)));
}

// G and M: storage of the gradient and of the moments. The update uses the moments before they are rounded.
template <class A, class G, class M>
void step_master(const KernelContext& context) {
  const auto m = rows<M>(context, 2);
  const auto v = rows<M>(context, 3);
  const std::int64_t n = m.size();
  CHECK(v.size() == n && rows<A>(context, 1).size() == 1, n, v.size());
  const G* grad = own_part<G>(context, 0, n);
  A* master = own_part<A>(context, 4, n);
  const AdamStep<A> s = adam_step<A>(attributes(context), context.step);
  const A clip = rows<A>(context, 1).data[0];
  for (std::int64_t i = 0; i < n; ++i) {
    const AdamElement<A> before{static_cast<A>(widen(m.data[i])), static_cast<A>(widen(v.data[i])), master[i]};
    const AdamElement<A> after = adam_update(s, before, static_cast<A>(widen(grad[i])) * clip);
    m.data[i] = narrow<M>(after.m);
    v.data[i] = narrow<M>(after.v);
    master[i] = after.master;
  }
}

template <class A, class W>
void round_to_weight(const KernelContext& context) {
  const std::int64_t n = operand(context, 2).type.shape.elements();
  const A* master = own_part<A>(context, 4, n);
  W* weight = own_part<W>(context, 5, n);
  for (std::int64_t i = 0; i < n; ++i) weight[i] = narrow<W>(master[i]);
}

}  // namespace

void sum_squares(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { add_squares<S>(context); });
}

void clip_factor(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { factor_of<Accumulate<S>>(context); });
}

void adam(const KernelContext& context) {
  for_storage(dtype(context, 4), [&]<class S>() {
    for_storage(dtype(context, 0), [&]<class G>() {
      for_storage(dtype(context, 2), [&]<class M>() { step_master<Accumulate<S>, G, M>(context); });
    });
    if (context.operands.size() <= 5) return;
    for_storage(dtype(context, 5), [&]<class W>() { round_to_weight<Accumulate<S>, W>(context); });
  });
}

}  // namespace stepcast::kernels::cpu
