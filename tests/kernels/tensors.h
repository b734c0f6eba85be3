// Test operands: tensors of any element type that are filled from and read as doubles, and a call of a reference
// kernel.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "kernels/element.h"
#include "kernels/kernel.h"

namespace stepcast::kernels {

using program::Attributes;
using program::DType;
using program::OpKind;
using program::Shape;

class Buffer {
 public:
  // Every byte 0xff: a NaN in each floating type, -1 in i32. What a kernel that writes must replace.
  Buffer(DType dtype, Shape shape)
      : type_{dtype, shape}, bytes_(static_cast<std::size_t>(type_.bytes()), std::byte{0xff}) {}
  Buffer(DType dtype, Shape shape, const std::vector<double>& values) : Buffer(dtype, shape) {
    CHECK(static_cast<std::int64_t>(values.size()) == size(), values.size(), size());
    for (std::int64_t i = 0; i < size(); ++i) set(i, values[static_cast<std::size_t>(i)]);
  }

  Tensor tensor() { return {bytes_.data(), type_}; }
  DType dtype() const { return type_.dtype; }
  std::int64_t size() const { return type_.shape.elements(); }
  const std::vector<std::byte>& bytes() const { return bytes_; }

  void set(std::int64_t i, double value) {
    switch (type_.dtype) {
      case DType::kF32:
        return write(i, static_cast<float>(value));
      case DType::kF64:
        return write(i, value);
      case DType::kBf16:
        return write(i, to_bf16(static_cast<float>(value)));
      case DType::kI32:
        return write(i, static_cast<std::int32_t>(value));
      case DType::kU8:
        return write(i, static_cast<std::uint8_t>(value));
      default:
        CHECK(false, "no kernel computes in this type", static_cast<int>(type_.dtype));
    }
  }
  double at(std::int64_t i) const {
    switch (type_.dtype) {
      case DType::kF32:
        return static_cast<double>(read<float>(i));
      case DType::kF64:
        return read<double>(i);
      case DType::kBf16:
        return static_cast<double>(to_float(read<Bf16>(i)));
      case DType::kI32:
        return read<std::int32_t>(i);
      case DType::kU8:
        return read<std::uint8_t>(i);
      default:
        break;
    }
    return 0;
  }
  std::vector<double> values() const {
    std::vector<double> result;
    for (std::int64_t i = 0; i < size(); ++i) result.push_back(at(i));
    return result;
  }

 private:
  template <class T>
  void write(std::int64_t i, T value) {
    std::memcpy(bytes_.data() + i * program::size_of(type_.dtype), &value, sizeof value);
  }
  template <class T>
  T read(std::int64_t i) const {
    T value;
    std::memcpy(&value, bytes_.data() + i * program::size_of(type_.dtype), sizeof value);
    return value;
  }

  program::TensorType type_;
  std::vector<std::byte> bytes_;
};

// Standard normal values, a function of the name alone.
inline Buffer random_buffer(DType dtype, Shape shape, std::string_view name) {
  Buffer result(dtype, shape);
  const RandomStream stream(7, name);
  for (std::int64_t i = 0; i < result.size(); ++i) result.set(i, stream.normal_at(static_cast<std::uint64_t>(i)));
  return result;
}

inline Buffer zeros(DType dtype, Shape shape) {
  Buffer result(dtype, shape);
  for (std::int64_t i = 0; i < result.size(); ++i) result.set(i, 0);
  return result;
}

struct RunOptions {
  bool accumulate = false;
  std::int64_t index = 0;
  std::int64_t index_count = 1;
  std::int64_t sample_index = 0;
  std::int64_t layer = 0;
  std::int64_t microbatch = 0;
  std::int64_t step = 1;
  std::uint64_t seed = 0;
};

inline void run(OpKind kind, const Attributes& attributes, std::initializer_list<Buffer*> operands,
                RunOptions options = {}) {
  std::vector<Tensor> tensors;
  for (Buffer* operand : operands) tensors.push_back(operand->tensor());
  const Kernel kernel = reference_kernel(kind);
  CHECK(kernel != nullptr, static_cast<int>(kind));
  kernel(KernelContext{.operands = tensors,
                       .attributes = &attributes,
                       .kind = kind,
                       .accumulate = options.accumulate,
                       .index = options.index,
                       .index_count = options.index_count,
                       .sample_index = options.sample_index,
                       .layer = options.layer,
                       .microbatch = options.microbatch,
                       .step = options.step,
                       .seed = options.seed});
}

// Attributes that only carry `value` (eps, theta, scale, maximum norm).
inline Attributes with_value(double value) {
  Attributes attributes;
  attributes.value = value;
  return attributes;
}

inline Attributes heads_of(std::int32_t heads, std::int32_t kv_heads, std::int32_t head_dim, std::int64_t batch) {
  Attributes attributes;
  attributes.heads = heads;
  attributes.kv_heads = kv_heads;
  attributes.head_dim = head_dim;
  attributes.batch = batch;
  return attributes;
}

}  // namespace stepcast::kernels
