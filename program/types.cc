// Names and sizes of the small vocabulary.
#include "program/types.h"

#include "base/check.h"

namespace stepcast::program {

Shape::Shape(std::initializer_list<Dim> list) {
  CHECK(list.size() <= dims.size(), list.size());
  for (const Dim& dim : list) dims[rank++] = dim;
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    CHECK(!__builtin_mul_overflow(product, dims[axis].bound, &product), dims[axis].bound);
  }
  return product;
}

std::int64_t Shape::extent(int axis) const {
  CHECK(axis >= 0, axis);
  return axis < static_cast<int>(rank) ? dims[static_cast<std::size_t>(axis)].bound : 1;
}

std::string_view to_string(DType t) {
  switch (t) {
    case DType::kF32:
      return "f32";
    case DType::kBf16:
      return "bf16";
    case DType::kF64:
      return "f64";
    case DType::kI32:
      return "i32";
    case DType::kU8:
      return "u8";
    case DType::kF16:
      return "f16";
    case DType::kF8:
      return "f8";
    case DType::kF8Block:
      return "f8_block";
    case DType::kMxF8:
      return "mxf8";
    case DType::kNvF4:
      return "nvf4";
  }
  return "?";
}

std::string_view to_string(Space s) { return s == Space::kDevice ? "device" : "host"; }

std::string_view to_string(MemoryClass c) {
  switch (c) {
    case MemoryClass::kWeights:
      return "weights";
    case MemoryClass::kGradients:
      return "gradients";
    case MemoryClass::kOptimizer:
      return "optimizer";
    case MemoryClass::kActivations:
      return "activations";
    case MemoryClass::kComm:
      return "comm";
  }
  return "?";
}

std::string_view to_string(Stream s) {
  switch (s) {
    case Stream::kCompute:
      return "compute";
    case Stream::kTp:
      return "tp";
    case Stream::kCp:
      return "cp";
    case Stream::kEp:
      return "ep";
    case Stream::kDp:
      return "dp";
    case Stream::kGather:
      return "gather";
    case Stream::kSendNext:
      return "send_next";
    case Stream::kRecvPrev:
      return "recv_prev";
    case Stream::kSendPrev:
      return "send_prev";
    case Stream::kRecvNext:
      return "recv_next";
    case Stream::kD2h:
      return "d2h";
    case Stream::kH2d:
      return "h2d";
  }
  return "?";
}

std::string_view to_string(Access a) {
  switch (a) {
    case Access::kRead:
      return "read";
    case Access::kWrite:
      return "write";
    case Access::kAccumulate:
      return "accumulate";
  }
  return "?";
}

std::string_view to_string(Pass p) {
  switch (p) {
    case Pass::kForward:
      return "F";
    case Pass::kInputGrad:
      return "I";
    case Pass::kWeightGrad:
      return "W";
    case Pass::kRecompute:
      return "R";
    case Pass::kComm:
      return "comm";
    case Pass::kOptimizer:
      return "opt";
  }
  return "?";
}

}  // namespace stepcast::program
