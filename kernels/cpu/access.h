// How a reference kernel reaches its operands: typed rows, and the choice of a template by the operands' element types.
//
// A kernel is a template on the storage type S of its main operand; statistics (rstd, lse, max, sums, loss) are of type
// Accumulate<S>, that is f32, or f64 when everything is f64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/check.h"
#include "kernels/element.h"
#include "kernels/kernel.h"

namespace stepcast::kernels::cpu {

template <class S>
constexpr program::DType dtype_of() {
  if constexpr (std::is_same_v<S, float>) return program::DType::kF32;
  if constexpr (std::is_same_v<S, double>) return program::DType::kF64;
  if constexpr (std::is_same_v<S, Bf16>) return program::DType::kBf16;
  if constexpr (std::is_same_v<S, std::int32_t>) return program::DType::kI32;
  if constexpr (std::is_same_v<S, std::uint8_t>) return program::DType::kU8;
}

inline const Tensor& operand(const KernelContext& context, std::size_t position) {
  CHECK(position < context.operands.size(), position, context.operands.size(), static_cast<int>(context.kind));
  return context.operands[position];
}

inline const program::Attributes& attributes(const KernelContext& context) {
  CHECK(context.attributes != nullptr, static_cast<int>(context.kind));
  return *context.attributes;
}

inline program::DType dtype(const KernelContext& context, std::size_t position) {
  return operand(context, position).type.dtype;
}

// A tensor as `count` contiguous rows of `width` elements: the last extent is the width, the others together the count.
template <class S>
struct Rows {
  S* data = nullptr;
  std::int64_t count = 0;
  std::int64_t width = 1;

  constexpr S* operator[](std::int64_t row) const { return data + row * width; }
  constexpr std::int64_t size() const { return count * width; }
};

// The operand at `position` as rows of S, which must be its element type.
template <class S>
Rows<S> rows(const KernelContext& context, std::size_t position) {
  const Tensor& tensor = operand(context, position);
  CHECK(tensor.type.dtype == dtype_of<S>(), position, static_cast<int>(tensor.type.dtype),
        static_cast<int>(context.kind));
  const program::Shape& shape = tensor.type.shape;
  const std::int64_t elements = shape.elements();
  const std::int64_t width = shape.rank == 0 ? 1 : shape.extent(shape.rank - 1);
  CHECK(tensor.data != nullptr || elements == 0, position);
  return {static_cast<S*>(tensor.data), width == 0 ? 0 : elements / width, width};
}

// The operand at `position` if it has `size` elements, else the own one of index_count parts of that size.
template <class S>
S* own_part(const KernelContext& context, std::size_t position, std::int64_t size) {
  const auto whole = rows<S>(context, position);
  if (whole.size() == size) return whole.data;
  CHECK(whole.size() == size * context.index_count, position, whole.size(), size, context.index_count);
  CHECK(context.index >= 0 && context.index < context.index_count, context.index, context.index_count);
  return whole.data + context.index * size;
}

// Calls body.operator()<S>() with the floating storage type S of `dtype`.
template <class Body>
void for_storage(program::DType dtype, const Body& body) {
  switch (dtype) {
    case program::DType::kF32:
      return body.template operator()<float>();
    case program::DType::kBf16:
      return body.template operator()<Bf16>();
    case program::DType::kF64:
      return body.template operator()<double>();
    case program::DType::kI32:
    case program::DType::kU8:
    case program::DType::kF16:
    case program::DType::kF8:
    case program::DType::kF8Block:
    case program::DType::kMxF8:
    case program::DType::kNvF4:
      break;
  }
  CHECK(false, static_cast<int>(dtype));
}

// Calls body.operator()<S, D>() for a source of type S and a result of type D: the same, or f32 results of bf16 sources
// (gradients and logits that are kept in f32).
template <class Body>
void for_source_and_result(program::DType source, program::DType result, const Body& body) {
  if (source == program::DType::kBf16 && result == program::DType::kF32) {
    return body.template operator()<Bf16, float>();
  }
  CHECK(source == result, static_cast<int>(source), static_cast<int>(result));
  for_storage(source, [&]<class S>() { body.template operator()<S, S>(); });
}

// y[0, n) += alpha * x[0, n). The loop that carries matmul-like work: contiguous, without a reduction, so it vectorises
// without reordering any sum.
template <class A, class X>
void add_scaled(std::int64_t n, A alpha, const X* x, A* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] += alpha * widen(x[i]);
}

// The dot product of x[0, n) and y[0, n), summed in order in the accumulate type.
template <class A, class S>
A dot(const S* x, const S* y, std::int64_t n) {
  A sum = 0;
  for (std::int64_t c = 0; c < n; ++c) sum += widen(x[c]) * widen(y[c]);
  return sum;
}

// to[0, n) += sum[0, n), rounded once.
template <class A, class S>
void add_sums(const A* sum, std::int64_t n, S* to) {
  for (std::int64_t c = 0; c < n; ++c) to[c] = narrow<S>(widen(to[c]) + sum[c]);
}

}  // namespace stepcast::kernels::cpu
