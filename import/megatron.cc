// The frame of the translation: spelling, devices, and what becomes of the flags no part asked for.
#include "import/megatron.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "config/text.h"
#include "import/megatron_flags.h"

namespace stepcast::imports {
namespace {

struct Renamed {
  std::string_view field;
  std::string_view flag;
  bool inverted = false;
};

// Fields of the configuration classes whose flag is called otherwise, and names of Megatron-Bridge and of forks.
constexpr std::array kRenamed = std::to_array<Renamed>({
    {"add-bias-linear", "disable-bias-linear", true},
    {"share-embeddings-and-output-weights", "untie-embeddings-and-output-weights", true},
    {"overlap-p2p-comm", "no-overlap-p2p-communication", true},
    {"overlap-p2p-comm-warmup-flush", "overlap-p2p-communication-warmup-flush"},
    {"layernorm-epsilon", "norm-epsilon"},
    {"fp8", "fp8-format"},
    {"fp4", "fp4-format"},
    {"num-moe-experts", "num-experts"},
    {"virtual-pipeline-model-parallel-size", "num-virtual-stages-per-pipeline-rank"},
    {"microbatch-group-size-per-vp-stage", "microbatch-group-size-per-virtual-pipeline-stage"},
    {"num-layers-in-first-pipeline-stage", "decoder-first-pipeline-num-layers"},
    {"num-layers-in-last-pipeline-stage", "decoder-last-pipeline-num-layers"},
    {"grad-reduce-in-fp32", "accumulate-allreduce-grads-in-fp32"},
    {"activations-checkpoint-granularity", "recompute-granularity"},
    {"activations-checkpoint-method", "recompute-method"},
    {"activations-checkpoint-num-layers", "recompute-num-layers"},
    {"use-custom-fsdp", "use-megatron-fsdp"},
    {"sequence-length", "seq-length"},
    {"bucket-size", "ddp-bucket-size"},
});

struct NotSupported {
  std::string_view beginning;  // of the flag's name
  std::string_view detail;
};

// Flags that move time or memory and that no part of the translation reads.
constexpr std::array kNotSupported = std::to_array<NotSupported>({
    {"hierarchical-context-parallel-sizes", "context parallelism in two levels"},
    {"hybrid", "hybrid models"},
    {"is-hybrid-model", "hybrid models"},
    {"mamba", "state-space layers"},
    {"experimental-attention-variant", "other kinds of attention"},
    {"linear-attention", "other kinds of attention"},
    {"window-attn-skip-freq", "layers without a window"},
    {"tensor-parallel-num-weight-shards", "weight sharding beside tensor parallelism"},
    {"expert-tensor-parallel-num-weight-shards", "weight sharding beside tensor parallelism"},
    {"mtp-", "multi-token prediction"},
    {"use-torch-fsdp2", "torch FSDP2 inside Megatron"},
    {"torch-fsdp2", "torch FSDP2 inside Megatron"},
    {"outer-dp-sharding-strategy", "a second sharding axis"},
    {"distribute-saved-activations", "saved activations spread over tensor-parallel ranks"},
    {"cpu-offloading", "details of offloaded activations"},
    {"defer-embedding-wgrad-compute", "weight gradients of the embedding computed later"},
    {"overlap-p2p-communication-warmup-flush", "overlap of the pipeline's messages in warm-up and flush"},
    {"align-grad-reduce", "the moment of gradient reduction"},
    {"no-align-grad-reduce", "the moment of gradient reduction"},
    {"use-nccl-ub", "registered communication buffers"},
    {"nccl-ub", "registered communication buffers"},
    {"nccl-communicator-config-path", "settings of single communicators"},
    {"tp-comm-overlap-cfg", "a file of user buffers' settings, which plan.overlap.tp_comm_cfg takes"},
    {"disable-tp-comm-", "single parts of hidden tensor-parallel communication switched off"},
    {"tp-comm-overlap-", "how tensor-parallel communication is hidden"},
    {"tp-comm-split", "how tensor-parallel communication is hidden"},
    {"tp-comm-bulk", "how tensor-parallel communication is hidden"},
    {"moe-shared-expert", "shared experts"},
    {"moe-latent", "latent experts"},
    {"moe-layer-freq", "layers with and without experts"},
    {"moe-ffn-hidden-size", "the width of an expert"},
    {"moe-router-topk", "experts per token"},
    {"multi-latent-attention", "multi-latent attention"},
    {"q-lora-rank", "multi-latent attention"},
    {"kv-lora-rank", "multi-latent attention"},
    {"qk-head-dim", "multi-latent attention"},
    {"qk-pos-emb-head-dim", "multi-latent attention"},
    {"v-head-dim", "multi-latent attention"},
    {"rampup-batch-size", "a growing batch: the final one is imported"},
    {"step-batch-size-schedule", "a growing batch: the final one is imported"},
    {"fp4-recipe", "fp4"},
    {"fp32-residual-connection", "residuals in fp32"},
    {"use-tokenizer", "a vocabulary read from a checkpoint"},
});

bool begins_so(std::string_view name, const NotSupported& known) { return name.starts_with(known.beginning); }

void sort_out(const Argument& argument, Draft& draft) {
  const std::string& name = argument.name;
  const auto known = std::find_if(kNotSupported.begin(), kNotSupported.end(),
                                  [&](const NotSupported& entry) { return begins_so(name, entry); });
  if (known != kNotSupported.end() && !argument.off) {
    draft.ignore(argument.written, Reason::kNotSupported, std::string(known->detail), argument.where);
  } else if (is_megatron_flag(name) || argument.off) {
    draft.ignore(argument.written, Reason::kNoInfluence, "", argument.where);
  } else {
    const std::vector<std::string> nearest = nearest_megatron_flags(name);
    draft.ignore(argument.written, Reason::kUnknown,
                 nearest.empty() ? "" : "did you mean " + config::join(nearest, " or ") + "?", argument.where);
  }
}

// Megatron-LM aborts on a flag it does not know. A mistyped one is refused before anything is made of the others; one
// that is like no other belongs to a fork and stays a remark. Keys of configuration files have names of their own.
bool refuse_mistyped(const ArgumentTable& args, Draft& draft) {
  bool any = false;
  for (const Argument* argument : args.rest()) {
    if (draft.request().format != "megatron" || !argument->written.starts_with("--")) continue;
    const std::string meant = mistyped_megatron_flag(argument->name);
    if (meant.empty()) continue;
    any = true;
    draft.refuse("Megatron-LM has no " + argument->written,
                 {argument->where.file, argument->where.line, argument->written}, {"did you mean --" + meant + "?"});
  }
  return any;
}

}  // namespace

std::vector<Argument> as_megatron_flags(std::vector<Argument> arguments) {
  for (Argument& argument : arguments) {
    const auto renamed = std::find_if(kRenamed.begin(), kRenamed.end(),
                                      [&](const Renamed& entry) { return entry.field == argument.name; });
    if (renamed != kRenamed.end()) {
      argument.name = renamed->flag;
      if (renamed->inverted) argument.off = !argument.off;
    } else if (const std::string whole = complete_megatron_flag(argument.name); !whole.empty()) {
      argument.name = whole;
    }
  }
  return arguments;
}

void translate_megatron(ArgumentTable& args, Draft& draft, StatedDevices devices) {
  if (refuse_mistyped(args, draft)) return;
  MegatronRun run{args, draft};
  draft.set("framework", "megatron-core", draft.request().format);
  if (!devices.count && devices.missing.empty()) {
    devices.count = args.positive("world-size");
    devices.origin = args.origin("world-size");
  }
  run.world = take_devices(devices, draft, {});
  translate_megatron_model(run);
  translate_megatron_training(run);
  translate_megatron_plan(run);
  translate_megatron_offload(run);
  translate_megatron_layout(run);
  judge_megatron(run);
  for (const Argument* argument : args.rest()) sort_out(*argument, draft);
}

}  // namespace stepcast::imports
