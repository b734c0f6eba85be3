// Shape rules of what makes 8- and 4-bit operands of matmuls, and of fp16's loss scale.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "program/ops/operand_rules.h"

namespace stepcast::program {
namespace {

Shape transposed(const Shape& s) { return {s.dims[1], s.dims[0]}; }

void check_copy(OperandRules& r, std::size_t i) {
  r.access(i, "out", Access::kWrite);
  if (!r.ok()) return;
  r.require(is_quantised(r.type(i).dtype), "out is not of an 8- or 4-bit type");
  const Shape& shape = r.type(i).shape;
  r.require(shape == r.type(0).shape || shape == transposed(r.type(0).shape),
            "out has neither in's shape nor its transpose");
}

void check_quantise(OperandRules& r) {
  if (!r.count(2, 4)) return;
  const std::vector<Operand>& operands = r.op().operands;
  r.access(0, "in", Access::kRead);
  r.has_float(0, "in");
  r.has_rank(0, "in", 2);
  check_copy(r, 1);
  if (!r.ok() || operands.size() == 2) return;
  const bool second = operands[2].access == Access::kWrite;
  if (second) {
    check_copy(r, 2);
    r.has_dtype(2, "out", r.type(1).dtype);
  }
  const std::size_t amax = second ? 3 : 2;
  r.require(operands.size() <= amax + 1, "more operands than in, two results and amax");
  if (r.ok() && operands.size() > amax) r.is(amax, "amax", Access::kRead, {DType::kF32, {1}});
}

void check_transpose(OperandRules& r) {
  if (!r.count(2, 2)) return;
  r.access(0, "in", Access::kRead);
  r.has_rank(0, "in", 2);
  if (!r.ok()) return;
  r.require(is_quantised(r.type(0).dtype), "in is not of an 8- or 4-bit type");
  r.is(1, "out", Access::kWrite, {r.type(0).dtype, transposed(r.type(0).shape)});
}

void check_unscale(OperandRules& r) {
  if (!r.count(2, 3)) return;
  const Attributes& a = r.op().attributes;
  const bool in_place = r.op().operands.size() == 2;
  r.access(0, in_place ? "a" : "in", in_place ? Access::kAccumulate : Access::kRead);
  if (in_place) {
    r.has_dtype(0, "a", DType::kF32);
  } else {
    r.has_float(0, "in");
    r.access(1, "out", Access::kWrite);
    r.has_dtype(1, "out", DType::kF32);
    r.has_elements(1, "out", r.type(0).shape.elements() / std::max<std::int64_t>(1, a.count));
  }
  r.is(in_place ? 1 : 2, "found", Access::kAccumulate, {DType::kF32, {1}});
  r.require(a.value > 0 && std::isfinite(a.value), "value (the factor) must be above 0");
  r.require(a.count >= 0 && (a.count == 0) == !r.op().index_role.has_value(),
            "count (the parts) goes with an index role");
  r.require(a.count == 0 || r.type(0).shape.elements() % a.count == 0, "the elements must divide by count (the parts)");
}

}  // namespace

void check_quantisation(OperandRules& r) {
  switch (r.op().kind) {
    case OpKind::kQuantise:
      return check_quantise(r);
    case OpKind::kAbsMax:
      if (!r.count(2, 2)) return;
      r.access(0, "in", Access::kRead);
      r.has_float(0, "in");
      return r.is(1, "amax", Access::kWrite, {DType::kF32, {1}});
    case OpKind::kTranspose:
      return check_transpose(r);
    case OpKind::kUnscale:
      return check_unscale(r);
    default:
      CHECK(false, to_string(r.op().kind));
  }
}

}  // namespace stepcast::program
