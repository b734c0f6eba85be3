// What Megatron arguments keep outside the device, and windows of attention. Both move time and memory: the scenario's
// keys are written, or the import is refused where there is none.
#include <algorithm>
#include <utility>

#include "config/text.h"
#include "import/megatron.h"

namespace stepcast::imports {
namespace {

constexpr std::string_view kNoOffload = "plan.offload=none";

void take_optimizer_offload(MegatronRun& run) {
  const auto fraction = run.args.number("optimizer-offload-fraction");
  if (!run.args.on("optimizer-cpu-offload")) return;
  const std::string origin = run.args.origin("optimizer-cpu-offload");
  run.draft.set("plan.offload.optimizer.fraction", config::number_text(fraction.value_or(1.0)),
                run.origin_or("optimizer-offload-fraction", "Megatron default"));
  run.draft.set("plan.offload.optimizer.to", "cpu", origin);
  run.draft.warn("plan.offload.optimizer.to", std::string(kNoOffload),
                 "the optimizer's states and step are then on the device, unlike in the run");
}

// --cpu-offloading moves activations of whole layers, and weights only where it says so.
void take_layer_offload(MegatronRun& run) {
  const auto layers = run.args.integer("cpu-offloading-num-layers");
  const bool activations =
      !run.args.on("no-cpu-offloading-activations") && !run.args.on("disable-cpu-offloading-activations");
  const bool weights = run.args.on("cpu-offloading-weights");
  if (!run.args.on("cpu-offloading") && layers.value_or(0) == 0) return;
  const std::string origin = run.origin_or("cpu-offloading-num-layers", run.args.origin("cpu-offloading"));
  if (activations) {
    const double all = static_cast<double>(std::max<std::int64_t>(1, run.layers));
    const double share = run.layers > 0 && layers ? std::min(1.0, static_cast<double>(*layers) / all) : 1.0;
    run.draft.set("plan.offload.activations.fraction", config::number_text(share), origin);
    run.draft.warn("plan.offload.activations.fraction", std::string(kNoOffload),
                   "the activations then stay on the device, unlike in the run");
  }
  if (!weights) return;
  run.draft.set("plan.offload.params", "cpu", run.args.origin("cpu-offloading-weights"));
  run.draft.warn("plan.offload.params", std::string(kNoOffload),
                 "the weights then stay on the device, unlike in the run");
}

void take_module_offload(MegatronRun& run) {
  const auto fraction = run.args.number("activation-offload-fraction");
  const std::vector<std::string> modules = run.args.words("offload-modules");
  if (!run.args.on("fine-grained-activation-offloading")) return;
  run.draft.set("plan.offload.activations.fraction", config::number_text(fraction.value_or(1.0)),
                run.args.origin("fine-grained-activation-offloading"));
  if (!modules.empty()) {
    run.draft.set("plan.offload.activations.modules", yaml_list(modules), run.args.origin("offload-modules"));
  }
  run.draft.warn("plan.offload.activations.fraction", std::string(kNoOffload),
                 "the activations then stay on the device, unlike in the run");
}

// "--window-size 4096,0", "(4096, 0)" or two words: keys to the left and to the right; -1 bounds nothing.
void judge_window(MegatronRun& run) {
  std::string text;
  for (const std::string& word : run.args.words("window-size")) text += " " + word;
  std::erase_if(text, [](char c) { return c == '(' || c == ')'; });
  const std::size_t start = text.find_first_not_of(' ');
  if (start == std::string::npos || text.substr(start) == "null") return;
  const auto left = config::parse_integer(text.substr(start, text.find_first_of(", ", start) - start));
  if (left && (*left < 0 || (run.sequence > 0 && *left >= run.sequence))) {
    run.draft.ignore("--window-size", Reason::kNoInfluence, "", run.args.where("window-size"));
    return;
  }
  run.draft.refuse("a window of attention (" + run.args.origin("window-size") + ") is not supported yet",
                   run.args.where("window-size"), {"leave --window-size out: attention over the whole sequence"},
                   ErrorKind::kUnsupported);
}

}  // namespace

void translate_megatron_offload(MegatronRun& run) {
  take_optimizer_offload(run);
  take_layer_offload(run);
  take_module_offload(run);
  judge_window(run);
}

}  // namespace stepcast::imports
