// One function per kind of check, and the wording of what they find.
#include "program/ops/operand_rules.h"

namespace stepcast::program {
namespace {

std::string describe(const Shape& s) {
  std::string text = "[";
  for (std::size_t axis = 0; axis < s.rank; ++axis) {
    if (axis > 0) text += ", ";
    if (s.dims[axis].symbol) text += "<=";
    text += std::to_string(s.dims[axis].bound);
  }
  return text + "]";
}

}  // namespace

std::string describe(const TensorType& t) { return std::string(to_string(t.dtype)) + " " + describe(t.shape); }

bool has_sound_size(const TensorType& t) {
  std::int64_t bytes = size_of(t.dtype);
  for (std::size_t axis = 0; axis < t.shape.rank; ++axis) {
    const std::int64_t bound = t.shape.dims[axis].bound;
    if (bound < 1 || __builtin_mul_overflow(bytes, bound, &bytes)) return false;
  }
  return bytes < (std::int64_t{1} << 62);
}

bool OperandRules::count(std::size_t least, std::size_t most) {
  if (!ok()) return false;
  const std::size_t n = types_.size();
  if (n >= least && n <= most) return true;
  problem_ = std::to_string(n) + " operands, expected " + std::to_string(least);
  if (most != least) problem_ += " to " + std::to_string(most);
  return false;
}

void OperandRules::fail_operand(std::size_t i, std::string_view name, const std::string& expected) {
  problem_ =
      std::string(name) + " (operand " + std::to_string(i) + ") is " + describe(types_[i]) + ", expected " + expected;
}

void OperandRules::access(std::size_t i, std::string_view name, Access expected) {
  if (!ok() || op_.operands[i].access == expected) return;
  problem_ = std::string(name) + " (operand " + std::to_string(i) + ") has access " +
             std::string(to_string(op_.operands[i].access)) + ", expected " + std::string(to_string(expected));
}

void OperandRules::is(std::size_t i, std::string_view name, Access expected, const TensorType& type) {
  access(i, name, expected);
  if (ok() && types_[i] != type) fail_operand(i, name, describe(type));
}

void OperandRules::has_dtype(std::size_t i, std::string_view name, DType dtype) {
  if (ok() && types_[i].dtype != dtype) fail_operand(i, name, std::string(to_string(dtype)));
}

void OperandRules::has_float(std::size_t i, std::string_view name) {
  if (ok() && !is_float(types_[i].dtype)) fail_operand(i, name, "a floating-point type");
}

void OperandRules::has_float_like(std::size_t i, std::string_view name, DType compute) {
  if (!ok() || types_[i].dtype == compute || types_[i].dtype == statistics_type(compute)) return;
  fail_operand(i, name, std::string(to_string(compute)) + " or " + std::string(to_string(statistics_type(compute))));
}

void OperandRules::is_like_or_quantised(std::size_t i, std::string_view name, const TensorType& like) {
  access(i, name, Access::kWrite);
  if (ok() && types_[i].dtype == DType::kF8) return has_shape(i, name, like.shape);
  if (ok() && types_[i] != like) fail_operand(i, name, describe(like) + ", or as much of f8");
}

void OperandRules::has_shape(std::size_t i, std::string_view name, const Shape& shape) {
  if (ok() && types_[i].shape != shape) fail_operand(i, name, "shape " + describe(shape));
}

void OperandRules::has_rank(std::size_t i, std::string_view name, int rank) {
  if (ok() && types_[i].shape.rank != rank) fail_operand(i, name, std::to_string(rank) + " extents");
}

void OperandRules::has_elements(std::size_t i, std::string_view name, std::int64_t elements) {
  if (ok() && types_[i].shape.elements() != elements) fail_operand(i, name, std::to_string(elements) + " elements");
}

void OperandRules::require(bool holds, std::string_view problem) {
  if (ok() && !holds) problem_ = problem;
}

void check_heads(OperandRules& r, std::size_t qkv) {
  constexpr std::int32_t kMostHeads = 1 << 20;  // keeps widths far from overflow
  const Attributes& a = r.op().attributes;
  r.has_float(qkv, "qkv");
  r.has_rank(qkv, "qkv", 2);
  r.require(a.heads > 0 && a.kv_heads > 0 && a.heads % a.kv_heads == 0, "kv_heads must divide heads, both above 0");
  r.require(a.head_dim > 0 && a.head_dim < kMostHeads && a.heads < kMostHeads,
            "head_dim must be above 0, it and heads below 2^20");
  if (!r.ok()) return;
  const std::int64_t width = (std::int64_t{a.heads} + 2 * std::int64_t{a.kv_heads}) * a.head_dim;
  r.has_shape(qkv, "qkv", {r.dim(qkv, 0), width});
  r.require(a.batch > 0 && r.dim(qkv, 0).bound % a.batch == 0, "batch must divide the token rows");
}

void check_dropout(OperandRules& r) {
  const Attributes& a = r.op().attributes;
  r.require(a.value >= 0 && a.value < 1, "value (the dropout probability) must be at least 0 and below 1");
  r.require(!(a.value > 0) || a.microbatches > 0, "dropout needs the microbatches of a step");
  r.require(a.batch > 0, "batch must be above 0");
}

}  // namespace stepcast::program
