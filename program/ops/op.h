// The op vocabulary of dense decoders, of the Llama and of the GPT kind: kinds, operand order, attributes. An op that
// cannot be executed is not an op: every kind has a CPU reference kernel in kernels/ or is run by exec itself
// (communication, join, host read).
//
// Operand order and shapes: T tokens held by the rank, row t = position * batch + sequence; h hidden; r read, w write,
// a accumulate = read and write in place. f32 and i32 operands are named; others are of the compute type. "Own part n":
// with an index role of n members, the index-th of n equal parts of the operand is used. "Own share": of 2n equal parts
// of a sequence, part `index` and part 2n - 1 - index, in this order: under the causal mask all members then have the
// same work (the zigzag order of Megatron-Core and Transformer Engine). Operands of matmul, copy, send, receive and
// exchange may be a part of the rows of a tensor: see Operand.
// clang-format off
//   zero_fill            out w
//   copy                 in r, out w                      same type and elements; crosses spaces for h2d and d2h
//   cast                 in r, out w                      same elements
//   quantise             in r, out w [, out w] [, amax r f32 [1]]
//                                                         to 8 or 4 bits; a result has in's shape or its transpose;
//                                                         amax: the largest magnitude, where the scale follows from it
//   absmax               in r, amax w f32 [1]             largest magnitude
//   transpose            in r [R,C], out w [C,R]          of 8- or 4-bit types
//   unscale              a a f32 | in r, out w f32; found a f32 [1]
//                                                         a or out = value * own part of a or in, n = count; found = 1
//                                                         where one is not finite
//   add                  a r, b r, out w                  out = a + b
//   accumulate           in r, out a                      out += in; types may differ
//   token_load           tokens w i32 [T], targets w i32 [T]
//                                                         index role dp; sample (dp*microbatches + count)*batch + row
//   own_rows             in r [n*R ...], out w [R ...]    own share of the rows
//   heads_split          whole r [T,n*W], part w [n,T,W]...              columns of q, k and v (three parts) or of q
//                                                         (one), each as n equal groups of heads, group by group
//   heads_join           part r [n,T,W]..., whole w [T,n*W]              the reverse
//   shares_join          part r [n,T,W]..., whole w [n*T,W]              rows of n members' own shares to those of
//                                                         whole sequences; the columns of several parts side by side
//   shares_split         whole r [n*T,W], part w [n,T,W]...              the reverse
//   own_group            parts r [n,T,heads*d + 2*d/g], qkv w [T,(heads+2)*d]     index role; d = head_dim. A member's
//                                                         part is its queries, and 1/g of a key and of a value head
//                                                         that g = `count` members in a row share: own queries, with
//                                                         that head put together
//   own_group_backward   dqkv r, dparts w                 the reverse; what is another group's is zero
//   embedding_forward    tokens r, table r [V,h], out w [T,h]
//                                                         index role tp: this holder's V rows; others give zero
//   embedding_backward   tokens r, dout r [T,h], dtable a [V,h]          index role tp
//   rmsnorm_forward      x r [T,h], weight r [h], y w [T,h], rstd w f32 [T]       value = eps
//   rmsnorm_backward_input    dy r, x r, rstd r, weight r, dx w [, residual r]    dx = residual + norm gradient
//   rmsnorm_backward_weight   dy r, x r, rstd r, dweight a [h]
//   layernorm_forward    x r [T,h], weight r [h], bias r [h], y w [T,h], stats w f32 [2,T]   value = eps; means, rstds
//   layernorm_backward_input  dy r, x r, stats r, weight r, dx w [, residual r]   dx = residual + norm gradient
//   layernorm_backward_weight dy r, x r, stats r, dweight a [h], dbias a [h]
//   matmul               a r, b r, c w|a [, bias r [N]]   see MatmulForm; a bias is added to what is written; of 8- or
//                                                         4-bit a and b, c and bias are bf16, or c f32
//   bias_backward        dout r [T,n], dbias a [n]        dbias += sum over rows
//   rotary_forward, rotary_backward   qkv a [T,(heads+2*kv_heads)*head_dim]
//                                                         value = theta; rotates q and k in place, the first `count`
//                                                         columns of each head (0: all); with an index role the rows
//                                                         are the own share
//   qk_norm_forward      q_weight r, k_weight r, qkv a, raw w [T,(heads+kv_heads)*head_dim], rstd w f32 [T,n]
//                                                         value = eps; RMSNorm of q and k in place, raw is what they
//                                                         were; weights [head_dim]: of each head, n = heads + kv_heads;
//                                                         weights as wide as q and k: of each at once, n = 2
//   qk_norm_backward_input    raw r, rstd r, q_weight r, k_weight r, dqkv a       q and k columns in place
//   qk_norm_backward_weight   dqkv r, raw r, rstd r, dq_weight a, dk_weight a     dqkv before backward_input
//   attention_forward    qkv r, out w [T,heads*head_dim], lse w f32 [T,heads]     causal; batch sequences interleaved
//   attention_backward   dout r, qkv r, out r, lse r, dqkv w
//   kv_extract           qkv r, kv w [T,2*kv_heads*head_dim]             the columns of k and v
//   kv_accumulate        dkv r [T,2*kv_heads*head_dim], dqkv a           dqkv's k and v columns += dkv
//   share_attention_forward    qkv r, kv r [P,2*kv_heads*head_dim], out w|a, lse w|a     index role; queries are of
//                                                         the own share; P = T: keys of the share of the member `count`
//                                                         before; P = n*T: of all members' in member order. `a` merges
//                                                         into what out and lse hold of other keys
//   share_attention_backward   dout r, qkv r, kv r, out r, lse r, dqkv w|a, dkv w        out and lse are of all keys;
//                                                         k and v columns of dqkv become zero (w) or stay (a)
//                                                         value = dropout of probabilities, whose mask is made again
//                                                         backward; count = heads of the model with ALiBi, 0: none
//   attention_scores_forward  qkv r, scores w [batch*heads,s,s]   q k^T / sqrt(head_dim), unmasked
//   attention_scores_backward dscores r, qkv r, dqkv a            fills q and k columns, which held zeros
//   softmax_forward      scores r [batch*heads,s,s], probabilities w             causal; count as above
//   softmax_backward     probabilities r, gradient a      in place: from probabilities' to scores' gradient
//   attention_context_forward  probabilities r, qkv r, out w [T,heads*head_dim]
//   attention_context_backward dout r, probabilities r, qkv r, dprobabilities w, dqkv w   v columns; others zero
//   swiglu_forward       gate_up r [T,2f], out w [T,f]    out = silu(gate) * up; gate is the first f columns
//   swiglu_backward      dout r, gate_up r, dgate_up w
//   gelu_forward         in r [T,f], out w [T,f] [, bias r [f]]   gelu(in + bias), tanh form
//   gelu_backward        dout r, in r, din w [, bias r]
//   squared_relu_forward, squared_relu_backward           as gelu
//   bias_dropout_add     in r [T,h], bias r [h], residual r, out w [, mask w u8 [T,h]]
//                                                         out = residual + dropout(in + bias); a mask where value > 0
//   dropout_forward      in r, out w, mask w u8           [T,h], or [batch*heads,s,s]; see Dropout below
//   dropout_backward     dout r, mask r, din w            din = dout * mask / (1 - value)
//   position_forward     table r [P,h], x a [T,h]         x += row of its position; index role tp: own rows of T
//   position_backward    dx r [T,h], dtable a [P,h]
//   cross_entropy_max    logits r [T,V], max w f32 [T]
//   cross_entropy_sum    logits r, max r, targets r i32 [T], sums w f32 [2,T]
//                                                         sum of exp, target logit or 0; index role tp
//   cross_entropy_loss   max r, sums r, loss a f32 [1]    loss += value * sum(log(sum) + max - target)
//   cross_entropy_backward    max r, sums r, targets r, logits a [T,V]
//                                                         logits become value * (softmax - onehot); index role tp
//   sum_squares          in r, out a f32 [1]              out += value * sum(in^2); own part of `in`, n = count
//   clip_factor          sumsq r f32 [1], factor w f32 [1]               factor = min(1, value / (sqrt(sumsq) + 1e-6))
//   adam                 grad r, factor r f32 [1], m a, v a as m, master a f32 [, weight w|a]
//                                                         adamw without decay; m's elements set the size; own part of
//                                                         grad, master and weight where they have n times as many;
//                                                         such a weight is written in part: the rest stays; grad and
//                                                         moments may be rounded to bf16
//   all_reduce           buffer a                         reduce = sum | max; own part of the buffer, n = count
//   all_gather           in r, out w | buffer a           out holds the members' parts in member order; in place, the
//                                                         own part already sits at its position
//   reduce_scatter       in r, out w|a | buffer a         out = own part of the sum; in place, it lands at its
//                                                         position; an out with b times the columns of in gets them as
//                                                         block `count` of b, the others stay (a)
//   broadcast            buffer a                         from member `count`
//   all_to_all           in r, out w                      n equal parts each: part j of `in` goes to member j, whose
//                                                         `out` holds the members' parts in member order
//   send | receive       one part; exchange: several      operand r for a send, w for a receive
//   join                 -                                this stream waits for the tail of `join_stream`
//   host_read            in r                             the host waits for the op, then reads; may set `symbol`
//   sum_parts            in r [n*R ...], out w [R ...]    out = sum of the n equal parts of the rows, in their order
//
// Dropout: value = probability. Whether an element stays is a function of (seed, layer, site, step, global element), so
// that every plan draws the same masks and a recomputed pass draws its own again. The layer and microbatch are those of
// the op's call; the sample is that of token_load, its rank's index being that in `sample_role`; an index role tp says
// which rows ([T,h]) or heads ([batch*heads,s,s]) these are. count = site, see DropoutSite.
// clang-format on
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "program/types.h"

namespace stepcast::program {

enum class OpKind : std::uint8_t {
  kZeroFill,
  kCopy,
  kCast,
  kAdd,
  kAccumulate,
  kTokenLoad,
  kEmbeddingForward,
  kEmbeddingBackward,
  kRmsNormForward,
  kRmsNormBackwardInput,
  kRmsNormBackwardWeight,
  kMatmul,
  kRotaryForward,
  kRotaryBackward,
  kAttentionForward,
  kAttentionBackward,
  kSwiGluForward,
  kSwiGluBackward,
  kCrossEntropyMax,
  kCrossEntropySum,
  kCrossEntropyLoss,
  kCrossEntropyBackward,
  kSumSquares,
  kClipFactor,
  kAdam,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kSend,
  kReceive,
  kExchange,
  kJoin,
  kHostRead,
  // Of the GPT kind. A kind's number is part of fingerprints: new ones come last.
  kLayerNormForward,
  kLayerNormBackwardInput,
  kLayerNormBackwardWeight,
  kBiasBackward,
  kGeluForward,
  kGeluBackward,
  kSquaredReluForward,
  kSquaredReluBackward,
  kBiasDropoutAdd,
  kDropoutForward,
  kDropoutBackward,
  kPositionForward,
  kPositionBackward,
  kAttentionScoresForward,
  kAttentionScoresBackward,
  kSoftmaxForward,
  kSoftmaxBackward,
  kAttentionContextForward,
  kAttentionContextBackward,
  // Of context parallelism.
  kOwnRows,
  kKvExtract,
  kKvAccumulate,
  kShareAttentionForward,
  kShareAttentionBackward,
  // Of queries and keys that are normalised.
  kQkNormForward,
  kQkNormBackwardInput,
  kQkNormBackwardWeight,
  // Of tensor-parallel communication in chunks.
  kSumParts,
  // Of context parallelism by all-to-all.
  kAllToAll,
  kHeadsSplit,
  kHeadsJoin,
  kSharesJoin,
  kSharesSplit,
  // Of key-value heads that tensor-parallel ranks share.
  kOwnGroup,
  kOwnGroupBackward,
  // Of matmuls that read 8 or 4 bits, and of fp16's loss scale: priced, without kernels yet.
  kQuantise,
  kAbsMax,
  kTranspose,
  kUnscale,
};
inline constexpr int kOpKindCount = 73;

// What prices an op and what the report groups it by.
enum class OpCategory : std::uint8_t { kMatmul, kAttention, kMemoryBound, kOptimizer, kCollective, kP2p, kCopy, kSync };

// kNT: c[M,N] = a[M,K] b[N,K]^T (forward).  kNN: c[M,N] = a[M,K] b[K,N] (input gradient).
// kTN: c[M,N] = a[K,M]^T b[K,N] (weight gradient).
enum class MatmulForm : std::uint8_t { kNT, kNN, kTN };
enum class Reduce : std::uint8_t { kSum, kMax };

// Which of a layer's dropouts a mask belongs to. Fused attention's own is always kScores.
enum class DropoutSite : std::uint8_t { kEmbedding, kScores, kAttentionOutput, kMlpOutput };

// Channels keep the two directions of traffic of one pair of ranks, or two uses of one group, apart.
enum class Channel : std::uint8_t { kMain, kActivation, kGradient, kWeights };
inline constexpr int kChannelCount = 4;

// Fixed fields; a kind uses those its line above names and leaves the others at their defaults.
struct Attributes {
  MatmulForm form = MatmulForm::kNT;
  Reduce reduce = Reduce::kSum;
  Stream join_stream = Stream::kCompute;
  std::int32_t heads = 0;
  std::int32_t kv_heads = 0;
  std::int32_t head_dim = 0;
  std::int64_t batch = 1;  // sequences interleaved in the token rows
  std::int64_t count = 0;  // token_load: microbatch; broadcast: root member; sum_squares, all_reduce: parts; shares:
                           // steps back; own_group: members that share; see the kind
  // What pricing is told about kernels that run beside each other; -1: nothing. Of communication: the multiprocessors
  // it runs on, in place of those that the library takes; of messages 0: copy engines, which hold none. Of a matmul:
  // those it leaves to communication.
  std::int32_t multiprocessors = -1;
  std::int64_t microbatches = 0;  // token_load, dropout: microbatches per data-parallel rank
  std::int64_t vocab = 0;         // token_load: tokens are below it
  double value = 0;               // eps, theta, scale, maximum norm, dropout: see the kind
  double learning_rate = 0;       // adam
  double beta1 = 0;
  double beta2 = 0;
  double eps = 0;
  bool operator==(const Attributes&) const = default;
};

// An operand: a slot (formal argument) or a temp of the segment, or one of the equal parts its rows are cut into, which
// is then all the op reads or writes. The part is that of the member `before` places before the rank in the op's index
// role, so that one op serves every member of a ring; of an op without one, before the first: the same for all ranks.
struct Operand {
  bool temp = false;
  std::uint16_t index = 0;
  Access access = Access::kRead;
  std::uint16_t parts = 1;   // members, or blocks; 1: the whole
  std::uint16_t before = 0;  // below parts

  bool is_part() const { return parts > 1; }
  bool names_part() const { return parts != 1 || before != 0; }  // also one that cannot be
  bool operator==(const Operand&) const = default;
};

// Whether two operands of one op, both of the same tensor, are other members' parts of it.
constexpr bool are_other_parts(const Operand& a, const Operand& b) {
  return a.parts > 1 && a.parts == b.parts && a.before != b.before;
}

// `position` mod `size`, as 0 <= . < size: where a count of steps through the members of a group comes out.
constexpr std::int64_t member_position(std::int64_t position, std::int64_t size) {
  if (position >= 0 && position < size) return position;
  const std::int64_t rest = position % size;
  return rest < 0 ? rest + size : rest;
}

// The number of the part that an operand is, for the member at `index`.
constexpr std::int64_t part_number(const Operand& o, std::int64_t index) {
  return member_position(index - o.before, o.parts);
}

// One message of a send, receive or exchange. The peer is the member at (own index + offset) mod size of the role's
// group.
struct P2pPart {
  std::uint16_t operand = 0;  // position in Op::operands
  bool send = false;
  RoleId role;
  std::int32_t offset = 0;
  Channel channel = Channel::kActivation;
  bool operator==(const P2pPart&) const = default;
};

struct Op {
  std::string name;  // unique within the call's path
  OpKind kind = OpKind::kZeroFill;
  Stream stream = Stream::kCompute;
  std::vector<Operand> operands;
  Attributes attributes;
  std::optional<RoleId> group;              // collectives
  Channel channel = Channel::kMain;         // collectives
  std::vector<std::int64_t> member_counts;  // collectives: elements per member; empty when equal
  std::vector<P2pPart> parts;               // send, receive, exchange
  std::optional<RoleId> index_role;         // the op reads its rank's index in this role at run time
  std::optional<RoleId> sample_role;        // dropout: the role (dp) that tells whose samples these are
  bool timing_index = false;                // the index changes a count, size or duration, hence splits classes
  std::optional<SymbolId> symbol;           // host_read: the symbol it sets
  bool operator==(const Op&) const = default;
};

// How many times the columns of the matrix `in` a reduce-scatter's `out` has, where that is a whole number; else 1.
std::int64_t column_blocks(const Shape& in, const Shape& out);

std::string_view to_string(OpKind kind);
std::string_view to_string(Channel channel);
std::optional<OpKind> op_kind_from(std::string_view name);
OpCategory category_of(OpKind kind);
// The operand that a kind may write or accumulate (w|a above).
std::optional<std::size_t> accumulable_operand(OpKind kind);
bool is_collective(OpKind kind);
bool is_p2p(OpKind kind);
// Simulated only: there is no kernel yet, and plans with such ops are not executed.
bool is_priced_only(OpKind kind);
// One of the two matmuls of attention, on materialised scores or probabilities.
bool is_attention_matmul(OpKind kind);
inline bool is_communication(OpKind kind) { return is_collective(kind) || is_p2p(kind); }

}  // namespace stepcast::program
