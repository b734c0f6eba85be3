// Kernels that treat each element by itself: zero_fill, copy, cast, add, accumulate, sum_parts.
#include <cstring>

#include "kernels/cpu/access.h"
#include "kernels/cpu/reference.h"

namespace stepcast::kernels::cpu {
namespace {

// Both accumulate types fit in it, so that a mixed sum is rounded once.
template <class S, class D>
using Common = std::common_type_t<Accumulate<S>, Accumulate<D>>;

template <class S, class D>
void cast_elements(const KernelContext& context) {
  const auto in = rows<S>(context, 0);
  const auto out = rows<D>(context, 1);
  CHECK(in.size() == out.size(), in.size(), out.size());
  for (std::int64_t i = 0; i < in.size(); ++i) out.data[i] = narrow<D>(widen(in.data[i]));
}

template <class S>
void add_elements(const KernelContext& context) {
  const auto a = rows<S>(context, 0);
  const auto b = rows<S>(context, 1);
  const auto out = rows<S>(context, 2);
  CHECK(a.size() == out.size() && b.size() == out.size(), a.size(), b.size(), out.size());
  for (std::int64_t i = 0; i < out.size(); ++i) out.data[i] = narrow<S>(widen(a.data[i]) + widen(b.data[i]));
}

template <class S, class D>
void accumulate_elements(const KernelContext& context) {
  const auto in = rows<S>(context, 0);
  const auto out = rows<D>(context, 1);
  CHECK(in.size() == out.size(), in.size(), out.size());
  using C = Common<S, D>;
  for (std::int64_t i = 0; i < in.size(); ++i) {
    out.data[i] = narrow<D>(static_cast<C>(widen(out.data[i])) + static_cast<C>(widen(in.data[i])));
  }
}

// In the order of the parts, each sum rounded once: what a reduction in member order gives.
template <class S>
void sum_parts_elements(const KernelContext& context) {
  const auto in = rows<S>(context, 0);
  const auto out = rows<S>(context, 1);
  CHECK(out.size() > 0 && in.size() % out.size() == 0, in.size(), out.size());
  for (std::int64_t i = 0; i < out.size(); ++i) {
    auto sum = widen(in.data[i]);
    for (std::int64_t at = i + out.size(); at < in.size(); at += out.size()) sum += widen(in.data[at]);
    out.data[i] = narrow<S>(sum);
  }
}

}  // namespace

void zero_fill(const KernelContext& context) {
  const Tensor& out = operand(context, 0);
  const std::int64_t bytes = out.type.bytes();
  // All-zero bytes are the value zero in every element type.
  if (bytes > 0) std::memset(out.data, 0, static_cast<std::size_t>(bytes));
}

void copy(const KernelContext& context) {
  const Tensor& in = operand(context, 0);
  const Tensor& out = operand(context, 1);
  CHECK(in.type.dtype == out.type.dtype);
  CHECK(in.type.bytes() == out.type.bytes(), in.type.bytes(), out.type.bytes());
  if (in.type.bytes() > 0) std::memmove(out.data, in.data, static_cast<std::size_t>(in.type.bytes()));
}

void cast(const KernelContext& context) {
  for_storage(dtype(context, 0),
              [&]<class S>() { for_storage(dtype(context, 1), [&]<class D>() { cast_elements<S, D>(context); }); });
}

void add(const KernelContext& context) {
  for_storage(dtype(context, 2), [&]<class S>() { add_elements<S>(context); });
}

void sum_parts(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { sum_parts_elements<S>(context); });
}

void accumulate(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() {
    for_storage(dtype(context, 1), [&]<class D>() { accumulate_elements<S, D>(context); });
  });
}

}  // namespace stepcast::kernels::cpu
