// See elements.h. Only memcpy touches the bytes, so the arrays need no particular alignment.
#include "exec/elements.h"

#include <cstring>

#include "base/check.h"
#include "kernels/element.h"

namespace stepcast::exec {
namespace {

template <class T>
T load_as(const void* data, std::int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <class T>
void store_as(void* data, std::int64_t index, T value) {
  std::memcpy(static_cast<std::byte*>(data) + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

}  // namespace

double load_element(const void* data, program::DType dtype, std::int64_t index) {
  switch (dtype) {
    case program::DType::kF32:
      return load_as<float>(data, index);
    case program::DType::kBf16:
      return kernels::to_float(load_as<kernels::Bf16>(data, index));
    case program::DType::kF64:
      return load_as<double>(data, index);
    case program::DType::kI32:
      return load_as<std::int32_t>(data, index);
    case program::DType::kU8:
      return load_as<std::uint8_t>(data, index);
    case program::DType::kF16:
    case program::DType::kF8:
    case program::DType::kF8Block:
    case program::DType::kMxF8:
    case program::DType::kNvF4:
      break;  // no kernel computes in them
  }
  CHECK(false, static_cast<int>(dtype));
  return 0;
}

void store_element(void* data, program::DType dtype, std::int64_t index, double value) {
  switch (dtype) {
    case program::DType::kF32:
      return store_as(data, index, static_cast<float>(value));
    case program::DType::kBf16:
      return store_as(data, index, kernels::to_bf16(static_cast<float>(value)));
    case program::DType::kF64:
      return store_as(data, index, value);
    case program::DType::kI32:
      return store_as(data, index, static_cast<std::int32_t>(value));
    case program::DType::kU8:
      return store_as(data, index, static_cast<std::uint8_t>(value));
    case program::DType::kF16:
    case program::DType::kF8:
    case program::DType::kF8Block:
    case program::DType::kMxF8:
    case program::DType::kNvF4:
      break;
  }
  CHECK(false, static_cast<int>(dtype));
}

}  // namespace stepcast::exec
