// Dropout, alone and fused with the bias before it and the residual after it; formulas and source: cpu/dropout.cc.
// Masks are the reference's to the bit (cpu/dropout_mask.h).
#include "kernels/cpu/dropout_mask.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/launch.h"

namespace stepcast::kernels::cuda {
namespace {

using cpu::DropoutMask;
using cpu::ScoreElements;
using cpu::TokenElements;

DropoutMask mask_of(const KernelContext& context) {
  return DropoutMask(context, static_cast<program::DropoutSite>(attributes(context).count));
}

template <class S>
struct BiasedRows {
  Rows<S> in;
  const S* bias;
  const S* residual;
  S* out;
  std::uint8_t* kept;  // nullptr: no dropout
};

template <class S>
__global__ void add_biased(BiasedRows<S> at, DropoutMask mask, TokenElements elements, float scale) {
  const std::int64_t t = blockIdx.x;
  const std::uint64_t first = elements.of_row(t);
  for (std::int64_t c = threadIdx.x; c < at.in.width; c += blockDim.x) {
    const std::int64_t i = t * at.in.width + c;
    float value = widen(at.in.data[i]) + widen(at.bias[c]);
    if (at.kept != nullptr) {
      const bool keep = mask.keeps(first + static_cast<std::uint64_t>(c));
      at.kept[i] = keep ? 1 : 0;
      value = keep ? value * scale : 0.0F;
    }
    at.out[i] = narrow<S>(widen(at.residual[i]) + value);
  }
}

template <class S, class Elements>
__global__ void drop_rows(Rows<S> in, DropoutMask mask, Elements elements, float scale, S* out, std::uint8_t* kept) {
  const std::int64_t t = blockIdx.x;
  const std::uint64_t first = elements.of_row(t);
  for (std::int64_t c = threadIdx.x; c < in.width; c += blockDim.x) {
    const std::int64_t i = t * in.width + c;
    const bool keep = mask.keeps(first + static_cast<std::uint64_t>(c));
    kept[i] = keep ? 1 : 0;
    out[i] = keep ? narrow<S>(widen(in.data[i]) * scale) : S{};
  }
}

template <class S>
__global__ void pass_kept(const S* dout, const std::uint8_t* kept, std::int64_t count, float scale, S* din) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    din[i] = kept[i] != 0 ? narrow<S>(widen(dout[i]) * scale) : S{};
  }
}

template <class S>
void fused(const KernelContext& context) {
  const auto in = rows<S>(context, 0);
  const auto bias = rows<S>(context, 1);
  const auto residual = rows<S>(context, 2);
  const auto out = rows<S>(context, 3);
  CHECK(in.size() == out.size() && in.size() == residual.size() && bias.size() == in.width, in.size(), bias.size());
  const DropoutMask mask = mask_of(context);
  CHECK(mask.active() == (context.operands.size() > 4), context.operands.size());
  const auto kept = mask.active() ? rows<std::uint8_t>(context, 4) : Rows<std::uint8_t>{};
  CHECK(!mask.active() || kept.size() == in.size(), kept.size(), in.size());
  const BiasedRows<S> at{in, bias.data, residual.data, out.data, kept.data};
  launch_rows(context, in.count, in.width, &add_biased<S>, at, mask, TokenElements(context, mask, in.count, in.width),
              static_cast<float>(mask.scale()));
}

template <class S>
void forward(const KernelContext& context) {
  const auto in = rows<S>(context, 0);
  const auto out = rows<S>(context, 1);
  const auto kept = rows<std::uint8_t>(context, 2);
  CHECK(in.size() == out.size() && in.size() == kept.size(), in.size(), out.size(), kept.size());
  const DropoutMask mask = mask_of(context);
  const auto drop = [&]<class Elements>(const Elements& elements) {
    launch_rows(context, in.count, in.width, &drop_rows<S, Elements>, in, mask, elements,
                static_cast<float>(mask.scale()), out.data, kept.data);
  };
  if (operand(context, 0).type.shape.rank != 3) return drop(TokenElements(context, mask, in.count, in.width));
  drop(ScoreElements(context, mask, in.width));
}

}  // namespace

void bias_dropout_add(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() { fused<S>(context); });
}

void dropout_forward(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() { forward<S>(context); });
}

void dropout_backward(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() {
    const auto dout = rows<S>(context, 0);
    const auto kept = rows<std::uint8_t>(context, 1);
    const auto din = rows<S>(context, 2);
    CHECK(dout.size() == din.size() && dout.size() == kept.size(), dout.size(), din.size(), kept.size());
    launch_elements(context, dout.size(), &pass_kept<S>, dout.data, kept.data, dout.size(),
                    static_cast<float>(1.0 / (1.0 - attributes(context).value)), din.data);
  });
}

}  // namespace stepcast::kernels::cuda
