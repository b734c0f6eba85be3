// What a matmul is asked to do, apart from whose memory it works on.
#pragma once

#include <compare>

#include "kernels/cpu/access.h"

namespace stepcast::kernels::cuda {

// kE4m3 and kE5m2: the 8-bit types of OCP's OFP8 (rev. 1.0, 2023), of factors only.
enum class Element : std::uint8_t { kF32, kBf16, kE4m3, kE5m2 };

// c[rows, columns] = a b, with depth products in each sum; a transposed a is stored [depth, rows], a transposed b
// [columns, depth]. Everything is dense and row-major.
struct MatmulShape {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  bool a_transposed = false;
  bool b_transposed = false;
  Element a = Element::kF32;
  Element b = Element::kF32;
  Element result = Element::kF32;
  bool accumulate = false;  // to what c holds
  bool bias = false;        // [columns], of a's type, added to what is written

  bool is_empty() const { return rows == 0 || columns == 0 || depth == 0; }
  auto operator<=>(const MatmulShape&) const = default;
};

inline Element element_of(program::DType dtype) {
  CHECK(dtype == program::DType::kF32 || dtype == program::DType::kBf16, static_cast<int>(dtype));
  return dtype == program::DType::kF32 ? Element::kF32 : Element::kBf16;
}

// Of a matmul op: program/ops/op.h, MatmulForm.
inline MatmulShape matmul_shape(const KernelContext& context) {
  struct Extent {
    std::int64_t rows, width;
  };
  const auto extent = [&](std::size_t position) -> Extent {
    const program::Shape& shape = cpu::operand(context, position).type.shape;
    const std::int64_t width = shape.rank == 0 ? 1 : shape.extent(shape.rank - 1);
    return {width == 0 ? 0 : shape.elements() / width, width};
  };
  const auto [a_rows, a_width] = extent(0);
  const auto [b_rows, b_width] = extent(1);
  const auto [c_rows, c_width] = extent(2);
  const program::MatmulForm form = cpu::attributes(context).form;
  MatmulShape shape;
  shape.a_transposed = form == program::MatmulForm::kTN;
  shape.b_transposed = form == program::MatmulForm::kNT;
  shape.rows = shape.a_transposed ? a_width : a_rows;
  shape.depth = shape.a_transposed ? a_rows : a_width;
  shape.columns = shape.b_transposed ? b_rows : b_width;
  shape.a = element_of(cpu::dtype(context, 0));
  shape.b = element_of(cpu::dtype(context, 1));
  shape.result = element_of(cpu::dtype(context, 2));
  shape.accumulate = context.accumulate;
  shape.bias = context.operands.size() > 3;
  CHECK(shape.depth == (shape.b_transposed ? b_width : b_rows), shape.depth, b_rows, b_width);
  CHECK(c_rows == shape.rows && c_width == shape.columns, c_rows, shape.rows, c_width, shape.columns);
  CHECK(shape.a == shape.b, static_cast<int>(shape.a), static_cast<int>(shape.b));
  CHECK(!shape.bias || (!shape.accumulate && cpu::dtype(context, 3) == cpu::dtype(context, 0) &&
                        cpu::operand(context, 3).type.shape.elements() == shape.columns),
        shape.columns);
  return shape;
}

}  // namespace stepcast::kernels::cuda
