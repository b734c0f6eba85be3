// FLOPs, memory traffic and message sizes. Attention counts two matmuls of 2*s*s*head_dim per head and sequence, halved
// by the causal mask; its backward is 5 matmuls for 2, hence 2.5 times (Dao, FlashAttention-2, 2023, section 4). Under
// context parallelism a share sees half of the pairs with any other share, and of all of them together half.
//
// With materialised scores nothing is halved: the matmuls of a score matrix are whole, each 2*T*s*heads*head_dim, one
// forward and two backward for the scores and as many for the context. They touch their own columns of qkv and dqkv.
#include <algorithm>

#include "base/check.h"
#include "program/ops/rules.h"

namespace stepcast::program {
namespace {

void add_traffic(Work& w, Access access, std::int64_t bytes) {
  if (access != Access::kWrite) w.read += Bytes(bytes);
  if (access != Access::kRead) w.written += Bytes(bytes);
}

bool is_backward(OpKind kind) {
  return kind == OpKind::kAttentionScoresBackward || kind == OpKind::kAttentionContextBackward;
}

// Of qkv and dqkv (the operands of its width), scores have the q and k columns and the context has those of v.
std::int64_t attention_bytes(const Op& op, std::span<const TensorType> types, std::size_t i) {
  const Attributes& a = op.attributes;
  const std::int64_t width = (std::int64_t{a.heads} + 2 * std::int64_t{a.kv_heads}) * a.head_dim;
  if (types[i].shape.rank != 2 || types[i].shape.extent(1) != width) return types[i].bytes();
  const bool scores = op.kind == OpKind::kAttentionScoresForward || op.kind == OpKind::kAttentionScoresBackward;
  const std::int64_t columns = (scores ? std::int64_t{a.heads} + a.kv_heads : std::int64_t{a.kv_heads}) * a.head_dim;
  return types[i].shape.extent(0) * columns * size_of(types[i].dtype);
}

bool is_qk_norm(OpKind kind) {
  return kind == OpKind::kQkNormForward || kind == OpKind::kQkNormBackwardInput ||
         kind == OpKind::kQkNormBackwardWeight;
}

// Of qkv and dqkv a norm of queries and keys has the q and k columns.
std::int64_t qk_norm_bytes(const Op& op, std::span<const TensorType> types, std::size_t i) {
  const Attributes& a = op.attributes;
  const std::int64_t q_and_k = (std::int64_t{a.heads} + a.kv_heads) * a.head_dim;
  const bool qkv =
      types[i].shape.rank == 2 && types[i].shape.extent(1) == q_and_k + std::int64_t{a.kv_heads} * a.head_dim;
  return qkv ? types[i].shape.extent(0) * q_and_k * size_of(types[i].dtype) : types[i].bytes();
}

// The rows of the positions of these tokens, each once.
std::int64_t positions_bytes(const Op& op, std::span<const TensorType> types, std::size_t i) {
  const std::size_t table = op.kind == OpKind::kPositionForward ? 0 : 1;
  if (i != table) return types[i].bytes();
  const std::int64_t positions = (types[1 - table].shape.extent(0) + op.attributes.batch - 1) / op.attributes.batch;
  return std::min(positions, types[i].shape.extent(0)) * types[i].shape.extent(1) * size_of(types[i].dtype);
}

// An embedding touches one row of its table per token, at most all of them; Adam as many elements as it has moments; a
// sum of squares over the own part that part.
std::int64_t touched_bytes(const Op& op, std::span<const TensorType> types, std::size_t i) {
  const bool in_part = op.kind == OpKind::kSumSquares || op.kind == OpKind::kAllReduce || op.kind == OpKind::kUnscale;
  if (in_part && i == 0 && op.attributes.count > 0) return types[0].bytes() / op.attributes.count;
  if (op.kind == OpKind::kAdam && i != 1) return types[2].shape.elements() * size_of(types[i].dtype);
  if (is_attention_matmul(op.kind)) return attention_bytes(op, types, i);
  if (is_qk_norm(op.kind)) return qk_norm_bytes(op, types, i);
  if (op.kind == OpKind::kPositionForward || op.kind == OpKind::kPositionBackward) {
    return positions_bytes(op, types, i);
  }
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

// k is the reduced extent: head_dim for scores, the sequence for the context; backward one matmul reduces over head_dim
// and one over the sequence, and k is their harmonic mean, so that what depends on 1/k is the mean of the two.
void add_attention_matmul(Work& w, const Op& op, std::span<const TensorType> types) {
  const Attributes& a = op.attributes;
  const bool scores = op.kind == OpKind::kAttentionScoresForward || op.kind == OpKind::kAttentionScoresBackward;
  const std::size_t qkv = (scores ? 0U : 1U) + (is_backward(op.kind) ? 1U : 0U);
  const std::int64_t tokens = types[qkv].shape.extent(0);
  const std::int64_t sequence = tokens / a.batch;
  const double width = static_cast<double>(a.heads) * static_cast<double>(a.head_dim);
  const double forward = 2.0 * static_cast<double>(tokens) * static_cast<double>(sequence) * width;
  w.flops = Flops(is_backward(op.kind) ? 2 * forward : forward);
  w.k = is_backward(op.kind) ? 2 * a.head_dim * sequence / (a.head_dim + sequence) : scores ? a.head_dim : sequence;
}

Bytes message_of(const Op& op, std::span<const TensorType> types) {
  if (op.kind == OpKind::kAllGather) return Bytes(types.back().bytes());
  if (is_collective(op.kind)) return Bytes(touched_bytes(op, types, 0));
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
    case OpKind::kShareAttentionForward:
      return {true, 0, 1};
    case OpKind::kShareAttentionBackward:
      return {false, 1, 2};
    default:
      CHECK(false, to_string(kind));
  }
}

Work work_of(const Op& op, std::span<const TensorType> operands) {
  CHECK(op.operands.size() == operands.size(), op.operands.size(), operands.size());
  Work w;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    // The columns of dqkv that scores fill are written alone.
    const bool filled = op.kind == OpKind::kAttentionScoresBackward && i == 2;
    add_traffic(w, filled ? Access::kWrite : op.operands[i].access, touched_bytes(op, operands, i));
  }
  if (op.kind == OpKind::kMatmul) add_matmul(w, op, operands);
  if (is_attention_matmul(op.kind)) {
    add_attention_matmul(w, op, operands);
  } else if (category_of(op.kind) == OpCategory::kAttention) {
    w.flops = attention_flops(op, operands);
  }
  if (is_communication(op.kind)) w.message = message_of(op, operands);
  return w;
}

}  // namespace stepcast::program
