// Matmul by oneDNN: f32, bf16 and bf16 into f32, in the three forms. Everything else is the reference's: f64, empty
// operands, and shapes that oneDNN does not implement on this processor (bf16 without AVX-512).
#include "kernels/cpu/access.h"
#include "kernels/cpu/reference.h"
#include "kernels/cpu_fast/fast_kernels.h"

namespace stepcast::kernels::cpu_fast {
namespace {

using program::DType;

Element element_of(DType dtype) { return dtype == DType::kBf16 ? Element::kBf16 : Element::kF32; }

bool is_covered(DType source, DType result) {
  const bool known = source == DType::kF32 || source == DType::kBf16;
  return known && (result == source || result == DType::kF32);
}

// Rows and width of a tensor, of any element type.
struct Extent {
  std::int64_t rows = 0;
  std::int64_t width = 0;
};

Extent extent_of(const KernelContext& context, std::size_t position) {
  const program::Shape& shape = cpu::operand(context, position).type.shape;
  const std::int64_t width = shape.rank == 0 ? 1 : shape.extent(shape.rank - 1);
  return {width == 0 ? 0 : shape.elements() / width, width};
}

MatmulShape shape_of(const KernelContext& context) {
  const program::MatmulForm form = cpu::attributes(context).form;
  const Extent a = extent_of(context, 0);
  const Extent b = extent_of(context, 1);
  const Extent c = extent_of(context, 2);
  MatmulShape shape;
  shape.a_transposed = form == program::MatmulForm::kTN;
  shape.b_transposed = form == program::MatmulForm::kNT;
  shape.rows = shape.a_transposed ? a.width : a.rows;
  shape.depth = shape.a_transposed ? a.rows : a.width;
  shape.columns = shape.b_transposed ? b.rows : b.width;
  CHECK(shape.depth == (shape.b_transposed ? b.width : b.rows), shape.depth, b.rows, b.width);
  CHECK(c.rows == shape.rows && c.width == shape.columns, c.rows, shape.rows, c.width, shape.columns);
  CHECK(cpu::dtype(context, 1) == cpu::dtype(context, 0), static_cast<int>(cpu::dtype(context, 1)));
  shape.source = element_of(cpu::dtype(context, 0));
  shape.result = element_of(cpu::dtype(context, 2));
  shape.bias = context.operands.size() > 3;
  shape.accumulate = context.accumulate;
  CHECK(!shape.bias || (!shape.accumulate && cpu::operand(context, 3).type.shape.elements() == shape.columns &&
                        cpu::dtype(context, 3) == cpu::dtype(context, 0)),
        shape.columns);
  return shape;
}

}  // namespace

void matmul(const KernelContext& context) {
  if (is_covered(cpu::dtype(context, 0), cpu::dtype(context, 2))) {
    const MatmulShape shape = shape_of(context);
    const bool empty = shape.rows == 0 || shape.columns == 0 || shape.depth == 0;
    const void* bias = shape.bias ? cpu::operand(context, 3).data : nullptr;
    if (!empty &&
        state_of(context).matmuls().multiply(shape, cpu::operand(context, 0).data, cpu::operand(context, 1).data, bias,
                                             cpu::operand(context, 2).data)) {
      return;
    }
  }
  cpu::matmul(context);
}

}  // namespace stepcast::kernels::cpu_fast
