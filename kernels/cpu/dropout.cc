// Dropout (Srivastava et al. 2014), scaled at training time: out = in * mask / (1 - p), the mask kept as one byte per
// element, as Megatron does (Korthikanti et al. 2022, arXiv:2205.05198, section 4.1); alone, and fused with the bias of
// a projection before it and the residual after it. Masks: dropout_mask.h.
#include "kernels/cpu/dropout_mask.h"
#include "kernels/cpu/reference.h"

namespace stepcast::kernels::cpu {
namespace {

program::DropoutSite site_of(const KernelContext& context) {
  return static_cast<program::DropoutSite>(attributes(context).count);
}

template <class S>
void fused(const KernelContext& context) {
  using A = Accumulate<S>;
  const auto in = rows<S>(context, 0);
  const auto bias = rows<S>(context, 1);
  const auto residual = rows<S>(context, 2);
  const auto out = rows<S>(context, 3);
  CHECK(in.size() == out.size() && in.size() == residual.size() && bias.size() == in.width, in.size(), bias.size());
  const DropoutMask mask(context, site_of(context));
  CHECK(mask.active() == (context.operands.size() > 4), context.operands.size());
  const auto kept = mask.active() ? rows<std::uint8_t>(context, 4) : Rows<std::uint8_t>{};
  CHECK(!mask.active() || kept.size() == in.size(), kept.size(), in.size());
  const TokenElements elements(context, mask, in.count, in.width);
  const A scale = static_cast<A>(mask.scale());
  for (std::int64_t t = 0; t < in.count; ++t) {
    const std::uint64_t first = elements.of_row(t);
    for (std::int64_t c = 0; c < in.width; ++c) {
      A value = widen(in[t][c]) + widen(bias.data[c]);
      if (mask.active()) {
        const bool keep = mask.keeps(first + static_cast<std::uint64_t>(c));
        kept[t][c] = keep ? 1 : 0;
        value = keep ? value * scale : A(0);
      }
      out[t][c] = narrow<S>(widen(residual[t][c]) + value);
    }
  }
}

// One row of `width` elements whose first is global element `first`.
template <class S>
void drop_row(const DropoutMask& mask, std::uint64_t first, std::int64_t width, const S* in, S* out,
              std::uint8_t* kept) {
  const auto scale = static_cast<Accumulate<S>>(mask.scale());
  for (std::int64_t c = 0; c < width; ++c) {
    const bool keep = mask.keeps(first + static_cast<std::uint64_t>(c));
    kept[c] = keep ? 1 : 0;
    out[c] = keep ? narrow<S>(widen(in[c]) * scale) : narrow<S>(Accumulate<S>(0));
  }
}

template <class S>
void forward(const KernelContext& context) {
  const auto in = rows<S>(context, 0);
  const auto out = rows<S>(context, 1);
  const auto kept = rows<std::uint8_t>(context, 2);
  CHECK(in.size() == out.size() && in.size() == kept.size(), in.size(), out.size(), kept.size());
  const DropoutMask mask(context, site_of(context));
  if (operand(context, 0).type.shape.rank != 3) {
    const TokenElements elements(context, mask, in.count, in.width);
    for (std::int64_t t = 0; t < in.count; ++t) drop_row(mask, elements.of_row(t), in.width, in[t], out[t], kept[t]);
    return;
  }
  const ScoreElements elements(context, mask, in.width);
  for (std::int64_t row = 0; row < in.count; ++row) {
    drop_row(mask, elements.of_row(row), in.width, in[row], out[row], kept[row]);
  }
}

template <class S>
void backward(const KernelContext& context) {
  using A = Accumulate<S>;
  const auto dout = rows<S>(context, 0);
  const auto kept = rows<std::uint8_t>(context, 1);
  const auto din = rows<S>(context, 2);
  CHECK(dout.size() == din.size() && dout.size() == kept.size(), dout.size(), din.size(), kept.size());
  const A scale = static_cast<A>(1.0 / (1.0 - attributes(context).value));
  for (std::int64_t i = 0; i < dout.size(); ++i) {
    din.data[i] = narrow<S>(kept.data[i] != 0 ? widen(dout.data[i]) * scale : A(0));
  }
}

}  // namespace

void bias_dropout_add(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { fused<S>(context); });
}

void dropout_forward(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { forward<S>(context); });
}

void dropout_backward(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { backward<S>(context); });
}

}  // namespace stepcast::kernels::cpu
