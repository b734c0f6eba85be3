// Flags that no part of the translation reads. Megatron-LM's own parser stops at a flag it does not know, and takes no
// beginnings of names (argparse with allow_abbrev=False); what it knows and this release does not simulate is refused
// where it changes what is computed, stored or sent.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "config/text.h"
#include "import/megatron.h"
#include "import/megatron_flags.h"

namespace stepcast::imports {
namespace {

enum class Fate : std::uint8_t {
  kTold,          // moves time or memory little, or acts only with a flag that is refused
  kRefused,       // changes what is computed, stored or sent
  kRefusedModel,  // the same of the model: --model NAME replaces it
};

struct NotSupported {
  std::string_view beginning;  // of the flag's name
  Fate fate = Fate::kTold;
  std::string_view detail;
  std::string_view idle = {};  // a value that is the same as no flag, beside 0, none and null
};

constexpr std::string_view kFusion = "single fusions switched off";
constexpr std::string_view kSingleOverlaps = "single parts of hidden tensor-parallel communication switched off or on";

// The first that fits holds.
constexpr std::array kNotSupported = std::to_array<NotSupported>({
    {"hierarchical-context-parallel-sizes", Fate::kRefused, "context parallelism in two levels"},
    {"hybrid-context-parallel", Fate::kRefused, "context parallelism by the length of a sequence"},
    {"hybrid", Fate::kRefusedModel, "hybrid models"},
    {"is-hybrid-model", Fate::kRefusedModel, "hybrid models"},
    {"mamba", Fate::kTold, "state-space layers"},
    {"experimental-attention-variant-", Fate::kTold, "other kinds of attention"},
    {"experimental-attention-variant", Fate::kRefusedModel, "other kinds of attention"},
    {"linear-attention", Fate::kTold, "other kinds of attention"},
    {"window-attn-skip-freq", Fate::kTold, "layers without a window"},
    {"tensor-parallel-num-weight-shards", Fate::kRefused, "weight sharding beside tensor parallelism"},
    {"expert-tensor-parallel-num-weight-shards", Fate::kRefused, "weight sharding beside tensor parallelism"},
    {"gtp-weight-remat-size", Fate::kRefused, "weight sharding beside tensor parallelism", "1"},
    {"mtp-num-layers", Fate::kRefusedModel, "multi-token prediction"},
    {"mtp-", Fate::kTold, "multi-token prediction"},
    {"use-torch-fsdp2", Fate::kRefused, "torch FSDP2 inside Megatron"},
    {"torch-fsdp2", Fate::kTold, "torch FSDP2 inside Megatron"},
    {"outer-dp-sharding-strategy", Fate::kTold, "a second sharding axis"},
    {"cpu-offloading", Fate::kTold, "details of offloaded activations"},
    {"defer-embedding-wgrad-compute", Fate::kTold, "weight gradients of the embedding computed later"},
    {"overlap-p2p-communication-warmup-flush", Fate::kTold, "overlap of the pipeline's messages in warm-up and flush"},
    {"align-grad-reduce", Fate::kTold, "the moment of gradient reduction"},
    {"no-align-grad-reduce", Fate::kTold, "the moment of gradient reduction"},
    {"disable-align-grad-reduce", Fate::kTold, "the moment of gradient reduction"},
    {"use-nccl-ub", Fate::kTold, "registered communication buffers"},
    {"nccl-ub", Fate::kTold, "registered communication buffers"},
    {"nccl-communicator-config-path", Fate::kTold, "settings of single communicators"},
    {"tp-comm-overlap-cfg", Fate::kTold, "a file of user buffers' settings, which plan.overlap.tp_comm_cfg takes"},
    {"tp-comm-", Fate::kTold, kSingleOverlaps},
    {"disable-tp-comm-", Fate::kTold, kSingleOverlaps},
    {"no-tp-comm-", Fate::kTold, kSingleOverlaps},
    {"no-bias-", Fate::kTold, kFusion},
    {"no-rope-fusion", Fate::kTold, kFusion},
    {"no-persist-layer-norm", Fate::kTold, kFusion},
    {"no-masked-softmax-fusion", Fate::kTold, kFusion},
    {"no-gradient-reduce-div-fusion", Fate::kTold, kFusion},
    {"disable-gradient-reduce-div-fusion", Fate::kTold, kFusion},
    {"disable-jit-fuser", Fate::kTold, kFusion},
    {"moe-shared-expert", Fate::kTold, "shared experts"},
    {"moe-latent", Fate::kTold, "latent experts"},
    {"moe-layer-freq", Fate::kTold, "layers with and without experts"},
    {"moe-ffn-hidden-size", Fate::kTold, "the width of an expert"},
    {"moe-router-topk", Fate::kTold, "experts per token"},
    {"multi-latent-attention", Fate::kRefusedModel, "multi-latent attention"},
    {"q-lora-rank", Fate::kTold, "multi-latent attention"},
    {"kv-lora-rank", Fate::kTold, "multi-latent attention"},
    {"qk-head-dim", Fate::kTold, "multi-latent attention"},
    {"qk-pos-emb-head-dim", Fate::kTold, "multi-latent attention"},
    {"v-head-dim", Fate::kTold, "multi-latent attention"},
    {"qk-layernorm", Fate::kRefusedModel, "norms of queries and keys stated by a flag"},
    {"qk-l2-norm", Fate::kRefusedModel, "norms of queries and keys without weights"},
    {"attention-output-gate", Fate::kRefusedModel, "gated attention"},
    {"heterogeneous-layers-config", Fate::kRefusedModel, "layers that differ from each other"},
    {"heterogeneous-block-specs", Fate::kRefusedModel, "layers that differ from each other"},
    {"enable-mhc-connections", Fate::kRefusedModel, "several residual streams"},
    {"no-rope-freq", Fate::kRefusedModel, "layers without positions"},
    {"softmax-type", Fate::kRefusedModel, "a softmax with an offset", "vanilla"},
    {"quick-geglu", Fate::kRefusedModel, "a gated GELU"},
    {"retro-add-retriever", Fate::kRefusedModel, "retrieval"},
    {"spec", Fate::kRefusedModel, "layers from a module of one's own", "local"},
    {"apply-residual-connection-post-layernorm", Fate::kTold, "residuals taken behind the norm"},
    {"rampup-batch-size", Fate::kTold, "a growing batch: the final one is imported"},
    {"step-batch-size-schedule", Fate::kTold, "a growing batch: the final one is imported"},
    {"fp4-recipe", Fate::kTold, "fp4"},
    {"fp8-dot-product-attention", Fate::kRefused, "attention in fp8"},
    {"fp8-multi-head-attention", Fate::kRefused, "attention in fp8"},
    {"fp8-hybrid", Fate::kRefused, "fp8 by the name of older releases (now --fp8-format hybrid)"},
    {"fp8-e4m3", Fate::kRefused, "fp8 by the name of older releases (now --fp8-format e4m3)"},
    {"fp32-residual-connection", Fate::kRefused, "residuals in fp32"},
    {"encoder-tensor-model-parallel-size", Fate::kRefused, "an encoder of its own"},
    {"encoder-pipeline-model-parallel-size", Fate::kRefused, "an encoder of its own"},
    {"pipeline-model-parallel-split-rank", Fate::kRefused, "an encoder of its own"},
    {"standalone-embedding-stage", Fate::kRefused, "a stage of the embedding alone"},
    {"freeze-all-layers", Fate::kRefused, "frozen layers"},
    {"perform-rl-step", Fate::kRefused, "reinforcement learning"},
    {"use-layer-wise-distributed-optimizer", Fate::kRefused, "an optimizer sharded by layers"},
    {"use-tokenizer", Fate::kTold, "a vocabulary read from a checkpoint"},
});

// Keys of configuration files that are on by default and were set to false.
constexpr std::array<std::string_view, 7> kFusionKeys = {
    "bias-activation-fusion", "bias-dropout-fusion", "masked-softmax-fusion",     "apply-rope-fusion",
    "persist-layer-norm",     "bias-swiglu-fusion",  "gradient-reduce-div-fusion"};

// Whole words: "spec" is not the beginning of "special-tokens".
bool begins_with(std::string_view name, std::string_view beginning) {
  if (!name.starts_with(beginning)) return false;
  return name.size() == beginning.size() || beginning.ends_with('-') || name[beginning.size()] == '-';
}

Location place_of(const Argument& argument) { return {argument.where.file, argument.where.line, argument.written}; }

void refuse_unsupported(const Argument& argument, const NotSupported& known, Draft& draft) {
  std::vector<std::string> help = {"leave " + argument.written + " out to import the run without it"};
  if (known.fate == Fate::kRefusedModel)
    help.insert(help.begin(), "--model NAME takes a model that has its own config");
  draft.refuse(as_written(argument) + ": " + std::string(known.detail), place_of(argument), std::move(help),
               ErrorKind::kUnsupported);
}

void sort_out(const Argument& argument, Draft& draft) {
  const std::string& name = argument.name;
  const auto known = std::find_if(kNotSupported.begin(), kNotSupported.end(),
                                  [&](const NotSupported& entry) { return begins_with(name, entry.beginning); });
  const bool single_overlap = argument.off && name.starts_with("tp-comm-");
  const bool fusion = argument.off && std::find(kFusionKeys.begin(), kFusionKeys.end(), name) != kFusionKeys.end();
  const bool model = !draft.request().model.empty();
  if (single_overlap || fusion) {
    draft.ignore(argument.written, Reason::kNotSupported, std::string(fusion ? kFusion : kSingleOverlaps),
                 argument.where);
  } else if (known != kNotSupported.end() && !is_idle(argument, known->idle)) {
    const bool refused = known->fate == Fate::kRefused || (known->fate == Fate::kRefusedModel && !model);
    if (refused) return refuse_unsupported(argument, *known, draft);
    draft.ignore(argument.written, Reason::kNotSupported, std::string(known->detail), argument.where);
  } else if (known != kNotSupported.end() || is_megatron_flag(name) || argument.off) {
    draft.ignore(argument.written, Reason::kNoInfluence, "", argument.where);
  } else {
    const std::vector<std::string> nearest = nearest_megatron_flags(name);
    draft.ignore(argument.written, Reason::kUnknown,
                 nearest.empty() ? "" : "did you mean " + config::join(nearest, " or ") + "?", argument.where);
  }
}

// Beginnings of names of logging, data, checkpoints and the optimizer's numbers: whatever release they are of, such
// flags move neither the time of a step nor its memory.
bool is_beside_the_step(std::string_view name) {
  constexpr std::array<std::string_view, 30> kBeginnings = {
      "adam",      "app",         "bert",       "ckpt",      "data",  "dataloader", "dist-ckpt", "error",
      "eval",      "exit",        "ft",         "inference", "load",  "log",        "lr",        "no-load",
      "no-log",    "no-save",     "one-logger", "profile",   "rerun", "save",       "seed",      "split",
      "straggler", "tensorboard", "test",       "train",     "valid", "wandb"};
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](std::string_view beginning) { return begins_with(name, beginning); });
}

// What a flag of a script that Megatron-LM does not know was meant to be; empty where nothing is like it.
std::string meant_by(const Argument& argument) {
  std::string written = argument.written.substr(2);
  std::replace(written.begin(), written.end(), '_', '-');
  if (is_megatron_flag(written)) return {};
  if (complete_megatron_flag(written) == argument.name) return argument.name;
  const std::string mistyped = mistyped_megatron_flag(argument.name);
  return mistyped.empty() ? abbreviated_megatron_flag(argument.name) : mistyped;
}

}  // namespace

bool refuse_unknown_flags(const ArgumentTable& args, Draft& draft, bool upstream) {
  if (draft.request().allow_unknown) return false;
  bool any = false;
  for (const Argument* argument : args.rest()) {
    if (draft.request().format != "megatron" || !argument->written.starts_with("--")) continue;
    const std::string meant = meant_by(*argument);
    const bool unknown = upstream && !is_megatron_flag(argument->name) && !is_beside_the_step(argument->name);
    if (meant.empty() && !unknown) continue;
    any = true;
    std::vector<std::string> help = {"--allow-unknown imports the script without what is not known"};
    if (!meant.empty()) help.insert(help.begin(), "did you mean --" + meant + "?");
    draft.refuse("Megatron-LM has no " + argument->written, place_of(*argument), std::move(help));
  }
  return any;
}

void sort_out_rest(MegatronRun& run) {
  for (const Argument* argument : run.args.rest()) sort_out(*argument, run.draft);
}

}  // namespace stepcast::imports
