// A resolved scenario: model, cluster, training recipe and plan with every default filled in and every value checked
// against its type and range. Made from YAML, JSON or flags by plan/scenario_reader; judged by plan/rules; lowered by
// plan/lowering.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/architecture.h"
#include "program/types.h"
#include "topology/cluster.h"

namespace stepcast::plan {

// What each does by default, and what it cannot do: plan/frameworks.
enum class Framework : std::uint8_t { kPlain, kMegatronCore, kTorchtitan, kNanotron, kDeepSpeed };
enum class ScheduleKind : std::uint8_t { kGpipe, k1F1B, kInterleaved1F1B };
// How context-parallel ranks see each other's keys: passed on in a ring beside the attention to those at hand, or
// gathered before it.
enum class ContextComm : std::uint8_t { kP2p, kAllGather };
enum class AttentionKind : std::uint8_t { kFused, kUnfused };  // unfused: scores and probabilities in memory
enum class RecomputeKind : std::uint8_t { kNone, kFull, kSelective };
// Fused: cross-entropy reads the logits in their own type and its gradient takes their place. Unfused: it works on a
// copy in fp32, and that gradient is cast back.
enum class HeadLoss : std::uint8_t { kFused, kUnfused };

struct Recompute {
  RecomputeKind kind = RecomputeKind::kNone;
  // Selective: the modules whose outputs are not kept.
  bool layernorm = false;
  bool mlp_act = false;
  bool core_attn = false;
  bool mlp = false;  // the whole feed-forward block behind its norm
  // Full: the layers of a virtual stage that are recomputed, counted in their order there.
  std::int64_t together = 1;  // so many at once (Megatron's uniform): the input of the first one is kept
  std::int64_t first = 0;     // only the first so many (Megatron's block); 0: all
  std::int64_t every = 1;     // only each n-th (torchtitan's selective by layers)

  bool recomputes_layer(std::int64_t index) const {
    return kind == RecomputeKind::kFull && (first == 0 || index < first) && (index + 1) % every == 0;
  }
};

struct Fsdp {
  std::int32_t prefetch = 1;  // units gathered ahead; ring of prefetch + 1 buffers
  bool reshard_after_forward = true;
};

struct AdamSettings {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double clip_norm = 1.0;  // 0: no clipping
};

struct Training {
  std::int64_t sequence_length = 0;                 // tokens
  std::int64_t global_batch_size = 0;               // sequences
  program::DType compute = program::DType::kBf16;   // also the parameters' dtype
  program::DType gradients = program::DType::kF32;  // accumulation and reduction
  bool master_weights = true;                       // fp32 copy in the optimizer; false when compute is fp32
  AdamSettings adam;
  HeadLoss head_loss = HeadLoss::kFused;
  double dropout = 0;  // probability, of attention and of what is added to the residual stream
  double init_std = 0.02;
  std::uint64_t seed = 0;
};

struct Plan {
  std::int32_t tp = 1;
  std::int32_t cp = 1;
  ContextComm cp_comm = ContextComm::kP2p;
  std::int32_t pp = 1;
  std::int32_t vp = 1;
  std::int32_t dp = 1;
  bool sequence_parallel = false;
  std::int32_t zero = 0;  // 0, 1 or 3
  Fsdp fsdp;
  std::int64_t micro_batch_size = 1;  // sequences
  ScheduleKind schedule = ScheduleKind::k1F1B;
  std::int32_t microbatch_group = 1;  // interleaved group size
  // Items of each virtual stage, in model order: layout[s] for s in [0, pp*vp); stage s sits on pp rank s % pp as chunk
  // s / pp. See StageItems.
  struct StageItems {
    bool embedding = false;
    std::int64_t first_layer = 0;
    std::int64_t layers = 0;
    bool loss = false;  // final norm, head and cross-entropy
  };
  std::vector<StageItems> layout;
  Recompute recompute;
  std::int64_t bucket_elements = 0;  // gradient bucket size; 0: one bucket
  bool overlap_grad_reduce = true;   // reduce a bucket as soon as it is complete, beside the backward pass
  std::string rank_order = "tp-cp-ep-dp-pp";

  // Ranks that hold the same parameters, each with the gradient of its own tokens: what ZeRO shards over.
  std::int32_t replicas() const { return dp * cp; }
};

// Random spread of op times: each op of each rank takes exp(sigma z) of its time, z standard normal, drawn anew per
// sample.
struct Jitter {
  double compute_sigma = 0;
  double comm_sigma = 0;
  std::int32_t samples = 200;
  std::uint64_t seed = 0;
};

// The whole training job, for its totals.
struct Job {
  double tokens = 0;
  std::optional<double> price;  // US dollars per GPU hour
  double pue = 1.1;             // power usage effectiveness: facility energy over what its computers take
};

struct Scenario {
  std::string name;
  Framework framework = Framework::kMegatronCore;
  models::Architecture model;
  topology::Cluster cluster;            // perturbations included, as overrides of devices
  std::vector<std::int32_t> placement;  // by rank: its device; empty: rank i on device i
  std::int64_t gpus = 0;
  Training training;
  Plan plan;
  AttentionKind attention = AttentionKind::kFused;  // stack.attention
  std::string calibration = "auto";
  std::map<std::string, std::string> environment;  // stack.env: NCCL_ALGO, NCCL_PROTO, NCCL_NVLS_ENABLE, NCCL_MAX_CTAS
  std::optional<std::int64_t> cuda_connections;    // stack.env: CUDA_DEVICE_MAX_CONNECTIONS, judged only
  std::optional<Jitter> jitter;
  std::optional<Job> job;

  std::int32_t device_of(std::int64_t rank) const {
    return placement.empty() ? static_cast<std::int32_t>(rank) : placement[static_cast<std::size_t>(rank)];
  }
  std::int64_t microbatches() const {  // per data-parallel rank and step
    return training.global_batch_size / (plan.micro_batch_size * plan.dp);
  }
};

}  // namespace stepcast::plan
