// Shape rules, FLOPs and bytes of every op kind: pure functions of the op and its operands' types.
#pragma once

#include <span>
#include <string>

#include "base/units.h"
#include "program/ops/op.h"

namespace stepcast::program {

// Empty when the operands (count, access, types, shapes) fit the kind; else one line saying what was expected.
// Attributes that the kind needs (heads, batch, parts, group ...) are checked too. Collective counts against group
// sizes are checked by program/check, which knows the groups.
std::string check_operands(const Op& op, std::span<const TensorType> operands);

// Of an op of category kAttention: the operands whose rows are its queries and its keys.
struct AttentionOperands {
  bool forward = true;
  std::size_t queries = 0;
  std::size_t keys = 0;
};
AttentionOperands attention_operands(OpKind kind);

// What an op does, for pricing. Memory traffic counts each operand once per access (accumulate: read and write), which
// is what a fused kernel moves; an embedding counts the rows it touches, adam its own part. For collectives and p2p,
// `message` is the size as nccl-tests defines it (all-reduce and broadcast: the buffer; all-gather and reduce-scatter:
// the whole, n x part; p2p: the sum of the sent parts, or of the received ones if nothing is sent).
struct Work {
  Flops flops;  // matmul 2MNK; attention causal: forward 2*T*keys*heads*head_dim, backward 2.5x that
  Bytes read;
  Bytes written;
  Bytes message;
  std::int64_t m = 0, n = 0, k = 0;  // matmul; k also of the two matmuls of attention on materialised scores
};
Work work_of(const Op& op, std::span<const TensorType> operands);

}  // namespace stepcast::program
