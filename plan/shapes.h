// Sizes of one rank's share of a decoder layer under tensor and sequence parallelism, and the roles lowering uses.
#pragma once

#include <cstdint>
#include <optional>

#include "plan/scenario.h"
#include "program/builder.h"

namespace stepcast::plan {

struct Shapes {
  program::DType compute = program::DType::kBf16;
  program::DType gradients = program::DType::kF32;
  std::int64_t batch = 1;         // sequences per microbatch
  std::int64_t context = 1;       // cp: members that share a sequence
  std::int64_t tokens = 0;        // T: the share of a sequence * batch
  std::int64_t local_tokens = 0;  // T / tp under sequence parallelism, else T
  std::int64_t hidden = 0;
  std::int64_t heads = 0;  // per tp member, like all below
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t q = 0;    // heads * head_dim
  std::int64_t qkv = 0;  // (heads + 2 kv_heads) * head_dim
  // Rows of the projection to them on the rank. Fewer where `kv_ranks` > 1 tp ranks share a key-value head: each then
  // has an equal part of its rows, and kv_heads is 1.
  std::int64_t qkv_rows = 0;
  std::int64_t kv_ranks = 1;
  std::int64_t ffn = 0;
  std::int64_t mlp_in = 0;  // gate and up, or up alone
  std::int64_t vocab = 0;
  bool tensor_parallel = false;   // tp > 1
  std::int64_t tensor_ranks = 1;  // tp
  bool sequence_parallel = false;
  std::int64_t qk = 0;      // columns of q and k
  std::int64_t q_norm = 0;  // weights of the norms of queries and of keys: of one head, or of all
  std::int64_t k_norm = 0;
  program::Shape norm_stats;  // f32: reciprocal deviations [Tl]; of a layer norm means and those [2,Tl]

  // Context parallelism by all-to-all: all members' rows, of a part of the heads.
  std::int64_t exchanged_rows() const { return tokens * context; }
  program::Shape exchanged_qkv() const { return {exchanged_rows(), qkv / context}; }
  program::Shape exchanged_q() const { return {exchanged_rows(), q / context}; }
  program::Shape exchanged_lse() const { return {exchanged_rows(), heads / context}; }

  // Of materialised attention: one matrix for each head of each sequence.
  program::Shape scores() const { return {batch * heads, tokens / batch, tokens / batch}; }

  // Of norms of queries and keys: one number a head, or one each for q and k.
  program::Shape qk_stats() const { return {tokens, q / q_norm + (qk - q) / k_norm}; }

  static Shapes of(const Scenario& s) {
    const std::int64_t tp = s.plan.tp;
    Shapes x;
    x.compute = s.training.compute;
    x.gradients = s.training.gradients;
    x.batch = s.plan.micro_batch_size;
    x.context = s.plan.cp;
    x.tokens = s.training.sequence_length / x.context * x.batch;
    x.tensor_parallel = tp > 1;
    x.sequence_parallel = s.plan.sequence_parallel && tp > 1;
    x.local_tokens = x.sequence_parallel ? x.tokens / tp : x.tokens;
    x.hidden = s.model.hidden;
    x.heads = s.model.heads / tp;
    x.kv_ranks = s.model.kv_heads < tp ? tp / s.model.kv_heads : 1;
    x.kv_heads = s.model.kv_heads * x.kv_ranks / tp;
    x.head_dim = s.model.head_dim;
    x.q = x.heads * x.head_dim;
    x.qkv = x.q + 2 * x.kv_heads * x.head_dim;
    x.qkv_rows = x.q + 2 * x.kv_heads * x.head_dim / x.kv_ranks;
    x.tensor_ranks = tp;
    x.ffn = s.model.ffn / tp;
    x.mlp_in = s.model.mlp_in_width() / tp;
    x.qk = x.q + x.kv_heads * x.head_dim;
    const bool per_head = s.model.qk_norm != models::QkNorm::kFullWidth;
    x.q_norm = per_head ? x.head_dim : x.q;
    x.k_norm = per_head ? x.head_dim : x.qk - x.q;
    x.vocab = s.model.padded_vocab / tp;
    x.norm_stats = {x.local_tokens};
    if (s.model.norm == models::NormKind::kLayerNorm) x.norm_stats = {2, x.local_tokens};
    return x;
  }
};

// Which ranks share a group of each role:
//   tp, cp, dp, pp   differ only in that axis
//   replicas     dp x cp: hold the same parameters; dp itself without context parallelism
//   shards       the replicas that ZeRO shards over: all of them, or under HSDP a contiguous part
//   copies       HSDP: hold the same shard
//   model        tp x pp: together they hold every parameter once
//   instance     together they hold every shard once: model x shards (Megatron's distributed optimizer instance)
//   world        all ranks
//   embedding    the first and the last stage, where a tied table lives twice
//   stage        tp x replicas: hold the parts of a stage's tensors, whose delayed scales are one; none without them
struct Roles {
  program::RoleId tp, dp, pp, model, world, embedding, replicas, cp, shards, copies, instance;
  std::optional<program::RoleId> stage;

  static Roles of(program::ProgramBuilder& b, const Scenario& s) {
    const Plan& plan = s.plan;
    Roles r{b.role("tp"), b.role("dp"), b.role("pp"), b.role("model"), b.role("world"), b.role("embedding"), {}, {},
            {},           {},           {},           std::nullopt};
    r.replicas = plan.cp > 1 ? b.role("dp_cp") : r.dp;
    if (plan.cp > 1) r.cp = b.role("cp");
    r.shards = plan.hybrid() ? b.role("dp_shard") : r.replicas;
    if (plan.hybrid()) r.copies = b.role("dp_replicate");
    r.instance = plan.hybrid() ? b.role("instance") : r.world;
    const bool delayed = s.training.recipe == MatmulRecipe::kDelayed;
    if (delayed && std::int64_t{plan.tp} * plan.replicas() > 1) r.stage = b.role("stage");
    return r;
  }
};

}  // namespace stepcast::plan
