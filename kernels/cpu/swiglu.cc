// SwiGLU (Shazeer 2020, arXiv:2002.05202, eq. 6): out = silu(gate) * up, on rows [gate | up] of 2f elements.
#include "kernels/cpu/access.h"
#include "kernels/cpu/reference.h"

namespace stepcast::kernels::cpu {
namespace {

template <class S>
void forward(const KernelContext& context) {
  const auto gate_up = rows<S>(context, 0);
  const auto out = rows<S>(context, 1);
  CHECK(gate_up.count == out.count && gate_up.width == 2 * out.width, gate_up.width, out.width);
  for (std::int64_t t = 0; t < out.count; ++t) {
    const S* gate = gate_up[t];
    const S* up = gate + out.width;
    for (std::int64_t c = 0; c < out.width; ++c) out[t][c] = narrow<S>(silu(widen(gate[c])) * widen(up[c]));
  }
}

template <class S>
void backward(const KernelContext& context) {
  const auto dout = rows<S>(context, 0);
  const auto gate_up = rows<S>(context, 1);
  const auto dgate_up = rows<S>(context, 2);
  const std::int64_t width = dout.width;
  CHECK(gate_up.count == dout.count && gate_up.width == 2 * width && dgate_up.size() == gate_up.size(), gate_up.width,
        width, dgate_up.size());
  for (std::int64_t t = 0; t < dout.count; ++t) {
    const S* row = gate_up[t];
    S* drow = dgate_up[t];
    for (std::int64_t c = 0; c < width; ++c) {
      const Accumulate<S> gate = widen(row[c]);
      const Accumulate<S> up = widen(row[c + width]);
      const Accumulate<S> d = widen(dout[t][c]);
      drow[c] = narrow<S>(d * up * silu_derivative(gate));
      drow[c + width] = narrow<S>(d * silu(gate));
    }
  }
}

}  // namespace

void swiglu_forward(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { forward<S>(context); });
}

void swiglu_backward(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { backward<S>(context); });
}

}  // namespace stepcast::kernels::cpu
