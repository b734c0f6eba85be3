// One well-formed op of every kind with small shapes: T = 4 tokens, h = 6, V = 10, f = 8, 2 heads and 1 kv head of 2.
#pragma once

#include <vector>

#include "program/builder.h"

namespace stepcast::program::testing {

struct SampleOperand {
  Access access;
  TensorType type;
};

struct SampleOp {
  Op op;
  std::vector<TensorType> types;
};

inline SampleOp sample(OpKind kind, const std::vector<SampleOperand>& operands) {
  SampleOp s;
  s.op.kind = kind;
  s.op.name = to_string(kind);
  for (const SampleOperand& o : operands) {
    s.op.operands.push_back({false, static_cast<std::uint16_t>(s.types.size()), o.access});
    s.types.push_back(o.type);
  }
  return s;
}

inline constexpr Access R = Access::kRead;
inline constexpr Access W = Access::kWrite;
inline constexpr Access A = Access::kAccumulate;

inline TensorType bf16(Shape s) { return {DType::kBf16, s}; }
inline TensorType f32(Shape s) { return {DType::kF32, s}; }
inline TensorType i32(Shape s) { return {DType::kI32, s}; }
inline TensorType u8(Shape s) { return {DType::kU8, s}; }
inline TensorType f8(Shape s) { return {DType::kF8, s}; }

inline std::vector<SampleOp> layer_samples() {
  std::vector<SampleOp> all;
  const auto add = [&](OpKind kind, const std::vector<SampleOperand>& operands) -> Attributes& {
    all.push_back(sample(kind, operands));
    return all.back().op.attributes;
  };
  const TensorType tokens = i32({4});
  const TensorType x = bf16({4, 6});
  const TensorType rstd = f32({4});
  const TensorType qkv = bf16({4, 8});
  const TensorType attn = bf16({4, 4});
  const TensorType lse = f32({4, 2});
  Attributes& load = add(OpKind::kTokenLoad, {{W, tokens}, {W, tokens}});
  load.batch = 2;
  load.microbatches = 1;
  load.vocab = 10;
  add(OpKind::kEmbeddingForward, {{R, tokens}, {R, bf16({10, 6})}, {W, x}});
  add(OpKind::kEmbeddingBackward, {{R, tokens}, {R, x}, {A, f32({10, 6})}});
  add(OpKind::kRmsNormForward, {{R, x}, {R, bf16({6})}, {W, x}, {W, rstd}}).value = 1e-5;
  add(OpKind::kRmsNormBackwardInput, {{R, x}, {R, x}, {R, rstd}, {R, bf16({6})}, {W, x}, {R, x}});
  add(OpKind::kRmsNormBackwardWeight, {{R, x}, {R, x}, {R, rstd}, {A, f32({6})}});
  add(OpKind::kMatmul, {{R, x}, {R, bf16({8, 6})}, {W, bf16({4, 8})}});
  for (const OpKind kind :
       {OpKind::kRotaryForward, OpKind::kRotaryBackward, OpKind::kAttentionForward, OpKind::kAttentionBackward}) {
    const bool rotary = kind == OpKind::kRotaryForward || kind == OpKind::kRotaryBackward;
    Attributes& a = rotary ? add(kind, {{A, qkv}})
                    : kind == OpKind::kAttentionForward
                        ? add(kind, {{R, qkv}, {W, attn}, {W, lse}})
                        : add(kind, {{R, attn}, {R, qkv}, {R, attn}, {R, lse}, {W, qkv}});
    a.heads = 2;
    a.kv_heads = 1;
    a.head_dim = 2;
    a.batch = 2;
    if (rotary) a.value = 10000;
  }
  // Context parallelism over two members: shares of 4 of 8 rows.
  const TensorType kv = bf16({4, 4});
  const auto share = [&](OpKind kind, const std::vector<SampleOperand>& operands) {
    Attributes& a = add(kind, operands);
    a.heads = 2;
    a.kv_heads = 1;
    a.head_dim = 2;
    a.batch = 2;
    all.back().op.index_role = RoleId(0);
  };
  share(OpKind::kOwnRows, {{R, bf16({8, 6})}, {W, x}});
  share(OpKind::kKvExtract, {{R, qkv}, {W, kv}});
  share(OpKind::kKvAccumulate, {{R, kv}, {A, qkv}});
  share(OpKind::kShareAttentionForward, {{R, qkv}, {R, bf16({8, 4})}, {W, attn}, {W, lse}});
  share(OpKind::kShareAttentionForward, {{R, qkv}, {R, kv}, {A, attn}, {A, lse}});
  share(OpKind::kShareAttentionBackward, {{R, attn}, {R, qkv}, {R, kv}, {R, attn}, {R, lse}, {A, qkv}, {W, kv}});
  add(OpKind::kSwiGluForward, {{R, bf16({4, 16})}, {W, bf16({4, 8})}});
  add(OpKind::kSwiGluBackward, {{R, bf16({4, 8})}, {R, bf16({4, 16})}, {W, bf16({4, 16})}});
  const TensorType logits = bf16({4, 10});
  const TensorType sums = f32({2, 4});
  add(OpKind::kCrossEntropyMax, {{R, logits}, {W, rstd}});
  add(OpKind::kCrossEntropySum, {{R, logits}, {R, rstd}, {R, tokens}, {W, sums}});
  add(OpKind::kCrossEntropyLoss, {{R, rstd}, {R, sums}, {A, f32({1})}}).value = 0.25;
  add(OpKind::kCrossEntropyBackward, {{R, rstd}, {R, sums}, {R, tokens}, {A, logits}}).value = 0.25;
  return all;
}

// Of two members, of 4 rows each: two heads and one of k and of v for each; or the queries of two heads, and half of a
// key and of a value head, of each.
inline std::vector<SampleOp> part_samples() {
  std::vector<SampleOp> all;
  const auto add = [&](OpKind kind, const std::vector<SampleOperand>& operands) {
    all.push_back(sample(kind, operands));
    Attributes& a = all.back().op.attributes;
    a.heads = 2;
    a.kv_heads = 1;
    a.head_dim = 2;
    a.batch = 2;
    a.count = 2;
    all.back().op.index_role = RoleId(0);
  };
  const TensorType q_part = bf16({2, 4, 4});
  const TensorType kv_part = bf16({2, 4, 2});
  add(OpKind::kHeadsSplit, {{R, bf16({4, 16})}, {W, q_part}, {W, kv_part}, {W, kv_part}});
  add(OpKind::kHeadsJoin, {{R, q_part}, {W, bf16({4, 8})}});
  add(OpKind::kSharesJoin, {{R, q_part}, {R, kv_part}, {R, kv_part}, {W, bf16({8, 8})}});
  add(OpKind::kSharesSplit, {{R, bf16({8, 4})}, {W, q_part}});
  const TensorType qkv = bf16({4, 8});
  const TensorType group_parts = bf16({2, 4, 6});
  add(OpKind::kOwnGroup, {{R, group_parts}, {W, qkv}});
  add(OpKind::kOwnGroupBackward, {{R, qkv}, {W, group_parts}});
  return all;
}

inline std::vector<SampleOp> qk_norm_samples() {
  std::vector<SampleOp> all;
  const auto add = [&](OpKind kind, const std::vector<SampleOperand>& operands) {
    all.push_back(sample(kind, operands));
    Attributes& a = all.back().op.attributes;
    a.heads = 2;
    a.kv_heads = 1;
    a.head_dim = 2;
    a.batch = 2;
    a.value = 1e-5;
  };
  const TensorType qkv = bf16({4, 8});
  const TensorType weight = bf16({2});
  const TensorType raw = bf16({4, 6});
  const TensorType rstd = f32({4, 3});
  add(OpKind::kQkNormForward, {{R, weight}, {R, weight}, {A, qkv}, {W, raw}, {W, rstd}});
  add(OpKind::kQkNormBackwardInput, {{R, raw}, {R, rstd}, {R, weight}, {R, weight}, {A, qkv}});
  add(OpKind::kQkNormBackwardWeight, {{R, qkv}, {R, raw}, {R, rstd}, {A, f32({2})}, {A, f32({2})}});
  return all;
}

// Scores of 2 sequences, 2 heads: [4, 2, 2].
inline std::vector<SampleOp> gpt_samples() {
  std::vector<SampleOp> all;
  const auto add = [&](OpKind kind, const std::vector<SampleOperand>& operands, double value = 0) {
    all.push_back(sample(kind, operands));
    Attributes& a = all.back().op.attributes;
    a.heads = 2;
    a.kv_heads = 1;
    a.head_dim = 2;
    a.batch = 2;
    a.microbatches = 1;
    a.value = value;
  };
  const TensorType x = bf16({4, 6});
  const TensorType vector = bf16({6});
  const TensorType gradient = f32({6});
  const TensorType stats = f32({2, 4});
  add(OpKind::kLayerNormForward, {{R, x}, {R, vector}, {R, vector}, {W, x}, {W, stats}}, 1e-5);
  add(OpKind::kLayerNormBackwardInput, {{R, x}, {R, x}, {R, stats}, {R, vector}, {W, x}, {R, x}});
  add(OpKind::kLayerNormBackwardWeight, {{R, x}, {R, x}, {R, stats}, {A, gradient}, {A, gradient}});
  add(OpKind::kBiasBackward, {{R, x}, {A, gradient}});
  for (const OpKind kind : {OpKind::kGeluForward, OpKind::kSquaredReluForward})
    add(kind, {{R, x}, {W, x}, {R, vector}});
  for (const OpKind kind : {OpKind::kGeluBackward, OpKind::kSquaredReluBackward}) {
    add(kind, {{R, x}, {R, x}, {W, x}, {R, vector}});
  }
  add(OpKind::kBiasDropoutAdd, {{R, x}, {R, vector}, {R, x}, {W, x}, {W, u8({4, 6})}}, 0.1);
  add(OpKind::kDropoutForward, {{R, x}, {W, x}, {W, u8({4, 6})}}, 0.1);
  add(OpKind::kDropoutBackward, {{R, x}, {R, u8({4, 6})}, {W, x}}, 0.1);
  add(OpKind::kPositionForward, {{R, bf16({10, 6})}, {A, x}});
  add(OpKind::kPositionBackward, {{R, x}, {A, f32({10, 6})}});
  const TensorType qkv = bf16({4, 8});
  const TensorType scores = bf16({4, 2, 2});
  const TensorType out = bf16({4, 4});
  add(OpKind::kAttentionScoresForward, {{R, qkv}, {W, scores}});
  add(OpKind::kAttentionScoresBackward, {{R, scores}, {R, qkv}, {A, qkv}});
  add(OpKind::kSoftmaxForward, {{R, scores}, {W, scores}});
  add(OpKind::kSoftmaxBackward, {{R, scores}, {A, scores}});
  add(OpKind::kAttentionContextForward, {{R, scores}, {R, qkv}, {W, out}});
  add(OpKind::kAttentionContextBackward, {{R, out}, {R, scores}, {R, qkv}, {W, scores}, {W, qkv}});
  return all;
}

// Communication uses role 0.
inline std::vector<SampleOp> other_samples() {
  std::vector<SampleOp> all;
  const auto add = [&](OpKind kind, const std::vector<SampleOperand>& operands) -> Op& {
    all.push_back(sample(kind, operands));
    return all.back().op;
  };
  const TensorType x = bf16({4, 6});
  const TensorType wide = f32({4, 6});
  const TensorType one = f32({1});
  add(OpKind::kZeroFill, {{W, x}});
  add(OpKind::kCopy, {{R, x}, {W, x}});
  add(OpKind::kCast, {{R, x}, {W, wide}});
  add(OpKind::kAdd, {{R, x}, {R, x}, {W, x}});
  add(OpKind::kAccumulate, {{R, x}, {A, wide}});
  add(OpKind::kSumParts, {{R, x}, {W, bf16({2, 6})}});
  add(OpKind::kSumSquares, {{R, wide}, {A, one}}).attributes.value = 1;
  add(OpKind::kClipFactor, {{R, one}, {W, one}}).attributes.value = 1;
  add(OpKind::kAdam, {{R, wide}, {R, one}, {A, wide}, {A, wide}, {A, wide}, {W, x}}).attributes.learning_rate = 1e-3;
  add(OpKind::kAllReduce, {{A, x}}).group = RoleId(0);
  add(OpKind::kAllGather, {{R, bf16({2, 6})}, {W, x}}).group = RoleId(0);
  Op& scatter = add(OpKind::kReduceScatter, {{R, x}, {W, bf16({2, 6})}});
  scatter.group = RoleId(0);
  scatter.attributes.multiprocessors = 16;
  add(OpKind::kBroadcast, {{A, x}}).group = RoleId(0);
  add(OpKind::kAllToAll, {{R, x}, {W, x}}).group = RoleId(0);
  add(OpKind::kSend, {{R, x}}).parts = {{0, true, RoleId(0), 1, Channel::kActivation}};
  add(OpKind::kReceive, {{W, x}}).parts = {{0, false, RoleId(0), -1, Channel::kActivation}};
  add(OpKind::kExchange, {{R, x}, {W, x}}).parts = {{0, true, RoleId(0), 1, Channel::kGradient},
                                                    {1, false, RoleId(0), -1, Channel::kGradient}};
  add(OpKind::kJoin, {}).attributes.join_stream = Stream::kTp;
  add(OpKind::kHostRead, {{R, one}});
  return all;
}

// Of 8 bits, and of fp16's loss scale.
inline std::vector<SampleOp> quantised_samples() {
  const TensorType one = f32({1});
  std::vector<SampleOp> all = {
      sample(OpKind::kQuantise, {{R, bf16({4, 6})}, {W, f8({4, 6})}, {W, f8({6, 4})}, {R, one}}),
      sample(OpKind::kAbsMax, {{R, bf16({4, 6})}, {W, one}}),
      sample(OpKind::kTranspose, {{R, f8({4, 6})}, {W, f8({6, 4})}}),
      sample(OpKind::kUnscale, {{R, bf16({4, 6})}, {W, f32({4, 6})}, {A, one}})};
  all.back().op.attributes.value = 0.5;
  return all;
}

inline std::vector<SampleOp> all_samples() {
  std::vector<SampleOp> all = layer_samples();
  for (SampleOp& s : part_samples()) all.push_back(std::move(s));
  for (SampleOp& s : qk_norm_samples()) all.push_back(std::move(s));
  for (SampleOp& s : gpt_samples()) all.push_back(std::move(s));
  for (SampleOp& s : other_samples()) all.push_back(std::move(s));
  for (SampleOp& s : quantised_samples()) all.push_back(std::move(s));
  return all;
}

}  // namespace stepcast::program::testing
