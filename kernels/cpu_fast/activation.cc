// SwiGLU, GELU and squared ReLU with their biases; formulas and sources: cpu/swiglu.cc and kernels/element.h. GELU's
// (1 + tanh u) / 2 is the sigmoid of 2u, which loses no digits where tanh is close to -1.
#include "kernels/cpu/reference.h"
#include "kernels/cpu_fast/fast_kernels.h"
#include "kernels/cpu_fast/float_rows.h"
#include "kernels/cpu_fast/parallel.h"
#include "kernels/cpu_fast/vector.h"

namespace stepcast::kernels::cpu_fast {
namespace {

using cpu::rows;

// A row of an activation: out = f(in + bias), or din = dout * f'(in + bias); `bias` may be null.
using ValueRow = void (*)(const float* in, const float* bias, std::int64_t n, float* out);
using SlopeRow = void (*)(const float* dout, const float* in, const float* bias, std::int64_t n, float* din);

[[gnu::always_inline]] inline float gelu_of(float x) { return x * fast_sigmoid(2.0F * gelu_argument(x)); }

[[gnu::always_inline]] inline float gelu_slope(float x) {
  constexpr float kRoot = 0.79788456080286535588F;  // sqrt(2/pi)
  const float s = fast_sigmoid(2.0F * gelu_argument(x));
  return s + 2.0F * x * s * (1.0F - s) * (kRoot * (1.0F + 3.0F * 0.044715F * x * x));
}

[[STEPCAST_VECTORISED]] void gelu_values(const float* in, const float* bias, std::int64_t n, float* out) {
  if (bias == nullptr) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = gelu_of(in[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) out[i] = gelu_of(in[i] + bias[i]);
  }
}

[[STEPCAST_VECTORISED]] void gelu_slopes(const float* dout, const float* in, const float* bias, std::int64_t n,
                                         float* din) {
  if (bias == nullptr) {
    for (std::int64_t i = 0; i < n; ++i) din[i] = dout[i] * gelu_slope(in[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) din[i] = dout[i] * gelu_slope(in[i] + bias[i]);
  }
}

[[STEPCAST_VECTORISED]] void squared_relu_values(const float* in, const float* bias, std::int64_t n, float* out) {
  if (bias == nullptr) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = squared_relu(in[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) out[i] = squared_relu(in[i] + bias[i]);
  }
}

[[STEPCAST_VECTORISED]] void squared_relu_slopes(const float* dout, const float* in, const float* bias, std::int64_t n,
                                                 float* din) {
  if (bias == nullptr) {
    for (std::int64_t i = 0; i < n; ++i) din[i] = dout[i] * squared_relu_derivative(in[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) din[i] = dout[i] * squared_relu_derivative(in[i] + bias[i]);
  }
}

[[STEPCAST_VECTORISED]] void swiglu_values(const float* gate, const float* up, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = gate[i] * fast_sigmoid(gate[i]) * up[i];
}

[[STEPCAST_VECTORISED]] void swiglu_slopes(const float* dout, const float* gate, const float* up, std::int64_t n,
                                           float* dgate, float* dup) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float s = fast_sigmoid(gate[i]);
    const float d = dout[i];
    dgate[i] = d * up[i] * (s * (1.0F + gate[i] * (1.0F - s)));
    dup[i] = d * (gate[i] * s);
  }
}

// The bias operand at `position` as floats, or null where the op has none.
template <class S>
const float* bias_at(const KernelContext& context, std::size_t position, FloatInput<S>& buffer, std::int64_t width) {
  if (context.operands.size() <= position) return nullptr;
  const auto bias = rows<S>(context, position);
  CHECK(bias.size() == width, bias.size(), width);
  return buffer.of(bias.data, width);
}

template <class S>
void forward(const KernelContext& context, ValueRow values) {
  const auto in = rows<S>(context, 0);
  const auto out = rows<S>(context, 1);
  CHECK(in.size() == out.size(), in.size(), out.size());
  FloatInput<S> bias_buffer(in.width);
  const float* bias = bias_at(context, 2, bias_buffer, in.width);
  parallel_for(in.count, least_rows(in.width), [&](std::int64_t begin, std::int64_t end) {
    FloatInput<S> ins(in.width);
    FloatOutput<S> outs(in.width);
    for (std::int64_t t = begin; t < end; ++t) {
      values(ins.of(in[t], in.width), bias, in.width, outs.begin(out[t]));
      outs.store(out[t], in.width);
    }
  });
}

template <class S>
void backward(const KernelContext& context, SlopeRow slopes) {
  const auto dout = rows<S>(context, 0);
  const auto in = rows<S>(context, 1);
  const auto din = rows<S>(context, 2);
  CHECK(in.size() == dout.size() && in.size() == din.size(), in.size(), dout.size(), din.size());
  FloatInput<S> bias_buffer(in.width);
  const float* bias = bias_at(context, 3, bias_buffer, in.width);
  parallel_for(in.count, least_rows(in.width), [&](std::int64_t begin, std::int64_t end) {
    FloatInput<S> douts(in.width), ins(in.width);
    FloatOutput<S> dins(in.width);
    for (std::int64_t t = begin; t < end; ++t) {
      slopes(douts.of(dout[t], in.width), ins.of(in[t], in.width), bias, in.width, dins.begin(din[t]));
      dins.store(din[t], in.width);
    }
  });
}

template <class S>
void forward_gated(const KernelContext& context) {
  const auto gate_up = rows<S>(context, 0);
  const auto out = rows<S>(context, 1);
  const std::int64_t width = out.width;
  CHECK(gate_up.count == out.count && gate_up.width == 2 * width, gate_up.width, width);
  parallel_for(out.count, least_rows(width), [&](std::int64_t begin, std::int64_t end) {
    FloatInput<S> ins(2 * width);
    FloatOutput<S> outs(width);
    for (std::int64_t t = begin; t < end; ++t) {
      const float* in = ins.of(gate_up[t], 2 * width);
      swiglu_values(in, in + width, width, outs.begin(out[t]));
      outs.store(out[t], width);
    }
  });
}

template <class S>
void backward_gated(const KernelContext& context) {
  const auto dout = rows<S>(context, 0);
  const auto gate_up = rows<S>(context, 1);
  const auto dgate_up = rows<S>(context, 2);
  const std::int64_t width = dout.width;
  CHECK(gate_up.count == dout.count && gate_up.width == 2 * width && dgate_up.size() == gate_up.size(), gate_up.width,
        width, dgate_up.size());
  parallel_for(dout.count, least_rows(2 * width), [&](std::int64_t begin, std::int64_t end) {
    FloatInput<S> douts(width), ins(2 * width);
    FloatOutput<S> outs(2 * width);
    for (std::int64_t t = begin; t < end; ++t) {
      const float* in = ins.of(gate_up[t], 2 * width);
      float* to = outs.begin(dgate_up[t]);
      swiglu_slopes(douts.of(dout[t], width), in, in + width, width, to, to + width);
      outs.store(dgate_up[t], 2 * width);
    }
  });
}

void forward_of(const KernelContext& context, Kernel reference, ValueRow values) {
  fast_or_reference(context, cpu::dtype(context, 0), reference, [&]<class S>() { forward<S>(context, values); });
}

void backward_of(const KernelContext& context, Kernel reference, SlopeRow slopes) {
  fast_or_reference(context, cpu::dtype(context, 0), reference, [&]<class S>() { backward<S>(context, slopes); });
}

}  // namespace

void swiglu_forward(const KernelContext& context) {
  fast_or_reference(context, cpu::dtype(context, 0), cpu::swiglu_forward,
                    [&]<class S>() { forward_gated<S>(context); });
}

void swiglu_backward(const KernelContext& context) {
  fast_or_reference(context, cpu::dtype(context, 0), cpu::swiglu_backward,
                    [&]<class S>() { backward_gated<S>(context); });
}

void gelu_forward(const KernelContext& context) { forward_of(context, cpu::gelu_forward, gelu_values); }
void gelu_backward(const KernelContext& context) { backward_of(context, cpu::gelu_backward, gelu_slopes); }

void squared_relu_forward(const KernelContext& context) {
  forward_of(context, cpu::squared_relu_forward, squared_relu_values);
}
void squared_relu_backward(const KernelContext& context) {
  backward_of(context, cpu::squared_relu_backward, squared_relu_slopes);
}

}  // namespace stepcast::kernels::cpu_fast
