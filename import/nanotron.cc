// nanotron's YAML. Source of names, defaults and rules: huggingface/nanotron, src/nanotron/config. A batch is
// micro_batch_size * batch_accumulation_per_replica * dp sequences.
#include <array>
#include <string_view>
#include <utility>

#include "config/text.h"
#include "import/arguments.h"
#include "import/formats.h"

namespace stepcast::imports {
namespace {

constexpr std::array kNanotronNames = std::to_array<KnownName>({
    {"checkpoints.", Reason::kNoInfluence, ""},
    {"data-stages", Reason::kNoInfluence, ""},
    {"general.", Reason::kNoInfluence, ""},
    {"lighteval", Reason::kNoInfluence, ""},
    {"logging.", Reason::kNoInfluence, ""},
    {"profiler", Reason::kNoInfluence, ""},
    {"tokenizer.", Reason::kNoInfluence, ""},
    {"s3-upload", Reason::kNoInfluence, ""},
    {"metrics-logging", Reason::kNoInfluence, ""},
    {"tokens.", Reason::kNoInfluence, ""},
    {"optimizer.", Reason::kNoInfluence, ""},
    {"parallelism.tp-recompute-allgather", Reason::kNotSupported, "whether a gathered input is kept"},
    {"parallelism.tp-linear-async-communication", Reason::kNotSupported,
     "tensor-parallel communication beside matmuls"},
    {"parallelism.expert-parallel-size", Reason::kNotSupported, "experts", true, "1"},
    {"parallelism.moe-layer-recompute", Reason::kNotSupported, "experts"},
    {"model.ddp-bucket-cap-mb", Reason::kNotSupported, ""},
    {"model.init-method", Reason::kNoInfluence, ""},
    {"model.model-config.moe", Reason::kNotSupported, "experts", true, "1"},
    {"model.model-config.sliding-window", Reason::kNotSupported, "sliding windows", true},
    {"model.model-config.", Reason::kNoInfluence, ""},
    {"model.", Reason::kNoInfluence, ""},
});

struct ModelKey {
  std::string_view name;
  std::string_view field;
};
constexpr std::array<ModelKey, 7> kModelKeys = {{{"num-hidden-layers", "model.num_hidden_layers"},
                                                 {"hidden-size", "model.hidden_size"},
                                                 {"intermediate-size", "model.intermediate_size"},
                                                 {"num-attention-heads", "model.num_attention_heads"},
                                                 {"num-key-value-heads", "model.num_key_value_heads"},
                                                 {"vocab-size", "model.vocab_size"},
                                                 {"max-position-embeddings", "model.max_position_embeddings"}}};

class NanotronTranslator {
 public:
  NanotronTranslator(ArgumentTable& args, Draft& draft) : args_(args), draft_(draft) {}

  void run() {
    draft_.set("framework", "nanotron", draft_.request().format);
    take_model();
    take_parallelism();
    take_batch();
    take_training();
    judge();
    args_.ignore_rest(kNanotronNames);
  }

 private:
  std::int64_t degree(const std::string& name, const std::string& field) {
    constexpr std::int64_t kMost = std::int64_t{1} << 20;
    const std::string key = "parallelism." + name;
    const std::int64_t value = args_.integer(key).value_or(1);
    if (value < 1 || value > kMost) {
      draft_.refuse("a degree of " + std::to_string(value), args_.where(key), {"from 1 to 2^20"});
      return 1;
    }
    if (!field.empty() && !args_.origin(key).empty()) draft_.set(field, value, args_.origin(key));
    return value;
  }

  void take_model() {
    if (const auto pad = args_.integer("model.make-vocab-size-divisible-by")) {
      draft_.set("model.vocab_pad_to", *pad, args_.origin("model.make-vocab-size-divisible-by"));
    }
    if (draft_.take_requested_model()) return;
    const std::string llama = "model.model-config.is-llama-config";
    if (args_.find(llama) != nullptr && !args_.on(llama)) {
      draft_.refuse("a model that is no Llama", args_.where(llama), {"give --model NAME"}, ErrorKind::kUnsupported);
    }
    bool any = false;
    for (const ModelKey& key : kModelKeys) {
      const std::string name = "model.model-config." + std::string(key.name);
      const auto value = args_.integer(name);
      if (value) draft_.set(std::string(key.field), *value, args_.origin(name));
      any = any || value;
    }
    if (!any) {
      draft_.refuse("the file states no model", {draft_.request().file, 0, ""}, {"give --model NAME"});
      return;
    }
    draft_.set("model.model_type", "llama", args_.origin(llama));
    const std::string tied = "model.model-config.tie-word-embeddings";
    draft_.set("model.tie_word_embeddings", yaml_bool(args_.on(tied)), args_.origin(tied));
    take_number("model.model-config.rms-norm-eps", "model.rms_norm_eps");
    take_number("model.model-config.rope-theta", "model.rope_theta");
  }

  void take_number(const std::string& name, const std::string& field) {
    if (const auto value = args_.number(name)) draft_.set(field, config::number_text(*value), args_.origin(name));
  }

  void take_parallelism() {
    dp_ = degree("dp", "");
    tp_ = degree("tp", "plan.tp");
    pp_ = degree("pp", "plan.pp");
    cp_ = degree("context-parallel-size", "plan.cp");
    const std::string engine = args_.word("parallelism.pp-engine").value_or("1f1b");
    schedule_1f1b_ = engine != "afab";
    if (pp_ > 1) draft_.set("plan.schedule", schedule_1f1b_ ? "1f1b" : "gpipe", args_.origin("parallelism.pp-engine"));
    std::string mode = args_.word("parallelism.tp-mode").value_or("ALL_REDUCE");
    if (tp_ > 1) {
      draft_.set("plan.sequence_parallel", yaml_bool(mode == "REDUCE_SCATTER" || mode == "reduce_scatter"),
                 args_.origin("parallelism.tp-mode").empty() ? "nanotron default: ALL_REDUCE"
                                                             : args_.origin("parallelism.tp-mode"));
    }
    if (args_.on("parallelism.recompute-layer")) {
      draft_.set("plan.recompute.granularity", "full", args_.origin("parallelism.recompute-layer"));
    }
    constexpr std::int64_t kMost = std::int64_t{1} << 24;
    const std::int64_t model_ranks = tp_ * pp_ * cp_;
    if (model_ranks > kMost || dp_ > kMost / model_ranks) {
      draft_.refuse("dp * tp * pp * cp is more than 2^24 devices", {draft_.request().file, 0, ""});
      return;
    }
    draft_.take_gpus(dp_ * model_ranks, "derived: dp * tp * pp * context_parallel_size", {});
    draft_.set("plan.dp", dp_, args_.origin("parallelism.dp"));
  }

  void take_batch() {
    const auto sequence = args_.integer("tokens.sequence-length");
    micro_batch_ = args_.integer("tokens.micro-batch-size").value_or(1);
    accumulation_ = args_.integer("tokens.batch-accumulation-per-replica").value_or(1);
    if (sequence) {
      draft_.set("training.sequence_length", *sequence, args_.origin("tokens.sequence-length"));
    } else if (args_.origin("tokens.sequence-length").empty()) {
      draft_.refuse("missing tokens.sequence_length", {draft_.request().file, 0, ""});
    }
    draft_.set("plan.micro_batch_size", micro_batch_, args_.origin("tokens.micro-batch-size"));
    constexpr std::int64_t kMost = std::int64_t{1} << 31;
    if (micro_batch_ < 1 || accumulation_ < 1 || micro_batch_ > kMost / accumulation_ ||
        micro_batch_ * accumulation_ > kMost / dp_) {
      draft_.refuse("micro_batch_size * batch_accumulation_per_replica * dp is not from 1 to 2^31",
                    args_.where("tokens.batch-accumulation-per-replica"));
      return;
    }
    const std::int64_t batch = micro_batch_ * accumulation_ * dp_;
    draft_.set("training.global_batch_size", batch, "derived: micro_batch_size * batch_accumulation_per_replica * dp");
    draft_.convert("micro_batch_size " + std::to_string(micro_batch_) + " * batch_accumulation_per_replica " +
                   std::to_string(accumulation_) + " * dp " + std::to_string(dp_) + " = global_batch_size " +
                   std::to_string(batch));
  }

  void take_training() {
    const std::string dtype = args_.word("model.dtype").value_or("bfloat16");
    draft_.set("training.precision.compute",
               dtype == "bfloat16"  ? "bf16"
               : dtype == "float16" ? "fp16"
                                    : "fp32",
               args_.origin("model.dtype"));
    const std::string in_fp32 = "optimizer.accumulate-grad-in-fp32";
    const bool half = args_.find(in_fp32) != nullptr && !args_.on(in_fp32) && dtype == "bfloat16";
    draft_.set("training.precision.grads", half ? "bf16" : "fp32", args_.origin(in_fp32));
    draft_.set("training.precision.grad_reduce", half ? "bf16" : "fp32", args_.origin(in_fp32));
    draft_.set("plan.zero", args_.integer("optimizer.zero-stage").value_or(0), args_.origin("optimizer.zero-stage"));
    if (const auto clip = args_.number("optimizer.clip-grad"); clip && *clip == 0) {
      draft_.set("training.optimizer.clip", "false", args_.origin("optimizer.clip-grad"));
    }
  }

  // src/nanotron/parallel/pipeline_parallel: 1F1B fills the pipeline with pp - 1 microbatches before it drains any.
  void judge() {
    if (!schedule_1f1b_ || accumulation_ >= pp_ - 1) return;
    draft_.refuse("batch_accumulation_per_replica " + std::to_string(accumulation_) +
                      " is below pp - 1 = " + std::to_string(pp_ - 1) + ": 1f1b needs at least that many microbatches",
                  args_.where("tokens.batch-accumulation-per-replica"),
                  {"batch_accumulation_per_replica of at least " + std::to_string(pp_ - 1) + "; " +
                       std::to_string(pp_) + " or more keeps every stage busy",
                   "pp_engine: afab"});
  }

  ArgumentTable& args_;
  Draft& draft_;
  std::int64_t dp_ = 1;
  std::int64_t tp_ = 1;
  std::int64_t pp_ = 1;
  std::int64_t cp_ = 1;
  std::int64_t micro_batch_ = 1;
  std::int64_t accumulation_ = 1;
  bool schedule_1f1b_ = true;
};

}  // namespace

void import_nanotron(Draft& draft) {
  const std::string& file = draft.request().file;
  ArgumentTable args(arguments_of_tree(config::parse_document(config::read_file(file), file), true), draft);
  NanotronTranslator(args, draft).run();
}

}  // namespace stepcast::imports
