// Batch, precision and optimizer of Megatron arguments.
#include <algorithm>
#include <string_view>
#include <utility>

#include "config/text.h"
#include "import/megatron.h"

namespace stepcast::imports {
namespace {

// Whether the command line's --set says it.
bool sets(const MegatronRun& run, std::string_view field) {
  const std::vector<config::Setting>& settings = run.draft.request().settings;
  return std::any_of(settings.begin(), settings.end(), [&](const auto& setting) { return setting.field == field; });
}

void take_training_batch(MegatronRun& run) {
  run.sequence = run.count("seq-length", 0);
  if (run.sequence > 0) {
    run.draft.set("training.sequence_length", run.sequence, run.args.origin("seq-length"));
  } else if (run.args.origin("seq-length").empty() && !run.draft.request().settings.empty()) {
    // A setting may say it; the scenario's reader asks for it otherwise.
  } else if (run.args.origin("seq-length").empty()) {
    run.draft.refuse("missing --seq-length", {run.draft.request().file, 0, ""},
                     {"give --set training.sequence_length=N"});
  }
  run.micro_batch = run.count("micro-batch-size", 1);
  run.global_batch = run.count("global-batch-size", 0);
}

// GBS = MBS * DP where it is not given; dp is known once the degrees are read.
std::string compute_precision(MegatronRun& run) {
  const bool bf16 = run.args.on("bf16");
  const bool fp16 = run.args.on("fp16");
  const auto fp8 = run.args.word("fp8-format");
  const auto fp4 = run.args.word("fp4-format");
  if (fp4 && *fp4 != "null") return "fp4";
  if (fp8 && *fp8 != "null") return "fp8";
  return fp16 ? "fp16" : bf16 ? "bf16" : "fp32";
}

std::string precision_origin(MegatronRun& run, const std::string& compute) {
  if (compute == "fp32") return "Megatron default: neither --bf16 nor --fp16";
  const std::string flag = compute == "fp8" || compute == "fp4" ? compute + "-format" : compute;
  return run.args.origin(flag);
}

// With --bf16 validate_args accumulates and reduces in fp32, unless --grad-reduce-in-bf16 or --main-grads-dtype bf16.
void take_gradients(MegatronRun& run, const std::string& params) {
  const bool in_fp32 = run.args.on("accumulate-allreduce-grads-in-fp32");
  const bool reduced = run.args.on("grad-reduce-in-bf16");
  const bool kept = run.args.word("main-grads-dtype").value_or("fp32") == "bf16";
  std::string grads = reduced || kept ? "bf16" : "fp32";
  if (params == "fp16" && !in_fp32) grads = "fp16";
  const std::string origin = reduced   ? run.args.origin("grad-reduce-in-bf16")
                             : kept    ? run.args.origin("main-grads-dtype")
                             : in_fp32 ? run.args.origin("accumulate-allreduce-grads-in-fp32")
                                       : "Megatron default";
  run.draft.set("training.precision.grads", grads, origin);
  run.draft.set("training.precision.grad_reduce", grads, origin);
}

void take_precision(MegatronRun& run) {
  const std::string compute = compute_precision(run);
  const std::string origin = precision_origin(run, compute);
  run.draft.set("training.precision.compute", compute, origin);
  const std::string params = compute == "fp8" || compute == "fp4" ? (run.args.on("fp16") ? "fp16" : "bf16") : compute;
  run.draft.set("training.precision.params", params, origin);
  take_gradients(run, params);
  const auto recipe = run.args.word("fp8-recipe");
  if (compute == "fp8") {
    run.draft.set("training.precision.fp8_recipe", yaml_text(recipe.value_or("delayed")),
                  run.origin_or("fp8-recipe", "Megatron default"));
  }
  if (run.args.on("fp8-param-gather")) {
    run.draft.set("training.precision.fp8_param_gather", "true", run.args.origin("fp8-param-gather"));
    run.draft.warn("training.precision.fp8_param_gather", "training.precision.fp8_param_gather=false",
                   "weights are then kept in bf16 beside their 8-bit copies and gathered in bf16");
  }
  if (run.args.on("first-last-layers-bf16")) {
    run.draft.set("training.precision.first_last_layers_bf16", "true", run.args.origin("first-last-layers-bf16"));
  }
}

// The scenario keeps both moments in one type.
void take_moments(MegatronRun& run) {
  const std::string first = run.args.word("exp-avg-dtype").value_or("fp32");
  const std::string second = run.args.word("exp-avg-sq-dtype").value_or("fp32");
  if (first != second && !sets(run, "training.optimizer.moments")) {
    run.draft.refuse("--exp-avg-dtype " + config::printable(first) + " and --exp-avg-sq-dtype " +
                         config::printable(second) + ": moments of two types",
                     run.args.where(run.args.origin("exp-avg-dtype").empty() ? "exp-avg-sq-dtype" : "exp-avg-dtype"),
                     {"--set training.optimizer.moments=TYPE decides for both"}, ErrorKind::kUnsupported);
  } else if (first != "fp32") {
    run.draft.set("training.optimizer.moments", yaml_text(first), run.args.origin("exp-avg-dtype"));
  }
}

void take_optimizer(MegatronRun& run) {
  if (const auto name = run.args.word("optimizer"); name && *name != "adam") {
    run.draft.set("training.optimizer.name", yaml_text(*name), run.args.origin("optimizer"));
  }
  if (run.args.on("use-precision-aware-optimizer")) {
    take_moments(run);
    if (const auto master = run.args.word("main-params-dtype"); master && *master != "fp32") {
      run.draft.set("training.optimizer.master", yaml_text(*master), run.args.origin("main-params-dtype"));
    }
  }
  if (const auto clip = run.args.number("clip-grad"); clip && *clip == 0) {
    run.draft.set("training.optimizer.clip", "false", run.args.origin("clip-grad"));
  }
}

// Megatron's dropout defaults to 0.1. The scenario knows one probability for attention and residuals.
void take_dropout(MegatronRun& run) {
  constexpr double kDefault = 0.1;
  const auto hidden = run.args.number("hidden-dropout");
  const auto attention = run.args.number("attention-dropout");
  const double of_hidden = hidden.value_or(kDefault);
  const double of_attention = attention.value_or(kDefault);
  if (of_hidden == of_attention) {
    run.draft.set("training.dropout", config::number_text(of_hidden),
                  run.origin_or(hidden ? "hidden-dropout" : "attention-dropout", "Megatron default"));
    return;
  }
  if (sets(run, "training.dropout")) return;
  run.draft.refuse("--hidden-dropout " + config::number_text(of_hidden) + (hidden ? "" : " (Megatron default)") +
                       " and --attention-dropout " + config::number_text(of_attention) +
                       (attention ? "" : " (Megatron default)") + ": two probabilities are not supported yet",
                   run.args.where(hidden ? "hidden-dropout" : "attention-dropout"),
                   {"--set training.dropout=P decides for both"}, ErrorKind::kUnsupported);
}

}  // namespace

void translate_megatron_training(MegatronRun& run) {
  take_training_batch(run);
  take_precision(run);
  take_optimizer(run);
  take_dropout(run);
  const bool fused = run.args.on("cross-entropy-loss-fusion");
  run.draft.set("training.lm_head_loss", fused ? "fused_vocab_parallel" : "unfused",
                run.origin_or("cross-entropy-loss-fusion", "no --cross-entropy-loss-fusion"));
}

}  // namespace stepcast::imports
