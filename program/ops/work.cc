// FLOPs, memory traffic and message sizes. Attention counts two matmuls of 2*s*s*head_dim per head and sequence, halved
// by the causal mask; its backward is 5 matmuls for 2, hence 2.5 times (Dao, FlashAttention-2, 2023, section 4). Under
// context parallelism a share sees half of the pairs with any other share, and of all of them together half.
#include <algorithm>

#include "base/check.h"
#include "program/ops/rules.h"

namespace stepcast::program {
namespace {

void add_traffic(Work& w, Access access, std::int64_t bytes) {
  if (access != Access::kWrite) w.read += Bytes(bytes);
  if (access != Access::kRead) w.written += Bytes(bytes);
}

// An embedding touches one row of its table per token, at most all of them; Adam as many elements as it has moments; a
// sum of squares over the own part that part.
std::int64_t touched_bytes(const Op& op, std::span<const TensorType> types, std::size_t i) {
  if (op.kind == OpKind::kSumSquares && i == 0 && op.attributes.count > 0)
    return types[0].bytes() / op.attributes.count;
  if (op.kind == OpKind::kAdam && i != 1) return types[2].shape.elements() * size_of(types[i].dtype);
  const bool table =
      (op.kind == OpKind::kEmbeddingForward && i == 1) || (op.kind == OpKind::kEmbeddingBackward && i == 2);
  if (!table) return types[i].bytes();
  const std::int64_t rows = std::min(types[0].shape.extent(0), types[i].shape.extent(0));
  return rows * types[i].shape.extent(1) * size_of(types[i].dtype);
}

void add_matmul(Work& w, const Op& op, std::span<const TensorType> types) {
  const int reduction_axis = op.attributes.form == MatmulForm::kTN ? 0 : 1;
  w.m = types[2].shape.extent(0);
  w.n = types[2].shape.extent(1);
  w.k = types[0].shape.extent(reduction_axis);
  w.flops = Flops(2.0 * static_cast<double>(w.m) * static_cast<double>(w.n) * static_cast<double>(w.k));
}

Flops attention_flops(const Op& op, std::span<const TensorType> types) {
  const Attributes& a = op.attributes;
  CHECK(a.batch > 0, a.batch);
  const AttentionOperands at = attention_operands(op.kind);
  const std::int64_t positions = types[at.keys].shape.extent(0) / a.batch;
  const auto tokens = static_cast<double>(types[at.queries].shape.extent(0));
  const double width = static_cast<double>(a.heads) * static_cast<double>(a.head_dim);
  const double forward = 2.0 * tokens * static_cast<double>(positions) * width;
  return Flops(at.forward ? forward : 2.5 * forward);
}

Bytes message_of(const Op& op, std::span<const TensorType> types) {
  if (op.kind == OpKind::kAllGather) return Bytes(types.back().bytes());
  if (is_collective(op.kind)) return Bytes(types[0].bytes());
  Bytes sent;
  Bytes received;
  for (const P2pPart& part : op.parts) (part.send ? sent : received) += Bytes(types[part.operand].bytes());
  return sent.count > 0 ? sent : received;
}

}  // namespace

AttentionOperands attention_operands(OpKind kind) {
  switch (kind) {
    case OpKind::kAttentionForward:
      return {true, 0, 0};
    case OpKind::kAttentionBackward:
      return {false, 1, 1};
    case OpKind::kContextAttentionForward:
      return {true, 0, 1};
    case OpKind::kContextAttentionBackward:
      return {false, 1, 2};
    default:
      CHECK(false, to_string(kind));
  }
}

Work work_of(const Op& op, std::span<const TensorType> operands) {
  CHECK(op.operands.size() == operands.size(), op.operands.size(), operands.size());
  Work w;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    add_traffic(w, op.operands[i].access, touched_bytes(op, operands, i));
  }
  if (op.kind == OpKind::kMatmul) add_matmul(w, op, operands);
  if (category_of(op.kind) == OpCategory::kAttention) w.flops = attention_flops(op, operands);
  if (is_communication(op.kind)) w.message = message_of(op, operands);
  return w;
}

}  // namespace stepcast::program
