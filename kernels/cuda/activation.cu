// SwiGLU, GELU and squared ReLU, the last two with the bias of the projection before them; formulas and sources:
// kernels/element.h, cpu/swiglu.cc, cpu/activation.cc.
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/launch.h"

namespace stepcast::kernels::cuda {
namespace {

// Rows of gate_up are [gate | up].
template <class S>
__global__ void swiglu_rows(const S* gate_up, Rows<S> out) {
  const std::int64_t t = blockIdx.x;
  const S* gate = gate_up + t * 2 * out.width;
  const S* up = gate + out.width;
  for (std::int64_t c = threadIdx.x; c < out.width; c += blockDim.x) {
    out[t][c] = narrow<S>(silu(widen(gate[c])) * widen(up[c]));
  }
}

template <class S>
__global__ void swiglu_gradients(Rows<S> dout, const S* gate_up, S* dgate_up) {
  const std::int64_t t = blockIdx.x;
  const std::int64_t first = t * 2 * dout.width;
  for (std::int64_t c = threadIdx.x; c < dout.width; c += blockDim.x) {
    const float gate = widen(gate_up[first + c]);
    const float up = widen(gate_up[first + dout.width + c]);
    const float d = widen(dout[t][c]);
    dgate_up[first + c] = narrow<S>(d * up * silu_derivative(gate));
    dgate_up[first + dout.width + c] = narrow<S>(d * silu(gate));
  }
}

template <class S>
__device__ float biased(const S* in, const S* bias, std::int64_t c) {
  return bias == nullptr ? widen(in[c]) : widen(in[c]) + widen(bias[c]);
}

template <class F, class S>
__global__ void activate(Rows<S> in, const S* bias, S* out) {
  const std::int64_t t = blockIdx.x;
  for (std::int64_t c = threadIdx.x; c < in.width; c += blockDim.x) {
    out[t * in.width + c] = narrow<S>(F::value(biased(in[t], bias, c)));
  }
}

template <class F, class S>
__global__ void activation_gradients(const S* dout, Rows<S> in, const S* bias, S* din) {
  const std::int64_t t = blockIdx.x;
  for (std::int64_t c = threadIdx.x; c < in.width; c += blockDim.x) {
    const std::int64_t at = t * in.width + c;
    din[at] = narrow<S>(widen(dout[at]) * F::derivative(biased(in[t], bias, c)));
  }
}

// The bias operand at `position`, or nullptr where the op has none.
template <class S>
const S* bias_at(const KernelContext& context, std::size_t position, std::int64_t width) {
  if (context.operands.size() <= position) return nullptr;
  const auto bias = rows<S>(context, position);
  CHECK(bias.size() == width, bias.size(), width);
  return bias.data;
}

template <class F>
void forward(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() {
    const auto in = rows<S>(context, 0);
    const auto out = rows<S>(context, 1);
    CHECK(in.size() == out.size(), in.size(), out.size());
    launch_rows(context, in.count, in.width, &activate<F, S>, in, bias_at<S>(context, 2, in.width), out.data);
  });
}

template <class F>
void backward(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() {
    const auto dout = rows<S>(context, 0);
    const auto in = rows<S>(context, 1);
    const auto din = rows<S>(context, 2);
    CHECK(in.size() == dout.size() && in.size() == din.size(), in.size(), dout.size(), din.size());
    launch_rows(context, in.count, in.width, &activation_gradients<F, S>, dout.data, in,
                bias_at<S>(context, 3, in.width), din.data);
  });
}

}  // namespace

void swiglu_forward(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() {
    const auto gate_up = rows<S>(context, 0);
    const auto out = rows<S>(context, 1);
    CHECK(gate_up.count == out.count && gate_up.width == 2 * out.width, gate_up.width, out.width);
    launch_rows(context, out.count, out.width, &swiglu_rows<S>, gate_up.data, out);
  });
}

void swiglu_backward(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() {
    const auto dout = rows<S>(context, 0);
    const auto gate_up = rows<S>(context, 1);
    const auto dgate_up = rows<S>(context, 2);
    CHECK(gate_up.count == dout.count && gate_up.width == 2 * dout.width && dgate_up.size() == gate_up.size(),
          gate_up.width, dout.width, dgate_up.size());
    launch_rows(context, dout.count, dout.width, &swiglu_gradients<S>, dout, gate_up.data, dgate_up.data);
  });
}

void gelu_forward(const KernelContext& context) { forward<Gelu>(context); }
void gelu_backward(const KernelContext& context) { backward<Gelu>(context); }
void squared_relu_forward(const KernelContext& context) { forward<SquaredRelu>(context); }
void squared_relu_backward(const KernelContext& context) { backward<SquaredRelu>(context); }

}  // namespace stepcast::kernels::cuda
