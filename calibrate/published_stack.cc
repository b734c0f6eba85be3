// The table of stacks.
#include "calibrate/published_stack.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace stepcast::calibrate {
namespace {

constexpr StackSetting kNoDropout = {"training.dropout", "0", "no dropout"};
constexpr StackSetting kFlash2 = {"stack.attention", "flash2", ""};
constexpr StackSetting kFullGradients = {"training.precision.grads", "fp32",
                                         "gradients are summed and reduced in fp32, the framework's default"};

// Recipes of NeMo and Megatron-Bridge: grad_reduce_in_fp32 off, overlap_grad_reduce on.
constexpr std::array kNvidiaSettings = {kNoDropout};

constexpr std::array kMaxTextSettings = {
    kNoDropout,
    StackSetting{"training.precision.params", "fp32", "weights are sharded in fp32 and gathered in bf16"},
    StackSetting{"training.precision.grad_reduce", "bf16", "gradients are reduced in bf16"},
};

// torch FSDP with Composer's mixed precision: flat fp32 shards.
constexpr std::array kMosaicSettings = {
    kNoDropout,
    StackSetting{"training.precision.params", "fp32", "FSDP shards parameters in fp32 and gathers them in bf16"},
    StackSetting{"training.lm_head_loss", "unfused", "the loss is PyTorch's own, in fp32"},
    kFlash2,
};

constexpr std::array kTorchtitanSettings = {kNoDropout};

// --accumulate-allreduce-grads-in-fp32 is not given: gradients are fp16, and autograd adds each to the last.
constexpr std::array kSc21Settings = {
    StackSetting{"training.dropout", "0.1", "dropout 0.1, Megatron-LM's default"},
    StackSetting{"stack.attention", "unfused", ""},
    StackSetting{"stack.gradient_accumulation", "separate",
                 "gradients are added by kernels of their own, as Megatron-LM did before 2022"},
    StackSetting{"plan.overlap.tp_input_grad", "false",
                 "input gradients are all-reduced before weight gradients, as in the code of 2021"},
};
constexpr std::array kKorthikantiSettings = {
    StackSetting{"training.dropout", "0.1", "dropout 0.1, Megatron-LM's default"},
    StackSetting{"stack.attention", "unfused", ""},
    StackSetting{"stack.gradient_accumulation", "separate",
                 "gradients are added by kernels of their own, as Megatron-LM did before 2022"},
    StackSetting{"plan.overlap.grad_reduce", "false", "gradients are reduced behind the backward pass"},
};

constexpr std::array kBloomSettings = {
    kNoDropout,
    StackSetting{"stack.attention", "unfused", ""},
    StackSetting{"stack.gradient_accumulation", "separate", "gradients are added by kernels of their own"},
    StackSetting{"training.lm_head_loss", "fused_vocab_parallel",
                 "the loss is Megatron's, parallel over the vocabulary"},
};

// InternEvo's default configuration: reduce_bucket_size 512 MiB, overlap_sync_grad on; FP32 gradients are not kept.
constexpr std::array kInternEvoSettings = {
    kNoDropout,
    kFlash2,
    StackSetting{"training.precision.grads", "bf16", "gradients are kept and reduced in bf16"},
    StackSetting{"plan.bucket", "512 MiB", "gradients are reduced in buckets of 512 MiB beside the backward pass"},
    StackSetting{"plan.overlap.grad_reduce", "true", ""},
};

constexpr std::array kKwaiSettings = {kNoDropout, kFullGradients};

// Its launch scripts turn every overlap off.
constexpr std::array kSimuMaxSettings = {
    kNoDropout,
    StackSetting{"training.precision.grads", "fp32", ""},
    StackSetting{"plan.overlap.grad_reduce", "false", ""},
};

constexpr std::array kNanotronSettings = {
    kNoDropout,
    StackSetting{"training.precision.grads", "fp32", "gradients are summed and reduced in fp32, as the sweep does"},
};

constexpr std::array kFmsSettings = {
    kNoDropout,
    StackSetting{"training.precision.params", "fp32", "FSDP shards parameters in fp32 and gathers them in bf16"},
    StackSetting{"training.precision.grad_reduce", "bf16", "gradients are reduced in bf16"},
    StackSetting{"training.lm_head_loss", "unfused", "the loss is PyTorch's own, in fp32"},
    kFlash2,
};

constexpr std::array kSwiftMegatronSettings = {kNoDropout, kFullGradients};
constexpr std::array kDeepSpeedSettings = {kNoDropout};
constexpr std::array<StackSetting, 0> kNoSettings = {};

constexpr StackPreset kStacks[] = {
    {Stack::kNvidia, "megatron-core", "*", kNvidiaSettings},
    {Stack::kMaxText, "plain", "JAX/MaxText", kMaxTextSettings},
    {Stack::kMosaic, "plain", "*", kMosaicSettings},
    {Stack::kTorchtitan, "torchtitan", "torchtitan", kTorchtitanSettings},
    {Stack::kSc21, "megatron-core", "Megatron A100", kSc21Settings},
    {Stack::kKorthikanti, "megatron-core", "Megatron A100", kKorthikantiSettings},
    {Stack::kBloom, "deepspeed", "BLOOM", kBloomSettings},
    {Stack::kInternEvo, "plain", "InternEvo", kInternEvoSettings},
    {Stack::kKwai, "megatron-core", "Kwai", kKwaiSettings},
    {Stack::kSimuMax, "megatron-core", "SimuMax", kSimuMaxSettings},
    {Stack::kNanotron, "nanotron", "nanotron", kNanotronSettings},
    {Stack::kFms, "plain", "FMS", kFmsSettings},
    {Stack::kSwiftMegatron, "megatron-core", "ms-swift", kSwiftMegatronSettings},
    {Stack::kDeepSpeed, "deepspeed", "*", kDeepSpeedSettings},
    {Stack::kStated, "", "other", kNoSettings},
};

struct KnownSource {
  std::string_view begins;  // of source_short
  Stack stack;
};

constexpr KnownSource kSources[] = {
    {"NVIDIA Megatron-Bridge", Stack::kNvidia},
    {"NVIDIA dgxc-benchmarking", Stack::kNvidia},
    {"NVIDIA NeMo", Stack::kNvidia},
    {"NeMo", Stack::kNvidia},
    {"MLPerf Training", Stack::kNvidia},
    {"MosaicML", Stack::kMosaic},
    {"PyTorch torchtitan", Stack::kTorchtitan},
    {"PyTorch torchao", Stack::kTorchtitan},
    {"Megatron SC21", Stack::kSc21},
    {"Korthikanti", Stack::kKorthikanti},
    {"BLOOM", Stack::kBloom},
    {"InternEvo", Stack::kInternEvo},
    {"Kwai", Stack::kKwai},
    {"SimuMax", Stack::kSimuMax},
    {"Nanotron", Stack::kNanotron},
    {"IBM FMS", Stack::kFms},
    {"ms-swift", Stack::kSwiftMegatron},
    {"ml-engineering", Stack::kDeepSpeed},
};

const StackPreset& preset_named(Stack stack) {
  const auto found = std::find_if(std::begin(kStacks), std::end(kStacks),
                                  [stack](const StackPreset& preset) { return preset.stack == stack; });
  CHECK(found != std::end(kStacks), static_cast<int>(stack));
  return *found;
}

bool is_blackwell(const PublishedRow& row) {
  return row.gpu.starts_with("B200") || row.gpu.starts_with("B300") || row.gpu.starts_with("GB");
}

// Groups of one stack by accelerator, of one framework by publisher.
std::string divided_group(const PublishedRow& row, Stack stack) {
  const std::string family = row.gpu.substr(0, row.gpu.find('-'));
  if (stack == Stack::kMosaic) return "MosaicML " + family;
  if (stack == Stack::kDeepSpeed) return row.source.starts_with("ms-swift") ? "ms-swift" : "ml-engineering";
  if (is_blackwell(row)) return "NVIDIA dense on Blackwell";
  return row.gpu.starts_with("H") ? "NVIDIA dense on H100" : "NVIDIA dense on " + family;
}

}  // namespace

const StackPreset* stack_of(const PublishedRow& row) {
  if (!row.framework.empty()) return &preset_named(Stack::kStated);
  const auto source = std::find_if(std::begin(kSources), std::end(kSources),
                                   [&row](const KnownSource& known) { return row.source.starts_with(known.begins); });
  if (source == std::end(kSources)) return nullptr;
  if (source->stack == Stack::kNvidia && row.flagged("MaxText")) return &preset_named(Stack::kMaxText);
  if (source->stack == Stack::kSwiftMegatron && row.flagged("DeepSpeed")) return &preset_named(Stack::kDeepSpeed);
  return &preset_named(source->stack);
}

std::string group_of(const PublishedRow& row) {
  if (row.experts > 0) return "mixture of experts";
  const StackPreset* const preset = stack_of(row);
  if (preset == nullptr) return "other";
  if (row.source.starts_with("PyTorch torchao")) return "torchao";
  return preset->group == "*" ? divided_group(row, preset->stack) : std::string(preset->group);
}

}  // namespace stepcast::calibrate
