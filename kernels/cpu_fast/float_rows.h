// Operands of f32 and bf16 as rows of floats: an f32 row is itself, a bf16 row is copied into a buffer of one row,
// small enough for the first cache, so that every loop is over floats. f64 is left to the reference kernels.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/cpu/access.h"
#include "kernels/cpu_fast/row_math.h"

namespace stepcast::kernels::cpu_fast {

// Reads rows of S, up to `width` elements at a time. What of() gives is valid until the next call.
template <class S>
class FloatInput {
 public:
  explicit FloatInput(std::int64_t width) : buffer_(std::is_same_v<S, float> ? 0 : static_cast<std::size_t>(width)) {}

  const float* of(const S* row, std::int64_t n) {
    if constexpr (std::is_same_v<S, float>) {
      return row;
    } else {
      widen_row(row, n, buffer_.data());
      return buffer_.data();
    }
  }

 private:
  std::vector<float> buffer_;
};

// Writes rows of S: into what begin() gives, which may alias a FloatInput's row of the same operand; store() ends it.
template <class S>
class FloatOutput {
 public:
  explicit FloatOutput(std::int64_t width) : buffer_(std::is_same_v<S, float> ? 0 : static_cast<std::size_t>(width)) {}

  float* begin(S* row) {
    if constexpr (std::is_same_v<S, float>) {
      return row;
    } else {
      return buffer_.data();
    }
  }
  void store(S* row, std::int64_t n) {
    if constexpr (!std::is_same_v<S, float>) narrow_row(buffer_.data(), n, row);
  }

 private:
  std::vector<float> buffer_;
};

inline bool is_fast(program::DType dtype) { return dtype == program::DType::kF32 || dtype == program::DType::kBf16; }

// Calls body.operator()<S, D>() for any two of f32 and bf16.
template <class Body>
void for_fast_pair(program::DType source, program::DType result, const Body& body) {
  CHECK(is_fast(source) && is_fast(result), static_cast<int>(source), static_cast<int>(result));
  const auto with_source = [&]<class S>() {
    if (result == program::DType::kF32) return body.template operator()<S, float>();
    return body.template operator()<S, Bf16>();
  };
  if (source == program::DType::kF32) return with_source.template operator()<float>();
  return with_source.template operator()<Bf16>();
}

// Calls body.operator()<S>() for f32 and bf16; other types are the reference kernel's.
template <class Body>
void fast_or_reference(const KernelContext& context, program::DType dtype, Kernel reference, const Body& body) {
  switch (dtype) {
    case program::DType::kF32:
      return body.template operator()<float>();
    case program::DType::kBf16:
      return body.template operator()<Bf16>();
    default:
      return reference(context);
  }
}

// The same for a source S and a result D: equal, or f32 results of bf16 sources.
template <class Body>
void fast_or_reference(const KernelContext& context, program::DType source, program::DType result, Kernel reference,
                       const Body& body) {
  if (source == program::DType::kBf16 && result == program::DType::kF32) {
    return body.template operator()<Bf16, float>();
  }
  if (source != result) return reference(context);
  fast_or_reference(context, source, reference, [&]<class S>() { body.template operator()<S, S>(); });
}

}  // namespace stepcast::kernels::cpu_fast
