// Activations of MLPs of two matrices, with the bias of the projection before them: out = f(in + bias). Formulas and
// sources: kernels/element.h. Megatron-LM fuses bias and GELU the same way, and saves `in` without its bias.
#include "kernels/cpu/access.h"
#include "kernels/cpu/reference.h"

namespace stepcast::kernels::cpu {
namespace {

// The bias operand at `position`, or no rows where the op has none.
template <class S>
Rows<S> bias_at(const KernelContext& context, std::size_t position, std::int64_t width) {
  if (context.operands.size() <= position) return {};
  const auto bias = rows<S>(context, position);
  CHECK(bias.size() == width, bias.size(), width);
  return bias;
}

template <class S>
Accumulate<S> biased(const Rows<S>& in, const Rows<S>& bias, std::int64_t t, std::int64_t c) {
  return bias.data == nullptr ? widen(in[t][c]) : widen(in[t][c]) + widen(bias.data[c]);
}

template <class F, class S>
void forward(const KernelContext& context) {
  const auto in = rows<S>(context, 0);
  const auto out = rows<S>(context, 1);
  CHECK(in.size() == out.size(), in.size(), out.size());
  const Rows<S> bias = bias_at<S>(context, 2, in.width);
  for (std::int64_t t = 0; t < in.count; ++t) {
    for (std::int64_t c = 0; c < in.width; ++c) out[t][c] = narrow<S>(F::value(biased(in, bias, t, c)));
  }
}

template <class F, class S>
void backward(const KernelContext& context) {
  const auto dout = rows<S>(context, 0);
  const auto in = rows<S>(context, 1);
  const auto din = rows<S>(context, 2);
  CHECK(in.size() == dout.size() && in.size() == din.size(), in.size(), dout.size(), din.size());
  const Rows<S> bias = bias_at<S>(context, 3, in.width);
  for (std::int64_t t = 0; t < in.count; ++t) {
    for (std::int64_t c = 0; c < in.width; ++c) {
      din[t][c] = narrow<S>(widen(dout[t][c]) * F::derivative(biased(in, bias, t, c)));
    }
  }
}

}  // namespace

void gelu_forward(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { forward<Gelu, S>(context); });
}

void gelu_backward(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { backward<Gelu, S>(context); });
}

void squared_relu_forward(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { forward<SquaredRelu, S>(context); });
}

void squared_relu_backward(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { backward<SquaredRelu, S>(context); });
}

}  // namespace stepcast::kernels::cpu
