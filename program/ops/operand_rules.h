// The checks that shape rules are made of. The first check that fails is kept; later ones are skipped.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "program/ops/op.h"

namespace stepcast::program {

// "bf16 [128, 4096]"; a symbolic extent reads "<=128".
std::string describe(const TensorType& t);

// Extents of at least 1, and fewer than 2^62 bytes: sizes can be computed without overflow.
bool has_sound_size(const TensorType& t);

constexpr bool is_float(DType t) { return t != DType::kI32 && t != DType::kU8 && !is_quantised(t); }
// The type of statistics and sums beside a compute type: f32, but f64 where kernels are checked in double.
constexpr DType statistics_type(DType compute) { return compute == DType::kF64 ? DType::kF64 : DType::kF32; }

class OperandRules {
 public:
  OperandRules(const Op& op, std::span<const TensorType> types) : op_(op), types_(types) {}

  // Says how many operands there are; false when the number is another, and then no operand may be looked at.
  bool count(std::size_t least, std::size_t most);
  // Operand `i`, called `name` in messages.
  void access(std::size_t i, std::string_view name, Access expected);
  void is(std::size_t i, std::string_view name, Access expected, const TensorType& type);
  void has_dtype(std::size_t i, std::string_view name, DType dtype);
  void has_float(std::size_t i, std::string_view name);
  // A float of the compute type or of its statistics type: gradients and logits may be kept wider.
  void has_float_like(std::size_t i, std::string_view name, DType compute);
  // Written, of the shape of `like` and of its type or 8 bits: what a norm quantises itself.
  void is_like_or_quantised(std::size_t i, std::string_view name, const TensorType& like);
  void has_shape(std::size_t i, std::string_view name, const Shape& shape);
  void has_rank(std::size_t i, std::string_view name, int rank);
  void has_elements(std::size_t i, std::string_view name, std::int64_t elements);
  // Anything else: `problem` says what was expected.
  void require(bool holds, std::string_view problem);

  bool ok() const { return problem_.empty(); }
  const TensorType& type(std::size_t i) const { return types_[i]; }
  const Dim& dim(std::size_t i, std::size_t axis) const { return types_[i].shape.dims[axis]; }
  const Op& op() const { return op_; }
  std::string take() { return std::move(problem_); }

 private:
  void fail_operand(std::size_t i, std::string_view name, const std::string& expected);

  const Op& op_;
  std::span<const TensorType> types_;
  std::string problem_;
};

// The rules of one family of kinds each.
void check_elementwise(OperandRules& r);
void check_layer(OperandRules& r);
void check_context_parallel(OperandRules& r);
void check_gpt_layer(OperandRules& r);
void check_loss(OperandRules& r);
void check_optimizer(OperandRules& r);
void check_quantisation(OperandRules& r);
void check_communication(OperandRules& r);

// Heads and batch of rotary and attention ops; `qkv` is the operand that holds queries, keys and values.
void check_heads(OperandRules& r, std::size_t qkv);
// A dropout's probability, and what its masks need where it is above 0.
void check_dropout(OperandRules& r);

}  // namespace stepcast::program
