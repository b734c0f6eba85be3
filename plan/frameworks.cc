// The table of frameworks.
#include "plan/frameworks.h"

#include <algorithm>

#include "base/check.h"

namespace stepcast::plan {
namespace {

// PyTorch DDP's bucket_cap_mb, and its first, small bucket.
constexpr std::int64_t kDdpBucketBytes = std::int64_t{25} << 20;
constexpr std::int64_t kDdpFirstBucketBytes = std::int64_t{1} << 20;

// The distributed optimizer is what launch scripts use, and --overlap-grad-reduce with it; buckets hold
// max(40e6, 1e6 * dp) elements then. Transformer Engine picks cuDNN's attention or FlashAttention.
constexpr FrameworkPreset kMegatron{
    .framework = Framework::kMegatronCore,
    .name = "megatron-core",
    .zero = 1,
    .vocab_pad_to = 128,
    .vocab_pad_by_tp = true,
    .bucket_elements = 40'000'000,
    .bucket_elements_per_replica = 1'000'000,
    .bucketed_with_overlap_only = true,
    .overlap_is_assumed = true,
    .attention = "cudnn",
    .zero_stages = "01",
    .gpipe = false,
    .cp_comms = " p2p allgather a2a ",
    .shares_kv_heads = true,
    .has_user_buffers = true,
    .shards_whole_sequences = true,
    .bounds_positions = true,
    .recomputes_blocks = true,
    .matmul_recipes = "delayed tensorwise blockwise mxfp8 nvfp4",
    .recompute_modules = " core_attn layernorm mlp moe_act mla_up_proj moe shared_experts ",
};

// FSDP2 over all data- and context-parallel ranks; mixed precision comes with it. Sequence parallelism comes with
// tensor parallelism; the loss is taken in fp32; selective checkpointing is that of each n-th layer, or of operators.
// Interleaved1F1B of torch.distributed.pipelining runs max(1, M / pp) rounds of equal size. Its stages reduce gradients
// once a step; without a pipeline torchtitan reduces those of every accumulated batch (issue 292, pull request 1710),
// over HSDP's copies too (until pull request 4505).
constexpr FrameworkPreset kTorchtitan{
    .framework = Framework::kTorchtitan,
    .name = "torchtitan",
    .zero = 3,
    .zero_needs_replicas = true,
    .fp32_parameters = true,
    .bucket_bytes = kDdpBucketBytes,
    .first_bucket_bytes = kDdpFirstBucketBytes,
    .cp_comm = ContextComm::kAllGather,
    .attention = "sdpa_flash",
    .head_loss = HeadLoss::kUnfused,
    .selects_layers = true,
    .even_rounds = true,
    .zero_stages = "03",
    .shards_whole_sequences = true,
    .batch_relation = ": local_batch_size * dp * accumulation is the global batch",
    .recompute_modules = " ",
};

// tp_mode ALL_REDUCE, the sharded cross-entropy in fp32, ddp_bucket_cap_mb 25, the vocabulary a multiple of
// make_vocab_size_divisible_by * tp. Its pipeline engines are 1f1b and afab, which is gpipe.
constexpr FrameworkPreset kNanotron{
    .framework = Framework::kNanotron,
    .name = "nanotron",
    .zero = 0,
    .sequence_parallel = false,
    .vocab_pad_by_tp = true,
    .bucket_bytes = kDdpBucketBytes,
    .first_bucket_bytes = kDdpFirstBucketBytes,
    .attention = "flash2",
    .head_loss = HeadLoss::kUnfused,
    .zero_stages = "01",
    .interleaved = false,
    .batch_relation = ": micro_batch_size * batch_accumulation_per_replica * dp is the global batch",
    .recompute_modules = " ",
};

// zero_optimization: stage 0, reduce_bucket_size 5e8 elements, overlap_comm for stage 3 only. Gradients are bf16 unless
// data_types.grad_accum_dtype says otherwise. AutoTP reduces whole activations; models are Hugging Face's, whose loss
// is taken in fp32; sequences are split by Ulysses' all-to-all only; the pipeline runs 1F1B.
constexpr FrameworkPreset kDeepSpeed{
    .framework = Framework::kDeepSpeed,
    .name = "deepspeed",
    .zero = 0,
    .half_gradients = true,
    .sequence_parallel = false,
    .bucket_elements = 500'000'000,
    .overlap_grad_reduce = false,
    .cp_comm = ContextComm::kAllToAll,
    .attention = "flash2",
    .head_loss = HeadLoss::kUnfused,
    .zero_stages = "0123",
    .gpipe = false,
    .interleaved = false,
    .cp_comms = " a2a ",
    .batch_relation = ": train_micro_batch_size_per_gpu * gradient_accumulation_steps * dp is train_batch_size",
    .recompute_modules = " ",
};

// No framework: DistributedDataParallel's buckets, and whatever is lowered; 8 and 4 bits as Transformer Engine has
// them.
constexpr FrameworkPreset kPlain{
    .framework = Framework::kPlain,
    .name = "plain",
    .zero = 0,
    .bucket_bytes = kDdpBucketBytes,
    .first_bucket_bytes = kDdpFirstBucketBytes,
    .attention = "flash2",
    .zero_stages = "0123",
    .cp_comms = " p2p allgather a2a ",
    .has_user_buffers = true,
    .recomputes_blocks = true,
    .matmul_recipes = "tensorwise delayed blockwise mxfp8 nvfp4",
    .recompute_modules = " core_attn layernorm mlp_act mlp moe_act mla_up_proj moe shared_experts ",
};

constexpr std::array<FrameworkPreset, 5> kPresets = {kMegatron, kTorchtitan, kNanotron, kDeepSpeed, kPlain};

}  // namespace

std::span<const FrameworkPreset> framework_presets() { return kPresets; }

const FrameworkPreset& preset_of(Framework framework) {
  const auto found = std::find_if(kPresets.begin(), kPresets.end(),
                                  [&](const FrameworkPreset& p) { return p.framework == framework; });
  CHECK(found != kPresets.end(), static_cast<int>(framework));
  return *found;
}

const FrameworkPreset* find_framework(std::string_view name) {
  if (name == "megatron") return &preset_of(Framework::kMegatronCore);
  const auto found =
      std::find_if(kPresets.begin(), kPresets.end(), [&](const FrameworkPreset& p) { return p.name == name; });
  return found == kPresets.end() ? nullptr : &*found;
}

}  // namespace stepcast::plan
