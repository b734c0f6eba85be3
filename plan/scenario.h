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
#include "plan/user_buffers.h"
#include "program/types.h"
#include "topology/cluster.h"

namespace stepcast::plan {

// What each does by default, and what it cannot do: plan/frameworks.
enum class Framework : std::uint8_t { kPlain, kMegatronCore, kTorchtitan, kNanotron, kDeepSpeed };
enum class ScheduleKind : std::uint8_t { kGpipe, k1F1B, kInterleaved1F1B };
// How context-parallel ranks see each other's keys: passed on in a ring beside the attention to those at hand, gathered
// before it, or with all rows of a part of the heads, for which the members' rows are exchanged.
enum class ContextComm : std::uint8_t { kP2p, kAllGather, kAllToAll };
enum class AttentionKind : std::uint8_t { kFused, kUnfused };  // unfused: scores and probabilities in memory
// Of weight gradients: by their matmul, or by a kernel of its own behind it.
enum class GradientAccumulation : std::uint8_t { kFused, kSeparate };
// How the matmuls of decoder layers are fed 8 or 4 bits (Transformer Engine's recipes; what each does to operands:
// plan/quantisation.h). Its fp8 recipes, then NVFP4.
enum class MatmulRecipe : std::uint8_t { kNone, kDelayed, kTensorwise, kBlockwise, kMxfp8, kNvfp4 };
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

// When ZeRO-3 reduces gradients: behind every backward pass of a unit, or behind that of the step's last microbatch,
// with whole gradients kept until then (FSDP2's set_requires_gradient_sync).
enum class GradientSync : std::uint8_t { kEveryMicrobatch, kLastMicrobatch };

struct Fsdp {
  std::int32_t prefetch = 1;  // units gathered ahead; ring of prefetch + 1 buffers
  bool reshard_after_forward = true;
  GradientSync gradient_sync = GradientSync::kEveryMicrobatch;
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
  program::DType moments = program::DType::kF32;    // of Adam, as stored
  bool master_weights = true;                       // fp32 copy in the optimizer; false when compute is fp32
  bool fp32_shards = false;                         // ZeRO-3 as FSDP2's mixed precision: parameters are kept and
                                                    // their gradients summed in fp32
  MatmulRecipe recipe = MatmulRecipe::kNone;        // then compute is bf16, the type of everything else
  bool first_last_layers_bf16 = false;              // the model's first and last layer without the recipe
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
  std::int32_t zero = 0;          // 0 to 3
  std::int32_t dp_replicate = 1;  // groups of ranks that hold all shards of ZeRO each (HSDP); 1 with zero 0
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
  std::int64_t bucket_elements = 0;        // gradient bucket size; 0: one bucket
  std::int64_t first_bucket_elements = 0;  // of the first, where it differs; 0: as the others
  bool overlap_grad_reduce = true;         // reduce a bucket as soon as it is complete, beside the backward pass
  bool overlap_param_gather = false;       // ZeRO-1, ZeRO-2: gather updated weights beside the next step's forward pass
  bool overlap_tp_comm = false;            // move rows over tp beside the matmuls; sequence parallelism
  UserBuffers user_buffers;                // how, matmul by matmul
  bool overlap_tp_input_grad = true;       // reduce an input gradient over tp beside the weight gradient
  std::string rank_order = "tp-cp-ep-dp-pp";

  // Ranks that train the same parameters, each with the gradient of its own tokens.
  std::int32_t replicas() const { return dp * cp; }
  // Those of them that ZeRO shards over: all cp members and the inner, contiguous part of dp.
  std::int32_t shards() const { return replicas() / dp_replicate; }
  // Shards of a group are held again by the other groups (HSDP).
  bool hybrid() const { return dp_replicate > 1 && shards() > 1; }
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

// How the framework's caching allocator takes memory from the device: in segments that grow, or of fixed sizes.
enum class AllocatorKind : std::uint8_t { kExpandable, kDefault };

struct Scenario {
  std::string name;
  Framework framework = Framework::kMegatronCore;
  models::Architecture model;
  topology::Cluster cluster;            // perturbations included, as overrides of devices
  std::vector<std::int32_t> placement;  // by rank: its device; empty: rank i on device i
  std::int64_t gpus = 0;
  Training training;
  Plan plan;
  AttentionKind attention = AttentionKind::kFused;                   // stack.attention
  GradientAccumulation accumulation = GradientAccumulation::kFused;  // stack.gradient_accumulation
  std::string calibration = "auto";
  std::map<std::string, std::string> environment;  // stack.env: NCCL_ALGO, NCCL_PROTO, NCCL_NVLS_ENABLE, NCCL_MAX_CTAS
  std::optional<std::int64_t> cuda_connections;    // stack.env: CUDA_DEVICE_MAX_CONNECTIONS, judged only
  std::optional<Jitter> jitter;
  std::optional<Job> job;
  AllocatorKind allocator = AllocatorKind::kExpandable;  // stack.allocator
  std::optional<std::int64_t> memory_reserve;            // report.reserve: less room left than this is tight

  std::int32_t device_of(std::int64_t rank) const {
    return placement.empty() ? static_cast<std::int32_t>(rank) : placement[static_cast<std::size_t>(rank)];
  }
  std::int64_t microbatches() const {  // per data-parallel rank and step
    return training.global_batch_size / (plan.micro_batch_size * plan.dp);
  }
};

}  // namespace stepcast::plan
