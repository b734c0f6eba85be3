// What a training framework does unless told otherwise, and what it cannot do: one row of data per framework.
//
// Sources of the rows: Megatron-LM d98e8a6 (training/arguments.py, DistributedDataParallelConfig), torchtitan b5bcd76c
// (config, distributed/, models/llama3), nanotron (src/nanotron/config, parallel/), DeepSpeed edaa7221
// (runtime/zero/config.py, runtime/pipe/engine.py), PyTorch DDP for `plain`.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "plan/scenario.h"

namespace stepcast::plan {

struct FrameworkPreset {
  Framework framework = Framework::kPlain;
  std::string_view name = {};  // the scenario's word

  // Defaults.
  std::int32_t zero = 0;  // plan.zero, of several replicas where zero_needs_replicas, else of any
  bool zero_needs_replicas = false;
  bool fp32_parameters = false;                  // ZeRO-3 shards parameters in fp32 and casts them as they are gathered
  bool half_gradients = false;                   // gradients in the compute type
  bool sequence_parallel = true;                 // plan.sequence_parallel where tp > 1
  std::int64_t vocab_pad_to = 1;                 // rows of the vocabulary are a multiple of this ...
  bool vocab_pad_by_tp = false;                  // ... times tp
  std::int64_t bucket_elements = 0;              // of gradients; 0: bucket_bytes
  std::int64_t bucket_elements_per_replica = 0;  // the bucket is at least this times dp * cp
  bool bucketed_with_overlap_only = false;       // else all gradients are one bucket
  std::int64_t bucket_bytes = 0;
  std::int64_t first_bucket_bytes = 0;  // of the first bucket, where it differs; 0: as the others
  bool overlap_grad_reduce = true;
  bool overlap_is_assumed = false;  // the framework's own default is not to overlap; that of this program is
  ContextComm cp_comm = ContextComm::kP2p;
  std::string_view attention = {};  // the fused kernel it calls
  HeadLoss head_loss = HeadLoss::kFused;
  bool selects_layers = false;  // "selective" recomputes layers, not modules
  bool even_rounds = false;     // interleaved 1F1B: microbatches go in equal groups of at least pp, not groups of pp

  // Limits.
  std::string_view zero_stages = {};              // those it has: "01"
  bool gpipe = true;                              // has the schedule
  bool interleaved = true;                        // has virtual stages
  std::string_view cp_comms = " p2p allgather ";  // the cp_comm_type there are
  bool shares_kv_heads = false;                   // among tp ranks, where tp is a multiple of their number
  bool has_user_buffers = false;                  // tp communication beside matmuls, by Transformer Engine
  bool shards_whole_sequences = false;   // sequence parallelism splits every sequence, not the tokens of a microbatch
  bool bounds_positions = false;         // refuses sequences above max_position_embeddings
  std::string_view batch_relation = {};  // how it states a batch, where a batch does not divide
  bool recomputes_blocks = false;        // full recompute has methods: layers together, or the first ones
  std::string_view matmul_recipes = {};  // fp8 and fp4 recipes as they are lowered, the default of fp8 first
  std::string_view recompute_modules = {};  // of selective recompute, those there is a flag for: " core_attn mlp "
};

// The row of a framework.
const FrameworkPreset& preset_of(Framework framework);
// All rows, megatron-core first.
std::span<const FrameworkPreset> framework_presets();
// By the scenario's word, or "megatron"; null for others.
const FrameworkPreset* find_framework(std::string_view name);

}  // namespace stepcast::plan
