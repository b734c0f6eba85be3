// The plans that every claim about lowering is shown on: executed against one rank, simulated and executed with equal
// op ids, equal bytes.
#pragma once

#include <vector>

#include "tests/plan/tiny_scenario.h"

namespace stepcast::plan::testing {

inline std::vector<TinyPlan> degree_plans() {
  return {
      {.name = "single"},
      {.name = "dp2", .dp = 2},
      {.name = "dp4", .dp = 4},
      {.name = "dp2_no_overlap", .dp = 2, .overlap = false},
      {.name = "tp2", .tp = 2},
      {.name = "tp2_sp", .tp = 2, .sequence_parallel = true},
      {.name = "tp4", .tp = 4},
      {.name = "tp4_sp", .tp = 4, .sequence_parallel = true},
      {.name = "pp2_gpipe", .pp = 2, .schedule = ScheduleKind::kGpipe},
      {.name = "pp2_1f1b", .pp = 2},
      {.name = "pp4_gpipe", .pp = 4, .schedule = ScheduleKind::kGpipe},
      {.name = "pp4_1f1b", .pp = 4},
      {.name = "pp2_vp2", .pp = 2, .vp = 2},
      {.name = "pp4_vp2", .pp = 4, .vp = 2, .layout = {0, 1, 0, 1, 1, 0, 1, 0}},
      {.name = "dp2_tp2", .dp = 2, .tp = 2},
      {.name = "dp2_pp2", .dp = 2, .pp = 2},
      {.name = "tp2_pp2", .tp = 2, .pp = 2},
      {.name = "tp2_sp_pp2_vp2", .tp = 2, .sequence_parallel = true, .pp = 2, .vp = 2},
      {.name = "dp2_tp2_pp2", .dp = 2, .tp = 2, .pp = 2},
      {.name = "accumulation4", .dp = 2},  // 8 sequences over 2 ranks: 4 microbatches each
      {.name = "micro_batch2", .dp = 2, .micro_batch = 2},
      {.name = "uneven", .pp = 2, .layout = {1, 3}},
      {.name = "uneven_no_layers_last", .pp = 2, .layout = {4, 0}},
      {.name = "tied", .dp = 2, .tied = true},
      {.name = "tied_pp2", .pp = 2, .tied = true},
      {.name = "tied_tp2_pp2", .tp = 2, .pp = 2, .tied = true},
  };
}

// ZeRO-1 to ZeRO-3, HSDP, and what they overlap.
inline std::vector<TinyPlan> sharded_plans() {
  return {
      {.name = "dp2_zero1", .dp = 2, .zero = 1},
      {.name = "dp4_zero1", .dp = 4, .zero = 1},
      {.name = "dp2_zero2", .dp = 2, .zero = 2},  // 4 microbatches, each reduced into the sharded sum
      {.name = "dp4_zero2", .dp = 4, .zero = 2},
      {.name = "dp2_zero2_no_overlap", .dp = 2, .zero = 2, .overlap = false},
      {.name = "dp2_zero2_one_bucket", .dp = 2, .zero = 2, .bucket_elements = 0},
      {.name = "dp2_tp2_zero2", .dp = 2, .tp = 2, .zero = 2},
      {.name = "dp2_tp2_sp_zero2", .dp = 2, .tp = 2, .sequence_parallel = true, .zero = 2},
      {.name = "dp2_pp2_zero2", .dp = 2, .pp = 2, .zero = 2},
      {.name = "dp2_tp2_sp_pp2_vp2_zero2", .dp = 2, .tp = 2, .sequence_parallel = true, .pp = 2, .vp = 2, .zero = 2},
      {.name = "dp2_zero2_micro_batch2", .dp = 2, .zero = 2, .micro_batch = 2},
      {.name = "dp2_zero3_ring2", .dp = 2, .zero = 3},
      {.name = "dp2_zero3_ring1", .dp = 2, .zero = 3, .prefetch = 0},
      {.name = "dp4_zero3_keep", .dp = 4, .zero = 3, .reshard = false},
      {.name = "dp2_zero3_keep_ring1", .dp = 2, .zero = 3, .reshard = false, .prefetch = 0},
      {.name = "hsdp2x2_zero3", .dp = 4, .zero = 3, .replicate = 2},
      {.name = "hsdp2x2_zero3_keep", .dp = 4, .zero = 3, .reshard = false, .replicate = 2},
      {.name = "hsdp2x2_zero2", .dp = 4, .zero = 2, .replicate = 2},
      {.name = "hsdp2x2_zero1", .dp = 4, .zero = 1, .replicate = 2},
      {.name = "hsdp2x2_zero1_no_overlap", .dp = 4, .zero = 1, .overlap = false, .replicate = 2},
      {.name = "hsdp2x2_tp2_sp_zero1", .dp = 4, .tp = 2, .sequence_parallel = true, .zero = 1, .replicate = 2},
      {.name = "hsdp2x2_pp2_zero1", .dp = 4, .pp = 2, .zero = 1, .replicate = 2},
      {.name = "tied_hsdp2x2_pp2_zero1", .dp = 4, .pp = 2, .zero = 1, .tied = true, .replicate = 2},
      {.name = "dp2_zero3_ring3", .dp = 2, .zero = 3, .prefetch = 2},
      {.name = "dp2_zero1_gather_ahead", .dp = 2, .zero = 1, .gather_ahead = true},
      {.name = "dp4_zero1_gather_ahead_one_bucket", .dp = 4, .zero = 1, .bucket_elements = 0, .gather_ahead = true},
      {.name = "dp2_zero2_gather_ahead", .dp = 2, .zero = 2, .gather_ahead = true},
      {.name = "dp2_tp2_sp_zero1_gather_ahead",
       .dp = 2,
       .tp = 2,
       .sequence_parallel = true,
       .zero = 1,
       .gather_ahead = true},
      {.name = "dp2_pp2_vp2_zero1_gather_ahead", .dp = 2, .pp = 2, .vp = 2, .zero = 1, .gather_ahead = true},
      {.name = "tied_dp2_pp2_zero1_gather_ahead", .dp = 2, .pp = 2, .zero = 1, .tied = true, .gather_ahead = true},
      {.name = "tied_dp2_zero1_gather_ahead", .dp = 2, .zero = 1, .tied = true, .gather_ahead = true},
      {.name = "hsdp2x2_zero1_gather_ahead", .dp = 4, .zero = 1, .replicate = 2, .gather_ahead = true},
      {.name = "dp2_tp2_sp_zero1", .dp = 2, .tp = 2, .sequence_parallel = true, .zero = 1},
      {.name = "dp2_tp2_sp_zero3", .dp = 2, .tp = 2, .sequence_parallel = true, .zero = 3},
      {.name = "dp2_pp2_zero1", .dp = 2, .pp = 2, .zero = 1},
      {.name = "dp2_pp2_zero3", .dp = 2, .pp = 2, .zero = 3},
      {.name = "dp2_tp2_sp_pp2_zero1", .dp = 2, .tp = 2, .sequence_parallel = true, .pp = 2, .zero = 1},
      {.name = "tied_dp2_pp2_zero1", .dp = 2, .pp = 2, .zero = 1, .tied = true},
      {.name = "tied_dp2_zero2", .dp = 2, .zero = 2, .tied = true},
      {.name = "tied_dp2_pp2_zero2", .dp = 2, .pp = 2, .zero = 2, .tied = true},
      {.name = "separate_dp2", .dp = 2, .accumulation = GradientAccumulation::kSeparate},
      {.name = "separate_dp2_zero3", .dp = 2, .zero = 3, .accumulation = GradientAccumulation::kSeparate},
      {.name = "blocking_tp2_pp2", .tp = 2, .pp = 2, .tp_overlap = false},
      {.name = "blocking_tp2_sp", .tp = 2, .sequence_parallel = true, .tp_overlap = false},
  };
}

// ZeRO-3 that keeps whole gradients and reduces them once a step: beside the last microbatch's backward pass, or in a
// pipeline behind a chunk's last one. Eight sequences: 4 microbatches with dp 2, 8 with dp 1 and cp 2.
inline std::vector<TinyPlan> kept_gradient_plans() {
  const Recompute full{RecomputeKind::kFull, false, false, false};
  std::vector<TinyPlan> table = {
      {.name = "dp2_zero3_once", .dp = 2, .zero = 3},
      {.name = "dp4_zero3_keep_once", .dp = 4, .zero = 3, .reshard = false},
      {.name = "dp2_tp2_sp_zero3_once", .dp = 2, .tp = 2, .sequence_parallel = true, .zero = 3},
      {.name = "hsdp2x2_zero3_once", .dp = 4, .zero = 3, .replicate = 2},
      {.name = "separate_dp2_zero3_once", .dp = 2, .zero = 3, .accumulation = GradientAccumulation::kSeparate},
      {.name = "dp2_pp2_zero3_once", .dp = 2, .pp = 2, .zero = 3},
      {.name = "dp2_pp2_gpipe_zero3_once", .dp = 2, .pp = 2, .schedule = ScheduleKind::kGpipe, .zero = 3},
      {.name = "dp2_pp2_zero3_keep_once", .dp = 2, .pp = 2, .zero = 3, .reshard = false},
      {.name = "dp2_pp2_vp2_zero3_once", .dp = 2, .pp = 2, .vp = 2, .zero = 3},
      {.name = "dp2_pp2_vp2_zero3_keep_once", .dp = 2, .pp = 2, .vp = 2, .zero = 3, .reshard = false},
      {.name = "hsdp2x2_pp2_zero3_once", .dp = 4, .pp = 2, .zero = 3, .replicate = 2},
      {.name = "hsdp2x2_pp2_vp2_zero3_keep_once",
       .dp = 4,
       .pp = 2,
       .vp = 2,
       .zero = 3,
       .reshard = false,
       .replicate = 2},
      {.name = "dp2_tp2_sp_pp2_zero3_once", .dp = 2, .tp = 2, .sequence_parallel = true, .pp = 2, .zero = 3},
      {.name = "cp2_pp2_zero3_once", .pp = 2, .zero = 3, .recompute = full, .cp = 2},
      {.name = "dp2_pp4_uneven_zero3_once", .dp = 2, .pp = 4, .zero = 3, .layout = {1, 3, 0, 0}},
  };
  for (TinyPlan& p : table) p.sync = GradientSync::kLastMicrobatch;
  table.push_back({.name = "hsdp2x2_pp2_vp2_zero3", .dp = 4, .pp = 2, .vp = 2, .zero = 3, .replicate = 2});
  return table;
}

// What is recomputed, in the ways that lower differently.
inline std::vector<TinyPlan> recompute_plans() {
  const Recompute full{RecomputeKind::kFull, false, false, false};
  const Recompute norms{RecomputeKind::kSelective, true, false, false};
  const Recompute act{RecomputeKind::kSelective, false, true, false};
  const Recompute core{RecomputeKind::kSelective, false, false, true};
  const Recompute all_modules{RecomputeKind::kSelective, true, true, true};
  const Recompute mlp{.kind = RecomputeKind::kSelective, .mlp = true};
  const Recompute mlp_and_norms{.kind = RecomputeKind::kSelective, .layernorm = true, .mlp = true};
  const Recompute uniform3{.kind = RecomputeKind::kFull, .together = 3};  // of four layers: three and one
  const Recompute block1{.kind = RecomputeKind::kFull, .first = 1};
  const Recompute every2{.kind = RecomputeKind::kFull, .every = 2};
  return {
      {.name = "recompute_full", .dp = 2, .recompute = full},
      {.name = "recompute_norms", .tp = 2, .sequence_parallel = true, .recompute = norms},
      {.name = "recompute_act", .dp = 2, .recompute = act},
      {.name = "recompute_core", .pp = 2, .recompute = core},
      {.name = "recompute_all_modules", .tp = 2, .sequence_parallel = true, .recompute = all_modules},
      {.name = "recompute_mlp", .tp = 2, .sequence_parallel = true, .recompute = mlp},
      {.name = "recompute_mlp_and_norms", .dp = 2, .recompute = mlp_and_norms},
      {.name = "recompute_uniform3", .dp = 2, .recompute = uniform3},
      {.name = "recompute_block1", .pp = 2, .recompute = block1},
      {.name = "recompute_every2_zero3", .dp = 2, .zero = 3, .recompute = every2},
      {.name = "recompute_full_tp2_pp2", .tp = 2, .pp = 2, .recompute = full},
  };
}

inline std::vector<TinyPlan> context_plans() {
  return {
      {.name = "hsdp2x2_cp2_zero3", .dp = 2, .zero = 3, .cp = 2, .replicate = 2},
      {.name = "cp2", .cp = 2},
      {.name = "cp4", .cp = 4},
      {.name = "cp2_tp2_sp", .tp = 2, .sequence_parallel = true, .cp = 2},
      {.name = "cp2_dp2_zero1", .dp = 2, .zero = 1, .cp = 2},
      {.name = "cp2_dp2_zero2", .dp = 2, .zero = 2, .cp = 2},
      {.name = "cp2_dp2_zero3", .dp = 2, .zero = 3, .cp = 2},
      {.name = "cp2_pp2_micro_batch2", .pp = 2, .micro_batch = 2, .cp = 2},
      {.name = "cp4_recompute_core", .recompute = {RecomputeKind::kSelective, false, false, true}, .cp = 4},
      {.name = "cp2_allgather", .cp = 2, .cp_comm = ContextComm::kAllGather},
      {.name = "cp4_allgather", .cp = 4, .cp_comm = ContextComm::kAllGather},
      {.name = "cp2_tp2_allgather", .tp = 2, .cp = 2, .cp_comm = ContextComm::kAllGather},
      {.name = "cp2_dp2_allgather", .dp = 2, .cp = 2, .cp_comm = ContextComm::kAllGather},
      {.name = "cp2_micro_batch2_allgather", .micro_batch = 2, .cp = 2, .cp_comm = ContextComm::kAllGather},
  };
}

// Communication over tp beside the matmuls, under every way of splitting that meets it.
inline std::vector<TinyPlan> tensor_overlap_plans() {
  const TinyPlan overlapped{.name = "tp_comm", .tp = 2, .sequence_parallel = true, .tp_comm = true};
  const Recompute full{RecomputeKind::kFull, false, false, false};
  const Recompute all_modules{RecomputeKind::kSelective, true, true, true};
  std::vector<TinyPlan> table;
  const auto add = [&](const char* split, auto change) {
    TinyPlan p = overlapped;
    p.name += split;
    change(p);
    table.push_back(std::move(p));
  };
  add("_tp2", [](TinyPlan&) {});  // one data-parallel rank: 8 microbatches accumulate
  add("_tp4", [](TinyPlan& p) { p.tp = 4; });
  add("_tp2_ring_scatter", [](TinyPlan& p) { p.tp_ring_scatter = true; });
  add("_tp4_ring_scatter", [](TinyPlan& p) { p.tp = 4, p.tp_ring_scatter = true; });
  add("_tp4_micro_batch2", [](TinyPlan& p) { p.tp = 4, p.micro_batch = 2; });
  add("_tp2_pp2", [](TinyPlan& p) { p.pp = 2; });
  add("_tp4_pp2_vp2", [](TinyPlan& p) { p.tp = 4, p.pp = 2, p.vp = 2; });
  add("_tp2_dp2_zero1", [](TinyPlan& p) { p.dp = 2, p.zero = 1; });
  add("_tp2_dp2_zero3", [](TinyPlan& p) { p.dp = 2, p.zero = 3; });
  add("_tp2_cp2", [](TinyPlan& p) { p.cp = 2; });
  add("_tp4_recompute_full", [&](TinyPlan& p) { p.tp = 4, p.recompute = full; });
  add("_tp2_recompute_all_modules", [&](TinyPlan& p) { p.recompute = all_modules; });
  add("_tp4_blocking", [](TinyPlan& p) { p.tp = 4, p.tp_overlap = false; });
  add("_tp2_dropout_and_biases", [](TinyPlan& p) {
    p.norm = models::NormKind::kLayerNorm, p.activation = models::Activation::kGeluTanh;
    p.biases = true, p.dropout = 0.1;
  });
  add("_tp2_norms_behind", [](TinyPlan& p) { p.norm_placement = models::NormPlacement::kAfter; });
  add("_tp4_qkv_bias_and_qk_norm",
      [](TinyPlan& p) { p.tp = 4, p.qkv_bias = true, p.qk_norm = models::QkNorm::kPerHead; });
  add("_tp2_cp2_a2a", [](TinyPlan& p) { p.cp = 2, p.cp_comm = ContextComm::kAllToAll; });
  add("_tp4_kv2", [](TinyPlan& p) { p.tp = 4, p.kv_heads = 2; });
  return table;
}

// Context parallelism by all-to-all: all rows of half or a quarter of a rank's heads.
inline std::vector<TinyPlan> exchange_plans() {
  const Recompute full{RecomputeKind::kFull, false, false, false};
  const Recompute core{RecomputeKind::kSelective, false, false, true};
  std::vector<TinyPlan> table = {
      {.name = "cp2_a2a", .cp = 2},
      {.name = "cp4_a2a", .cp = 4},
      {.name = "cp2_tp2_a2a", .tp = 2, .cp = 2},
      {.name = "cp2_tp2_sp_a2a", .tp = 2, .sequence_parallel = true, .cp = 2},
      {.name = "cp2_dp2_zero1_a2a", .dp = 2, .zero = 1, .cp = 2},
      {.name = "cp2_dp2_zero3_a2a", .dp = 2, .zero = 3, .cp = 2},
      {.name = "hsdp2x2_cp2_zero3_a2a", .dp = 2, .zero = 3, .cp = 2, .replicate = 2},
      {.name = "cp2_pp2_micro_batch2_a2a", .pp = 2, .micro_batch = 2, .cp = 2},
      {.name = "cp4_recompute_core_a2a", .recompute = core, .cp = 4},
      {.name = "cp2_recompute_full_a2a", .recompute = full, .cp = 2},
      {.name = "cp2_qk_norm_a2a", .cp = 2, .qk_norm = models::QkNorm::kPerHead},
  };
  for (TinyPlan& p : table) p.cp_comm = ContextComm::kAllToAll;
  return table;
}

// What sets GPT-style decoders apart, piece by piece and together, each under every way of splitting that treats it
// differently: biases and norms behind a reduction are replicated over tp, masks depend on rows, heads and samples.
inline std::vector<TinyPlan> gpt_plans() {
  using models::Activation;
  using models::NormKind;
  using models::PositionKind;
  const TinyPlan norms{.name = "layer_norm", .norm = NormKind::kLayerNorm};
  const TinyPlan biases{.name = "biases", .norm = NormKind::kLayerNorm, .biases = true};
  const TinyPlan gelu{
      .name = "gelu", .norm = NormKind::kLayerNorm, .activation = Activation::kGeluTanh, .biases = true};
  const TinyPlan squared_relu{.name = "squared_relu", .activation = Activation::kSquaredRelu};
  TinyPlan learned = gelu;
  learned.name = "learned_positions";
  learned.positions = PositionKind::kLearned;
  TinyPlan alibi = gelu;
  alibi.name = "alibi";
  alibi.positions = PositionKind::kAlibi;
  TinyPlan dropout = learned;
  dropout.name = "dropout";
  dropout.dropout = 0.1;
  const TinyPlan llama_dropout{.name = "llama_dropout", .dropout = 0.2};
  TinyPlan unfused = dropout;
  unfused.name = "unfused";
  unfused.attention = AttentionKind::kUnfused;
  TinyPlan unfused_alibi = alibi;
  unfused_alibi.name = "unfused_alibi";
  unfused_alibi.attention = AttentionKind::kUnfused;
  std::vector<TinyPlan> table;
  for (const TinyPlan& kind :
       {norms, biases, gelu, squared_relu, learned, alibi, dropout, llama_dropout, unfused, unfused_alibi}) {
    const auto add = [&](const char* split, auto change) {
      TinyPlan p = kind;
      p.name += split;
      change(p);
      table.push_back(std::move(p));
    };
    add("_tp2_sp", [](TinyPlan& p) { p.tp = 2, p.sequence_parallel = true; });
    add("_tp2", [](TinyPlan& p) { p.tp = 2; });
    add("_pp2", [](TinyPlan& p) { p.pp = 2; });
    add("_dp2_zero1", [](TinyPlan& p) { p.dp = 2, p.zero = 1; });
  }
  const auto add = [&](TinyPlan p, const char* name) {
    p.name = name;
    table.push_back(std::move(p));
  };
  const TinyPlan& gpt = unfused;
  const auto with = [](TinyPlan p, auto change) {
    change(p);
    return p;
  };
  const Recompute full{RecomputeKind::kFull, false, false, false};
  const Recompute core{RecomputeKind::kSelective, false, false, true};
  const Recompute all_modules{RecomputeKind::kSelective, true, true, true};
  add(with(gpt, [&](TinyPlan& p) { p.dp = 2, p.recompute = full; }), "gpt_recompute_full");
  add(with(gpt, [&](TinyPlan& p) { p.tp = 2, p.sequence_parallel = true, p.recompute = core; }), "gpt_recompute_core");
  add(with(gpt, [&](TinyPlan& p) { p.tp = 2, p.recompute = all_modules; }), "gpt_recompute_all_modules");
  add(with(dropout, [&](TinyPlan& p) { p.dp = 2, p.recompute = all_modules; }), "gpt_fused_recompute_all_modules");
  const Recompute mlp{.kind = RecomputeKind::kSelective, .mlp = true};
  add(with(gpt, [&](TinyPlan& p) { p.tp = 2, p.recompute = mlp; }), "gpt_recompute_mlp");
  add(with(gpt, [](TinyPlan& p) { p.tp = 2, p.sequence_parallel = true, p.micro_batch = 2; }), "gpt_micro_batch2");
  add(with(gpt, [](TinyPlan& p) { p.tp = 2, p.pp = 2, p.tied = true; }), "gpt_tied_tp2_pp2");
  add(with(gpt, [](TinyPlan& p) { p.pp = 2, p.vp = 2; }), "gpt_pp2_vp2");
  add(with(gpt, [](TinyPlan& p) { p.dp = 2, p.tp = 2, p.sequence_parallel = true, p.zero = 2; }), "gpt_tp2_sp_zero2");
  add(with(gpt, [](TinyPlan& p) { p.dp = 2, p.tp = 2, p.sequence_parallel = true, p.zero = 3; }), "gpt_tp2_sp_zero3");
  add(with(gpt,
           [&](TinyPlan& p) {
             p.dp = 2, p.tp = 2, p.pp = 2, p.tied = true, p.overlap = false, p.tp_overlap = false, p.recompute = full;
             p.accumulation = GradientAccumulation::kSeparate;
           }),
      "gpt_megatron_2021");
  return table;
}

// What other dense families have: biases of q, k and v alone (Qwen2), norms of queries and keys (of each head: Qwen3;
// of all heads: OLMo 2, not split over tp), rotary positions of a part of each head (Nemotron), layers without
// positions (SmolLM3), norms behind the blocks (OLMo 2). Norms of queries and keys have other gradients on every tp
// rank with and without sequence parallelism, and flats of their own under ZeRO.
inline std::vector<TinyPlan> dense_plans() {
  const Recompute full{RecomputeKind::kFull, false, false, false};
  const Recompute all_modules{RecomputeKind::kSelective, true, true, true};
  const TinyPlan qkv_bias{.name = "qkv_bias", .qkv_bias = true};
  const TinyPlan qk_norm{.name = "qk_norm", .qk_norm = models::QkNorm::kPerHead};
  const TinyPlan partial_rotary{.name = "partial_rotary", .rotary_fraction = 0.5};
  const TinyPlan nope{.name = "layers_without_positions", .every_other_without_positions = true};
  const TinyPlan behind{.name = "norms_behind", .norm_placement = models::NormPlacement::kAfter};
  std::vector<TinyPlan> table;
  const auto add = [&](TinyPlan p, const char* split, auto change) {
    p.name += split;
    change(p);
    table.push_back(std::move(p));
  };
  for (const TinyPlan& kind : {qkv_bias, qk_norm, partial_rotary, nope, behind}) {
    add(kind, "_tp2_sp", [](TinyPlan& p) { p.tp = 2, p.sequence_parallel = true; });
    add(kind, "_tp2", [](TinyPlan& p) { p.tp = 2; });
    add(kind, "_tp2_pp2", [](TinyPlan& p) { p.tp = 2, p.pp = 2; });
    add(kind, "_dp2_zero3", [](TinyPlan& p) { p.dp = 2, p.zero = 3; });
    add(kind, "_cp2", [](TinyPlan& p) { p.cp = 2; });
    add(kind, "_recompute_full", [&](TinyPlan& p) { p.dp = 2, p.recompute = full; });
    add(kind, "_recompute_all_modules", [&](TinyPlan& p) { p.tp = 2, p.recompute = all_modules; });
  }
  add(qk_norm, "_dp2_tp2_zero1", [](TinyPlan& p) { p.dp = 2, p.tp = 2, p.zero = 1; });
  add(qk_norm, "_dp2_tp2_zero3", [](TinyPlan& p) { p.dp = 2, p.tp = 2, p.zero = 3; });
  add(qk_norm, "_dp2_tp2_sp_zero3", [](TinyPlan& p) { p.dp = 2, p.tp = 2, p.sequence_parallel = true, p.zero = 3; });
  TinyPlan olmo = behind;
  olmo.name = "olmo";
  olmo.qk_norm = models::QkNorm::kFullWidth;
  add(olmo, "_dp2", [](TinyPlan& p) { p.dp = 2; });
  add(olmo, "_pp2_zero1", [](TinyPlan& p) { p.dp = 2, p.pp = 2, p.zero = 1; });
  add(olmo, "_cp2", [](TinyPlan& p) { p.cp = 2; });
  return table;
}

// Fewer key-value heads than tensor-parallel ranks, which share them: two ranks a head, or all one.
inline std::vector<TinyPlan> shared_head_plans() {
  const Recompute full{RecomputeKind::kFull, false, false, false};
  const Recompute core{RecomputeKind::kSelective, false, false, true};
  std::vector<TinyPlan> table = {
      {.name = "tp4_kv2", .tp = 4},
      {.name = "tp4_sp_kv2", .tp = 4, .sequence_parallel = true},
      {.name = "tp4_sp_dp2_zero1_kv2", .dp = 2, .tp = 4, .sequence_parallel = true, .zero = 1},
      {.name = "tp4_dp2_zero3_kv2", .dp = 2, .tp = 4, .zero = 3},
      {.name = "tp4_pp2_kv2", .tp = 4, .pp = 2},
      {.name = "tp4_cp2_kv2", .tp = 4, .cp = 2},
      {.name = "tp4_sp_recompute_full_kv2", .tp = 4, .sequence_parallel = true, .recompute = full},
      {.name = "tp4_recompute_core_kv2", .tp = 4, .recompute = core},
      {.name = "tp4_sp_qkv_bias_kv2", .tp = 4, .sequence_parallel = true, .qkv_bias = true},
      {.name = "tp4_qk_norm_kv2", .tp = 4, .qk_norm = models::QkNorm::kPerHead},
      {.name = "tp4_sp_qk_norm_kv2", .tp = 4, .sequence_parallel = true, .qk_norm = models::QkNorm::kPerHead},
  };
  for (TinyPlan& p : table) p.kv_heads = 2;
  table.push_back({.name = "tp2_sp_kv1", .tp = 2, .sequence_parallel = true, .kv_heads = 1});
  table.push_back({.name = "tp4_kv1", .tp = 4, .kv_heads = 1});
  return table;
}

// FSDP2's mixed precision, under what shards, gathers and reduces differently; computed in bf16, hence in no table
// that is compared to the digit with one rank.
inline std::vector<TinyPlan> fp32_shard_plans() {
  std::vector<TinyPlan> table = {
      {.name = "dp2_fp32_shards", .dp = 2, .zero = 3},
      {.name = "dp4_fp32_shards_keep", .dp = 4, .zero = 3, .reshard = false},
      {.name = "dp2_tp2_sp_fp32_shards", .dp = 2, .tp = 2, .sequence_parallel = true, .zero = 3},
      {.name = "dp2_pp2_fp32_shards", .dp = 2, .pp = 2, .zero = 3},
      {.name = "cp2_fp32_shards", .zero = 3, .cp = 2, .cp_comm = ContextComm::kAllGather},
      {.name = "hsdp2x2_fp32_shards", .dp = 4, .zero = 3, .replicate = 2},
      {.name = "dp2_fp32_shards_reduced_in_bf16", .dp = 2, .zero = 3, .gradients = program::DType::kBf16},
      {.name = "hsdp2x2_fp32_shards_reduced_in_bf16",
       .dp = 4,
       .zero = 3,
       .replicate = 2,
       .gradients = program::DType::kBf16},
  };
  for (const char* suffix : {"", "_reduced_in_bf16"}) {
    TinyPlan p{.name = std::string("dp2_pp2_fp32_shards_once") + suffix, .dp = 2, .pp = 2, .zero = 3, .reshard = false};
    p.sync = GradientSync::kLastMicrobatch;
    p.accumulation = GradientAccumulation::kSeparate;
    if (*suffix != 0) p.gradients = program::DType::kBf16;
    table.push_back(p);
    p.name += "_vp2_hsdp2x2";
    p.dp = 4, p.replicate = 2, p.vp = 2;
    table.push_back(p);
  }
  for (TinyPlan& p : table) p.fp32_shards = true;
  return table;
}

inline std::vector<TinyPlan> plan_table() {
  std::vector<TinyPlan> table;
  for (auto* plans : {degree_plans, sharded_plans, kept_gradient_plans, recompute_plans, context_plans, exchange_plans,
                      tensor_overlap_plans, shared_head_plans, gpt_plans, dense_plans}) {
    for (TinyPlan& p : plans()) table.push_back(std::move(p));
  }
  return table;
}

// The same table for a model of another depth: uneven layouts are stretched by `factor` layers per listed one.
inline std::vector<TinyPlan> plan_table_for(std::int64_t factor) {
  std::vector<TinyPlan> table = plan_table();
  for (TinyPlan& p : table) {
    for (std::int64_t& layers : p.layout) layers *= factor;
  }
  return table;
}

}  // namespace stepcast::plan::testing
