// Small scenarios, of the Llama or the GPT kind, built without files, for tests that lower, simulate and execute plans.
#pragma once

#include <cstdint>
#include <string>

#include "plan/layout.h"
#include "plan/scenario.h"

namespace stepcast::plan::testing {

struct TinyShape {
  std::int64_t layers = 4;
  std::int64_t hidden = 32;
  std::int64_t heads = 8;
  std::int64_t kv_heads = 4;
  std::int64_t ffn = 48;
  std::int64_t vocab = 64;
  std::int64_t sequence = 16;
  std::int64_t global_batch = 8;
  bool tied = false;
  program::DType compute = program::DType::kF32;
  program::DType gradients = program::DType::kF32;
  program::DType moments = program::DType::kF32;
};

struct TinyPlan {
  std::string name;
  std::int32_t dp = 1;
  std::int32_t tp = 1;
  bool sequence_parallel = false;
  std::int32_t pp = 1;
  std::int32_t vp = 1;
  ScheduleKind schedule = ScheduleKind::k1F1B;
  std::int32_t zero = 0;
  bool reshard = true;
  std::int32_t prefetch = 1;
  GradientSync sync = GradientSync::kEveryMicrobatch;  // ZeRO-3
  std::int64_t micro_batch = 1;
  Recompute recompute = {};
  std::vector<std::int64_t> layout = {};  // decoder layers per virtual stage; empty: even
  std::int64_t bucket_elements = 4000;    // several buckets for the tiny model
  bool tied = false;
  bool overlap = true;
  std::int32_t cp = 1;
  std::int32_t replicate = 1;  // HSDP: groups of shards
  bool gather_ahead = false;   // ZeRO-1 and ZeRO-2: updated weights gathered beside the next forward pass
  ContextComm cp_comm = ContextComm::kP2p;
  // Of the GPT kind: the Llama's unless said otherwise.
  models::NormKind norm = models::NormKind::kRmsNorm;         // a LayerNorm has a bias
  models::Activation activation = models::Activation::kSilu;  // SiLU is gated, others are not
  models::PositionKind positions = models::PositionKind::kRotary;
  bool biases = false;
  bool qkv_bias = false;      // alone, without `biases`
  std::int64_t kv_heads = 0;  // in place of the shape's
  models::QkNorm qk_norm = models::QkNorm::kNone;
  double rotary_fraction = 1;
  bool every_other_without_positions = false;
  models::NormPlacement norm_placement = models::NormPlacement::kBefore;
  double dropout = 0;
  AttentionKind attention = AttentionKind::kFused;
  GradientAccumulation accumulation = GradientAccumulation::kFused;
  bool tp_overlap = true;
  bool tp_comm = false;          // rows over tp beside the matmuls
  bool tp_ring_scatter = false;  // with it: products by ring exchange, not as pipelines
  program::DType gradients = program::DType::kF32;
  HeadLoss head_loss = HeadLoss::kFused;
  bool fp32_shards = false;  // bf16 compute with ZeRO-3's parameters in fp32
};

inline models::Architecture tiny_model(const TinyShape& shape, const TinyPlan& p) {
  models::Architecture m;
  m.name = "tiny";
  m.layers = shape.layers;
  m.hidden = shape.hidden;
  m.heads = shape.heads;
  m.kv_heads = p.kv_heads > 0 ? p.kv_heads : shape.kv_heads;
  m.head_dim = shape.hidden / shape.heads;
  m.ffn = shape.ffn;
  m.vocab = shape.vocab;
  m.padded_vocab = shape.vocab;
  m.max_positions = 2048;
  m.tied_embeddings = shape.tied || p.tied;
  m.norm = p.norm;
  m.norm_bias = p.norm == models::NormKind::kLayerNorm;
  m.activation = p.activation;
  m.gated_mlp = p.activation == models::Activation::kSilu;
  m.positions = p.positions;
  m.qkv_bias = m.attention_output_bias = m.mlp_bias = p.biases;
  m.qkv_bias = p.biases || p.qkv_bias;
  m.qk_norm = p.qk_norm;
  m.rotary_fraction = p.rotary_fraction;
  m.norm_placement = p.norm_placement;
  if (p.every_other_without_positions) {
    m.kinds.clear();
    for (std::int64_t i = 0; i < shape.layers; ++i) m.kinds.push_back({.rotary = i % 2 == 0});
  }
  if (p.positions == models::PositionKind::kLearned) m.max_positions = shape.sequence + 4;
  return m;
}

inline topology::Cluster tiny_cluster() {
  topology::Cluster c;
  c.name = "test";
  c.node.devices = 64;
  c.node.scale_up.domain = 64;
  c.node.scale_up.bandwidth = BytesPerSecond(1e9);
  c.node.device.peak_bf16 = FlopsPerSecond(1e9);
  c.node.device.peak_fp32 = FlopsPerSecond(1e9);
  c.node.device.memory = Bytes(std::int64_t{1} << 30);
  c.node.device.memory_bandwidth = BytesPerSecond(1e9);
  c.node.host_link = BytesPerSecond(1e9);
  return c;
}

inline Plan tiny_plan(const TinyShape& shape, const TinyPlan& p) {
  Plan plan;
  plan.tp = p.tp;
  plan.pp = p.pp;
  plan.vp = p.vp;
  plan.dp = p.dp;
  plan.cp = p.cp;
  plan.cp_comm = p.cp_comm;
  plan.sequence_parallel = p.sequence_parallel;
  plan.zero = p.zero;
  plan.dp_replicate = p.replicate;
  plan.fsdp.reshard_after_forward = p.reshard;
  plan.fsdp.prefetch = p.prefetch;
  plan.fsdp.gradient_sync = p.sync;
  plan.micro_batch_size = p.micro_batch;
  plan.schedule = p.vp > 1 ? ScheduleKind::kInterleaved1F1B : p.schedule;
  plan.microbatch_group = p.pp;
  plan.recompute = p.recompute;
  plan.bucket_elements = p.bucket_elements;
  plan.overlap_grad_reduce = p.overlap;
  plan.overlap_tp_input_grad = p.tp_overlap;
  plan.overlap_tp_comm = p.tp_comm;
  if (p.tp_ring_scatter) {
    for (const OverlappedMatmul matmul : {OverlappedMatmul::kProjForward, OverlappedMatmul::kFc2Forward}) {
      plan.user_buffers.of(matmul) = {.method = OverlapMethod::kRingExchange, .multiprocessors = 1, .margin = false};
    }
  }
  plan.overlap_param_gather = p.gather_ahead;
  std::vector<std::int64_t> layers = p.layout;
  const std::int64_t stages = std::int64_t{p.pp} * p.vp;
  if (layers.empty()) layers.assign(static_cast<std::size_t>(stages), shape.layers / stages);
  plan.layout = stage_items(layers);
  return plan;
}

// Learning rate 1e-3, betas 0.9 and 0.95, eps 1e-8, initial std 0.02, clipping at norm 1.
inline Scenario make_scenario(const TinyShape& shape, const TinyPlan& p) {
  Scenario s;
  s.name = p.name;
  s.framework = Framework::kPlain;
  s.model = tiny_model(shape, p);
  s.cluster = tiny_cluster();
  s.plan = tiny_plan(shape, p);
  s.gpus = std::int64_t{p.dp} * p.tp * p.cp * p.pp;
  s.training.sequence_length = shape.sequence;
  s.training.global_batch_size = shape.global_batch;
  s.training.compute = shape.compute;
  s.training.gradients = shape.gradients;
  s.training.moments = shape.moments;
  s.training.master_weights = shape.compute != program::DType::kF32;
  if (p.fp32_shards) {
    s.training.compute = program::DType::kBf16;
    s.training.fp32_shards = s.training.master_weights = true;
  }
  s.training.seed = 7;
  s.training.dropout = p.dropout;
  if (p.gradients != program::DType::kF32) s.training.gradients = p.gradients;
  s.attention = p.attention;
  s.accumulation = p.accumulation;
  s.training.head_loss = p.head_loss;
  return s;
}

}  // namespace stepcast::plan::testing
