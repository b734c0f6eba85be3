// DeepSpeed's JSON. Source of names and defaults: deepspeed/runtime/config.py and zero/config.py at edaa7221
// (2026-08-22). train_batch_size = train_micro_batch_size_per_gpu * gradient_accumulation_steps * dp: two of the three
// imply the third. Bucket sizes count elements. "auto" leaves a value to the caller. Model, sequence length and devices
// are the caller's, too.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "config/text.h"
#include "import/arguments.h"
#include "import/formats.h"

namespace stepcast::imports {
namespace {

constexpr std::array kDeepSpeedNames = std::to_array<KnownName>({
    {"zero-optimization.zero-hpz-partition-size", Reason::kNotSupported, "a second copy of the shards in each node",
     true, "1"},
    {"zero-optimization.zero-quantized", Reason::kNotSupported, "quantised communication", true},
    {"zero-optimization.mics", Reason::kNotSupported, "shards over part of the ranks", true, "-1"},
    {"zero-optimization.stage3-prefetch-bucket-size", Reason::kNotSupported, "prefetch counted in elements"},
    {"zero-optimization.stage3-param-persistence-threshold", Reason::kNotSupported, "small parameters kept whole"},
    {"zero-optimization.stage3-max", Reason::kNotSupported, "parameters kept whole for a while"},
    {"zero-optimization.allgather-bucket-size", Reason::kNotSupported, "buckets of the gather"},
    {"zero-optimization.sub-group-size", Reason::kNotSupported, "optimizer steps in parts"},
    {"zero-optimization.offload", Reason::kNotSupported, "details of offloading"},
    {"zero-optimization.", Reason::kNoInfluence, ""},
    {"zero-allow-untested-optimizer", Reason::kNoInfluence, ""},
    {"zero-force-ds-cpu-optimizer", Reason::kNoInfluence, ""},
    {"activation-checkpointing.partition-activations", Reason::kNotSupported, "activations spread over tensor ranks",
     true},
    {"activation-checkpointing.cpu-checkpointing", Reason::kNotSupported, "activations in host memory", true},
    {"activation-checkpointing.", Reason::kNoInfluence, ""},
    {"pipeline.", Reason::kNotSupported, "DeepSpeed's pipeline"},
    {"tensor-parallel.", Reason::kNotSupported, "details of tensor parallelism"},
    {"communication-data-type", Reason::kNotSupported, "the type on the wire"},
    {"data-types.", Reason::kNotSupported, "types of gradients"},
    {"compression-training", Reason::kNotSupported, "compression"},
    {"sparse-attention", Reason::kNotSupported, "sparse attention", true},
    {"aio.", Reason::kNotSupported, "NVMe offloading"},
    {"optimizer.", Reason::kNoInfluence, ""},
    {"scheduler.", Reason::kNoInfluence, ""},
    {"fp16.", Reason::kNoInfluence, ""},
    {"bf16.", Reason::kNoInfluence, ""},
    {"amp.", Reason::kNotSupported, "automatic mixed precision"},
    {"flops-profiler", Reason::kNoInfluence, ""},
    {"tensorboard", Reason::kNoInfluence, ""},
    {"wandb", Reason::kNoInfluence, ""},
    {"csv-monitor", Reason::kNoInfluence, ""},
    {"comms-logger", Reason::kNoInfluence, ""},
    {"checkpoint", Reason::kNoInfluence, ""},
    {"data-efficiency", Reason::kNoInfluence, ""},
    {"autotuning", Reason::kNoInfluence, ""},
    {"elasticity", Reason::kNoInfluence, ""},
    {"wall-clock-breakdown", Reason::kNoInfluence, ""},
    {"steps-per-print", Reason::kNoInfluence, ""},
    {"prescale-gradients", Reason::kNoInfluence, ""},
    {"gradient-predivide-factor", Reason::kNoInfluence, ""},
    {"dump-state", Reason::kNoInfluence, ""},
    {"memory-breakdown", Reason::kNoInfluence, ""},
});

class DeepSpeedTranslator {
 public:
  DeepSpeedTranslator(ArgumentTable& args, Draft& draft) : args_(args), draft_(draft) {}

  void run() {
    draft_.set("framework", "deepspeed", draft_.request().format);
    take_model();
    gpus_ = draft_.take_gpus(std::nullopt, "", {});
    take_tensor_parallel();
    take_batch();
    take_precision();
    take_zero();
    args_.ignore_rest(kDeepSpeedNames);
  }

 private:
  void take_model() {
    if (!draft_.take_requested_model()) {
      draft_.refuse("a DeepSpeed configuration names no model", {draft_.request().file, 0, ""},
                    {"give --model NAME, or the path of a Hugging Face config.json"});
    }
    bool stated = false;
    for (const config::Setting& setting : draft_.request().settings) {
      stated = stated || setting.field == "training.sequence_length";
    }
    if (!stated) {
      draft_.refuse("a DeepSpeed configuration states no sequence length", {draft_.request().file, 0, ""},
                    {"give --set training.sequence_length=N"});
    }
  }

  void take_tensor_parallel() {
    const std::string name = "tensor-parallel.autotp-size";
    const std::int64_t tp = args_.integer(name).value_or(0);
    if (tp > 1) {
      draft_.set("plan.tp", tp, args_.origin(name));
      draft_.set("plan.sequence_parallel", "false", "AutoTP reduces whole activations");
    }
    if (gpus_ == 0) return;
    if (gpus_ % std::max<std::int64_t>(tp, 1) != 0) {
      draft_.refuse(std::to_string(gpus_) + " devices do not divide by autotp_size " + std::to_string(tp),
                    args_.where(name));
      return;
    }
    dp_ = gpus_ / std::max<std::int64_t>(tp, 1);
  }

  void take_batch() {
    const auto train = args_.integer("train-batch-size");
    const auto micro = args_.integer("train-micro-batch-size-per-gpu");
    const auto steps = args_.integer("gradient-accumulation-steps");
    if (dp_ == 0) return;
    if (!train && !micro) {
      draft_.refuse("neither train_batch_size nor train_micro_batch_size_per_gpu is a number",
                    {draft_.request().file, 0, ""},
                    {"state two of train_batch_size, train_micro_batch_size_per_gpu and gradient_accumulation_steps; "
                     "\"auto\" is what the trainer would fill in"});
      return;
    }
    constexpr std::int64_t kMost = std::int64_t{1} << 31;
    const std::int64_t accumulation = steps.value_or(1);
    const std::int64_t per_step = accumulation < 1 || accumulation > kMost / dp_ ? 0 : accumulation * dp_;
    const std::int64_t one = micro ? *micro : per_step > 0 ? *train / per_step : 0;
    const std::int64_t used = steps              ? accumulation
                              : train && one > 0 ? *train / std::max<std::int64_t>(1, one * dp_)
                                                 : 1;
    if (one < 1 || used < 1 || one > kMost / dp_ || used > kMost / (one * dp_) ||
        (train && *train != one * used * dp_)) {
      draft_.refuse("train_batch_size " + (train ? std::to_string(*train) : "-") +
                        " is not train_micro_batch_size_per_gpu * gradient_accumulation_steps * dp = " +
                        std::to_string(one) + " * " + std::to_string(used) + " * " + std::to_string(dp_),
                    args_.where("train-batch-size"), {"two of the three imply the third"});
      return;
    }
    const std::string micro_name = "train-micro-batch-size-per-gpu";
    draft_.set("plan.micro_batch_size", one, micro ? args_.origin(micro_name) : "derived: train_batch_size");
    draft_.set("training.global_batch_size", one * used * dp_,
               train ? args_.origin("train-batch-size") : "derived: micro batch * accumulation * dp");
    draft_.convert("train_micro_batch_size_per_gpu " + std::to_string(one) + " * gradient_accumulation_steps " +
                   std::to_string(used) + " * dp " + std::to_string(dp_) + " = global_batch_size " +
                   std::to_string(one * used * dp_));
  }

  void take_precision() {
    const bool bf16 = args_.on("bf16.enabled") || args_.on("bfloat16.enabled");
    const bool fp16 = args_.on("fp16.enabled");
    if (bf16 && fp16) {
      draft_.refuse("fp16.enabled and bf16.enabled exclude each other", args_.where("fp16.enabled"),
                    {"one of the two"});
    }
    const std::string compute = bf16 ? "bf16" : fp16 ? "fp16" : "fp32";
    const std::string origin = bf16 ? args_.origin("bf16.enabled") : args_.origin("fp16.enabled");
    draft_.set("training.precision.compute", compute, origin.empty() ? "DeepSpeed default" : origin);
    if (const auto grads = args_.word("data-types.grad-accum-dtype")) {
      draft_.set("training.precision.grads", yaml_text(*grads), args_.origin("data-types.grad-accum-dtype"));
      draft_.set("training.precision.grad_reduce", yaml_text(*grads), args_.origin("data-types.grad-accum-dtype"));
    }
    if (const auto clip = args_.number("gradient-clipping"); !clip || *clip == 0) {
      draft_.set("training.optimizer.clip", "false",
                 clip ? args_.origin("gradient-clipping") : "DeepSpeed default: no clipping");
    }
    if (const auto type = args_.word("optimizer.type"); type && *type != "AdamW" && *type != "Adam") {
      draft_.ignore("optimizer.type", Reason::kNotSupported, *type + ": simulated as AdamW",
                    args_.where("optimizer.type"));
    }
  }

  void take_zero() {
    const std::int64_t stage = args_.integer("zero-optimization.stage").value_or(0);
    draft_.set("plan.zero", stage, args_.origin("zero-optimization.stage"));
    // zero/config.py: overlap_comm is on by default for stage 3 only.
    const std::string overlap = "zero-optimization.overlap-comm";
    const bool overlaps = args_.find(overlap) == nullptr ? stage == 3 : args_.on(overlap);
    if (stage < 3) {
      draft_.set("plan.overlap.grad_reduce", yaml_bool(overlaps),
                 args_.origin(overlap).empty() ? "DeepSpeed default" : args_.origin(overlap));
      const auto bucket = args_.integer("zero-optimization.reduce-bucket-size");
      draft_.set("plan.bucket", bucket.value_or(500'000'000),
                 bucket ? args_.origin("zero-optimization.reduce-bucket-size") : "DeepSpeed default: 5e8 elements");
    } else {
      ignore_of_stage_3(overlap, overlaps ? "as it is simulated"
                                          : "simulated as if true; --set plan.fsdp.prefetch=0 makes every gather wait");
      ignore_of_stage_3("zero-optimization.reduce-bucket-size", "gradients are reduced by layer, not by bucket");
    }
    take_offload("zero-optimization.offload-optimizer.device", "plan.offload.optimizer.to");
    take_offload("zero-optimization.offload-param.device", "plan.offload.params");
  }

  void ignore_of_stage_3(const std::string& name, const std::string& detail) {
    const Argument* given = args_.find(name);
    if (given != nullptr) draft_.ignore(given->written, Reason::kNotSupported, "stage 3: " + detail, given->where);
  }

  void take_offload(const std::string& name, const std::string& field) {
    const auto device = args_.word(name);
    if (!device || *device == "none") return;
    draft_.set(field, yaml_text(*device), args_.origin(name));
    if (field == "plan.offload.optimizer.to") draft_.set("plan.offload.optimizer.fraction", "1", args_.origin(name));
  }

  ArgumentTable& args_;
  Draft& draft_;
  std::int64_t gpus_ = 0;
  std::int64_t dp_ = 0;
};

}  // namespace

void import_deepspeed(Draft& draft) {
  const std::string& file = draft.request().file;
  std::vector<Argument> all = arguments_of_tree(config::parse_document(config::read_file(file), file), true);
  const std::size_t before = all.size();
  std::vector<Argument> stated = without_value(std::move(all), "auto");
  if (stated.size() < before) {
    draft.assume("\"auto\" is taken as not given (" + std::to_string(before - stated.size()) + " times)");
  }
  ArgumentTable args(std::move(stated), draft);
  DeepSpeedTranslator(args, draft).run();
}

}  // namespace stepcast::imports
