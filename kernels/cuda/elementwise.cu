// Kernels that treat each element by itself: zero_fill, copy, cast, add, accumulate, sum_parts (cpu/elementwise.cc).
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/launch.h"

namespace stepcast::kernels::cuda {
namespace {

template <class S, class D>
__global__ void cast_elements(const S* in, D* out, std::int64_t count) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) out[i] = narrow<D>(widen(in[i]));
}

template <class S>
__global__ void add_elements(const S* a, const S* b, S* out, std::int64_t count) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    out[i] = narrow<S>(widen(a[i]) + widen(b[i]));
  }
}

template <class S, class D>
__global__ void accumulate_elements(const S* in, D* out, std::int64_t count) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    out[i] = narrow<D>(widen(out[i]) + widen(in[i]));
  }
}

// In the order of the parts, rounded once.
template <class S>
__global__ void sum_of_parts(const S* in, S* out, std::int64_t count, std::int64_t parts) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    auto sum = widen(in[i]);
    for (std::int64_t part = 1; part < parts; ++part) sum += widen(in[part * count + i]);
    out[i] = narrow<S>(sum);
  }
}

}  // namespace

void zero_fill(const KernelContext& context) {
  const Tensor& out = operand(context, 0);
  zero_memory(context, out.data, out.type.bytes());  // all-zero bytes are the value zero in every element type
}

void copy(const KernelContext& context) {
  const Tensor& in = operand(context, 0);
  const Tensor& out = operand(context, 1);
  CHECK(in.type.dtype == out.type.dtype && in.type.bytes() == out.type.bytes(), in.type.bytes(), out.type.bytes());
  copy_memory(context, out.data, in.data, in.type.bytes());
}

void cast(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() {
    for_device_storage(dtype(context, 1), [&]<class D>() {
      const auto in = rows<S>(context, 0);
      const auto out = rows<D>(context, 1);
      CHECK(in.size() == out.size(), in.size(), out.size());
      launch_elements(context, in.size(), &cast_elements<S, D>, in.data, out.data, in.size());
    });
  });
}

void add(const KernelContext& context) {
  for_device_storage(dtype(context, 2), [&]<class S>() {
    const auto a = rows<S>(context, 0);
    const auto b = rows<S>(context, 1);
    const auto out = rows<S>(context, 2);
    CHECK(a.size() == out.size() && b.size() == out.size(), a.size(), b.size(), out.size());
    launch_elements(context, out.size(), &add_elements<S>, a.data, b.data, out.data, out.size());
  });
}

void accumulate(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() {
    for_device_storage(dtype(context, 1), [&]<class D>() {
      const auto in = rows<S>(context, 0);
      const auto out = rows<D>(context, 1);
      CHECK(in.size() == out.size(), in.size(), out.size());
      launch_elements(context, in.size(), &accumulate_elements<S, D>, in.data, out.data, in.size());
    });
  });
}

void sum_parts(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() {
    const auto in = rows<S>(context, 0);
    const auto out = rows<S>(context, 1);
    CHECK(out.size() > 0 && in.size() % out.size() == 0, in.size(), out.size());
    launch_elements(context, out.size(), &sum_of_parts<S>, in.data, out.data, out.size(), in.size() / out.size());
  });
}

}  // namespace stepcast::kernels::cuda
