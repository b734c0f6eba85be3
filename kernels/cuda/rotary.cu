// Rotary position embedding; formulas and source: kernels/rotary.h, cpu/rotary.cc. A thread turns one pair of elements
// of every head of a row, so that it computes their angle once.
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/rotary.h"
#include "kernels/share.h"

namespace stepcast::kernels::cuda {
namespace {

struct RotaryRows {
  Share share;
  std::int64_t batch;
  std::int64_t heads;  // of q and k
  std::int64_t head_dim;
  std::int64_t turned;  // elements of each head
  double theta;
  double direction;  // +1 forward, -1 backward
};

template <class S>
__global__ void turn_rows(Rows<S> qkv, RotaryRows at) {
  const std::int64_t t = blockIdx.x;
  const std::int64_t half = at.turned / 2;
  for (std::int64_t i = threadIdx.x; i < half; i += blockDim.x) {
    const auto turn =
        rotary_turn<float>(at.direction, at.share.position(t / at.batch), rotary_frequency(at.theta, i, at.turned));
    for (std::int64_t h = 0; h < at.heads; ++h) {
      S* head = qkv[t] + h * at.head_dim;
      const auto turned = turned_pair<float>({widen(head[i]), widen(head[i + half])}, turn);
      head[i] = narrow<S>(turned.x);
      head[i + half] = narrow<S>(turned.y);
    }
  }
}

void turn(const KernelContext& context, double direction) {
  for_device_storage(dtype(context, 0), [&]<class S>() {
    const auto qkv = rows<S>(context, 0);
    const program::Attributes& a = attributes(context);
    CHECK(a.batch > 0 && a.head_dim > 0 && a.head_dim % 2 == 0 && a.value > 0, a.batch, a.head_dim, a.value);
    CHECK(qkv.width == std::int64_t{a.heads + 2 * a.kv_heads} * a.head_dim, qkv.width, a.heads, a.kv_heads, a.head_dim);
    const std::int64_t turned = a.count > 0 ? a.count : a.head_dim;
    CHECK(turned % 2 == 0 && turned <= a.head_dim, turned, a.head_dim);
    const RotaryRows at{{context.index, context.index_count, qkv.count / a.batch},
                        a.batch,
                        a.heads + a.kv_heads,
                        a.head_dim,
                        turned,
                        a.value,
                        direction};
    launch_rows(context, qkv.count, turned / 2, &turn_rows<S>, qkv, at);
  });
}

}  // namespace

void rotary_forward(const KernelContext& context) { turn(context, 1.0); }
void rotary_backward(const KernelContext& context) { turn(context, -1.0); }

}  // namespace stepcast::kernels::cuda
