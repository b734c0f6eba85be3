// The frame of the translation: spelling, devices, the order of the parts.
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
    {"gradient-accumulation-fusion", "no-gradient-accumulation-fusion", true},
});

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

void translate_megatron(ArgumentTable& args, Draft& draft, StatedDevices devices, bool upstream) {
  if (refuse_unknown_flags(args, draft, upstream)) return;
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
  sort_out_rest(run);
}

}  // namespace stepcast::imports
