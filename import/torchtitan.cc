// torchtitan: the TOML of releases up to early 2026 and dotted flags, with the names before and after. Source:
// torchtitan b5bcd76c (2026-08-21) and its job configuration of 2025. Defaults named here are that configuration's.
//
// A batch is counted per data-parallel rank and step: local_batch_size sequences, which a pipeline cuts into
// microbatches. The scenario counts sequences of one microbatch and of the whole step.
#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "config/text.h"
#include "import/arguments.h"
#include "import/formats.h"
#include "import/launch.h"
#include "import/torchtitan_names.h"

namespace stepcast::imports {
namespace {

using Names = std::vector<std::string_view>;

class TorchtitanTranslator {
 public:
  TorchtitanTranslator(ArgumentTable& args, Draft& draft) : args_(args), draft_(draft) {}

  void run(const StatedDevices& devices) {
    draft_.set("framework", "torchtitan", draft_.request().format);
    take_model();
    take_degrees();
    take_world(devices);
    take_schedule();
    take_batch();
    take_sharding();
    take_recompute();
    take_stack();
    judge_heads();
    std::vector<KnownName> known(kTorchtitanNames.begin(), kTorchtitanNames.end());
    for (KnownName& name : known) {
      if (!float8_ && name.beginning == "float8.") name = {"float8.", Reason::kNoInfluence, ""};
    }
    args_.ignore_rest(known);
  }

 private:
  // The first of several names of one thing that is given.
  std::string_view given(const Names& names) {
    std::string_view found;
    for (const std::string_view name : names) {
      if (args_.find(name) != nullptr && found.empty()) found = name;
    }
    return found.empty() ? names.front() : found;
  }

  std::int64_t degree(const Names& names, std::int64_t otherwise) {
    constexpr std::int64_t kMost = std::int64_t{1} << 20;
    const std::string_view name = given(names);
    const auto text = args_.word(name);
    if (text && *text == "-1") return -1;
    const std::int64_t value = args_.integer(name).value_or(otherwise);
    if (value == -1 || (value >= 1 && value <= kMost)) return value;
    draft_.refuse("a degree of " + std::to_string(value), args_.where(name), {"from 1 to 2^20"});
    return 1;
  }

  void take_model() {
    const std::string name = args_.word("model.name").value_or("");
    const std::string flavor = args_.word("model.flavor").value_or("");
    const std::string config = args_.word("config").value_or("");
    args_.find("module");
    if (draft_.take_requested_model()) return;
    for (const TorchtitanFlavor& known : kTorchtitanFlavors) {
      std::string function = std::string(known.model) + "_" + std::string(known.flavor);  // llama3_8b
      std::transform(function.begin(), function.end(), function.begin(),
                     [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
      if ((name != known.model || flavor != known.flavor) && config != function) continue;
      draft_.set("model.config", std::string(known.preset),
                 config == function ? args_.origin("config") : args_.origin("model.flavor"));
      return;
    }
    draft_.refuse("the model " + config::printable(name + " " + flavor + config) + " is not known here",
                  args_.where(config.empty() ? "model.flavor" : "config"),
                  {"give --model NAME, or the path of a Hugging Face config.json"});
  }

  void take_degrees() {
    tp_ = take_degree({"parallelism.tensor-parallel-degree", "training.tensor-parallel-degree"}, "plan.tp");
    cp_ = take_degree({"parallelism.context-parallel-degree", "experimental.context-parallel-degree"}, "plan.cp");
    pp_ = take_degree({"parallelism.pipeline-parallel-degree", "experimental.pipeline-parallel-degree"}, "plan.pp");
    ep_ = take_degree({"parallelism.expert-parallel-degree"}, "plan.ep");
    take_degree({"parallelism.expert-tensor-parallel-degree"}, "plan.etp");
    replicate_ = degree({"parallelism.data-parallel-replicate-degree", "training.data-parallel-replicate-degree"}, 1);
    shard_ = degree({"parallelism.data-parallel-shard-degree", "training.data-parallel-shard-degree",
                     "training.data-parallel-degree"},
                    -1);
    if (tp_ < 1 || cp_ < 1 || pp_ < 1 || replicate_ < 1) {
      draft_.refuse("-1 is a degree of data_parallel_shard_degree only", {draft_.request().file, 0, ""});
      tp_ = cp_ = pp_ = replicate_ = 1;
    }
    const std::string_view sequence = "parallelism.enable-sequence-parallel";
    if (args_.find(sequence) != nullptr && !args_.on(sequence)) {
      draft_.set("plan.sequence_parallel", "false", args_.origin(sequence));
    }
  }

  std::int64_t take_degree(const Names& names, const std::string& field) {
    const std::int64_t value = degree(names, 1);
    const std::string origin = args_.origin(given(names));
    if (!origin.empty() && value >= 1) draft_.set(field, value, origin);
    return value;
  }

  void take_world(StatedDevices devices) {
    const std::int64_t model_ranks = tp_ * cp_ * pp_;
    if (shard_ > 0 && !devices.count && replicate_ * shard_ <= (std::int64_t{1} << 24) / model_ranks) {
      devices = {replicate_ * shard_ * model_ranks, "derived: replicate * shard * tp * cp * pp", {}, ""};
    }
    gpus_ = take_devices(devices, draft_, {"data_parallel_shard_degree -1 takes what is there"});
    if (gpus_ == 0) return;
    if (gpus_ % (model_ranks * replicate_) != 0) {
      draft_.refuse(std::to_string(gpus_) +
                        " devices do not divide by replicate * tp * cp * pp = " + std::to_string(replicate_) + " * " +
                        std::to_string(tp_) + " * " + std::to_string(cp_) + " * " + std::to_string(pp_),
                    args_.where("parallelism.tensor-parallel-degree"));
      return;
    }
    const std::int64_t shard = gpus_ / (model_ranks * replicate_);
    if (shard_ > 0 && shard_ != shard) {
      draft_.refuse("data_parallel_shard_degree " + std::to_string(shard_) + " leaves " + std::to_string(gpus_) +
                        " devices unfilled: they make " + std::to_string(shard),
                    args_.where("parallelism.data-parallel-shard-degree"), {"-1, or " + std::to_string(shard)});
    }
    shard_ = shard;
  }

  void take_schedule() {
    const std::string_view name =
        given({"parallelism.pipeline-parallel-schedule", "experimental.pipeline-parallel-schedule"});
    const auto text = args_.word(name);
    const auto per_stage = args_.integer("parallelism.pipeline-parallel-layers-per-stage");
    if (pp_ == 1) return;
    const std::string torch = text.value_or("1F1B");
    const auto known = std::find_if(kTorchtitanSchedules.begin(), kTorchtitanSchedules.end(),
                                    [&](const TorchtitanSchedule& s) { return s.torch == torch; });
    if (known == kTorchtitanSchedules.end()) {
      std::vector<std::string> names;
      for (const TorchtitanSchedule& schedule : kTorchtitanSchedules) names.emplace_back(schedule.torch);
      draft_.refuse("no schedule is called " + config::printable(torch), args_.where(name), {config::join(names)});
      return;
    }
    draft_.set("plan.schedule", std::string(known->schedule), text ? args_.origin(name) : "torchtitan default");
    std::int64_t stages = known->stages;
    std::string origin = "torchtitan default: stages of a rank";
    const auto model = per_stage ? draft_.architecture() : std::nullopt;
    if (per_stage && *per_stage > 0 && model) {
      // The first and the last stage hold one layer less: embedding and head count as one each.
      const std::int64_t all = (model->layers + 2 + *per_stage - 1) / *per_stage;
      stages = std::max<std::int64_t>(1, all / pp_);
      origin = args_.origin("parallelism.pipeline-parallel-layers-per-stage");
    }
    if (stages > 1) draft_.set("plan.vp", stages, origin);
  }

  void take_batch() {
    const std::string_view sequence_name = given({"training.seq-len", "training.max-context-length"});
    const std::int64_t sequence = args_.integer(sequence_name).value_or(2048);
    draft_.set("training.sequence_length", sequence,
               args_.find(sequence_name) != nullptr ? args_.origin(sequence_name) : "torchtitan default");
    const std::string_view local_name = given({"training.local-batch-size", "training.batch-size"});
    std::int64_t local = args_.integer(local_name).value_or(8);
    std::string local_origin = args_.origin(local_name);
    const auto tokens = args_.integer("training.num-tokens-per-microbatch-per-dp-rank");
    const auto parts = args_.integer("parallelism.num-pp-microbatches");
    const auto micro = args_.integer("parallelism.pipeline-parallel-microbatch-size");
    if (tokens && sequence > 0) {
      local = std::max<std::int64_t>(1, *tokens / sequence) * (pp_ > 1 ? parts.value_or(pp_) : 1);
      local_origin = args_.origin("training.num-tokens-per-microbatch-per-dp-rank");
    }
    if (local_origin.empty()) draft_.assume("local_batch_size 8, torchtitan's default");
    const std::int64_t micro_batch = pp_ == 1 ? local
                                     : tokens ? local / parts.value_or(pp_)
                                              : std::max<std::int64_t>(1, micro.value_or(1));
    if (local < 1 || micro_batch < 1 || local % micro_batch != 0) {
      draft_.refuse("local_batch_size " + std::to_string(local) + " does not divide into microbatches of " +
                        std::to_string(micro_batch),
                    args_.where(local_name));
      return;
    }
    set_batch(local, micro_batch, local_origin);
  }

  void set_batch(std::int64_t local, std::int64_t micro_batch, const std::string& local_origin) {
    const auto stated = args_.word("training.global-batch-size");
    std::int64_t global = 0;
    if (stated && *stated != "-1") global = args_.integer("training.global-batch-size").value_or(0);
    if (gpus_ == 0) return;
    const std::int64_t dp = replicate_ * shard_;
    if (dp < 1 || local > (std::int64_t{1} << 31) / dp) return;
    if (global != 0 && global % (local * dp) != 0) {
      draft_.refuse("global_batch_size " + std::to_string(global) + " does not divide by local_batch_size * dp = " +
                        std::to_string(local) + " * " + std::to_string(dp),
                    args_.where("training.global-batch-size"), {"a multiple of " + std::to_string(local * dp)});
      return;
    }
    const std::int64_t steps = global == 0 ? 1 : global / (local * dp);
    draft_.set("plan.micro_batch_size", micro_batch, pp_ == 1 ? local_origin : "pipeline_parallel_microbatch_size");
    draft_.set("training.global_batch_size", local * dp * steps, "converted: local_batch_size * dp * accumulation");
    draft_.convert("local_batch_size " + std::to_string(local) +
                   " is per data-parallel rank and step: " + std::to_string(local) + " * dp " + std::to_string(dp) +
                   " * " + std::to_string(steps) + " accumulated = global_batch_size " +
                   std::to_string(local * dp * steps) + ", micro_batch_size " + std::to_string(micro_batch));
    if (steps > 1 && pp_ > 1) {
      draft_.assume(
          "one pipeline flush and one reduction of gradients per step: torchtitan has them after each of the " +
          std::to_string(steps) + " accumulated batches");
    }
  }

  void take_sharding() {
    const bool sharded = shard_ > 1 || cp_ > 1;
    draft_.set("plan.zero", sharded ? 3 : 0, sharded ? "data_parallel_shard_degree" : "one shard");
    if (replicate_ > 1 && sharded) {
      // The plan counts the cp members, over which FSDP shards too.
      draft_.set("plan.dp_shard", shard_ * cp_,
                 cp_ > 1 ? "data_parallel_shard_degree * context_parallel_degree" : "data_parallel_shard_degree");
      draft_.set("plan.dp_replicate", replicate_, args_.origin("parallelism.data-parallel-replicate-degree"));
    }
    const std::string_view reshard = "parallelism.fsdp-reshard-after-forward";
    if (const auto policy = args_.word(reshard); policy && *policy != "default" && sharded) {
      draft_.set("plan.fsdp.reshard_after_forward", yaml_bool(*policy == "always"), args_.origin(reshard));
    }
    const std::string compute = args_.word("training.mixed-precision-param").value_or("bfloat16");
    const std::string reduce = args_.word("training.mixed-precision-reduce").value_or("float32");
    const auto dtype = [](const std::string& name) { return name == "bfloat16" ? "bf16" : "fp32"; };
    const bool mixed = sharded && compute == "bfloat16";
    draft_.set("training.precision.compute", mixed ? "bf16" : "fp32",
               sharded ? "torchtitan: mixed_precision_param" : "torchtitan: mixed precision comes with FSDP");
    draft_.set("training.precision.params", dtype(args_.word("training.dtype").value_or("float32")),
               "torchtitan: training.dtype");
    draft_.set("training.precision.grads", "fp32", "torchtitan: as the parameters");
    draft_.set("training.precision.grad_reduce", dtype(reduce), "torchtitan: mixed_precision_reduce");
  }

  void take_recompute() {
    const std::string mode = args_.word("activation-checkpoint.mode").value_or("selective");
    const std::string policy = args_.word("activation-checkpoint.selective-ac-option").value_or("2");
    const std::string origin = args_.origin("activation-checkpoint.mode");
    if (origin.empty()) draft_.assume("activation checkpointing selective, torchtitan's default");
    if (mode == "none") return draft_.set("plan.recompute", "none", origin);
    if (mode == "full") return draft_.set("plan.recompute.granularity", "full", origin);
    draft_.set("plan.recompute.mode", yaml_text(mode), origin.empty() ? "torchtitan default" : origin);
    if (mode == "selective") {
      draft_.set("plan.recompute.policy", yaml_text(policy), args_.origin("activation-checkpoint.selective-ac-option"));
      if (policy == "op") {
        draft_.warn("plan.recompute.policy", "plan.recompute=full", "more is recomputed and less kept than in the run");
      }
    }
  }

  void take_stack() {
    const std::string_view compile = given({"compile.enable", "training.compile"});
    if (args_.on(compile)) {
      draft_.set("stack.compile", "block", args_.origin(compile));
      draft_.warn("stack.compile", "stack.compile=none", "elementwise kernels are then slower than in the run");
    }
    const std::string_view async =
        given({"parallelism.enable-async-tensor-parallel", "experimental.enable-async-tensor-parallel"});
    if (args_.on(async)) {
      draft_.set("plan.overlap.tp_comm", "true", args_.origin(async));
      draft_.warn("plan.overlap.tp_comm", "plan.overlap.tp_comm=false",
                  "that communication is then exposed more than in the run");
    }
    for (const std::string& converter : args_.words("model.converters")) {
      if (converter.find("float8") == std::string::npos) continue;
      float8_ = true;
      draft_.set("training.precision.compute", "fp8", args_.origin("model.converters"));
      draft_.set("training.precision.fp8_recipe", "tensorwise", args_.origin("model.converters"));
    }
    if (const auto name = args_.word("optimizer.name"); name && *name != "AdamW" && *name != "Adam") {
      draft_.ignore("optimizer.name", Reason::kNotSupported, *name, args_.where("optimizer.name"));
    }
  }

  // torchtitan splits key-value heads over tensor-parallel ranks and never replicates them.
  void judge_heads() {
    const auto model = draft_.architecture();
    if (!model || tp_ < 1) return;
    const Location where =
        args_.where(given({"parallelism.tensor-parallel-degree", "training.tensor-parallel-degree"}));
    const auto judge = [&](const char* name, std::int64_t heads) {
      if (heads % tp_ == 0) return;
      draft_.refuse(std::string(name) + " " + std::to_string(heads) + " does not divide by tensor_parallel_degree " +
                        std::to_string(tp_) + "; torchtitan does not replicate heads",
                    where, {"a tensor_parallel_degree that divides " + std::to_string(heads)});
    };
    judge("n_heads", model->heads);
    judge("n_kv_heads", model->kv_heads);
  }

  ArgumentTable& args_;
  Draft& draft_;
  std::int64_t tp_ = 1;
  std::int64_t cp_ = 1;
  std::int64_t pp_ = 1;
  std::int64_t ep_ = 1;
  std::int64_t replicate_ = 1;
  std::int64_t shard_ = -1;
  std::int64_t gpus_ = 0;
  bool float8_ = false;  // else the [float8] section is idle
};

bool is_dotted(const std::string& word) {
  const std::size_t dot = word.find('.');
  const bool recipe = word == "--module" || word.starts_with("--module=");
  return recipe || (word.starts_with("--") && dot != std::string::npos && dot > 2 && dot < word.find('='));
}

std::vector<Argument> arguments_of_toml(const std::string& file) {
  return arguments_of_tree(read_toml(config::read_file(file), file), true);
}

// The file that a script names with --job.config_file or CONFIG_FILE, beside the script or in the current folder.
std::string named_toml(const ShellScript& script, const std::vector<Argument>& flags, const std::string& beside) {
  std::string name;
  for (const auto& [variable, word] : script.environment) {
    if (variable == "CONFIG_FILE" && word.unknown.empty()) name = word.text;
  }
  for (const Argument& flag : flags) {
    if (flag.name == "job.config-file" && flag.values.size() == 1 && flag.unknown.empty()) name = flag.values[0];
  }
  if (!name.ends_with(".toml")) return {};
  const std::filesystem::path near = std::filesystem::path(beside).parent_path() / name;
  std::error_code fault;
  return std::filesystem::exists(near, fault) ? near.string() : name;
}

}  // namespace

void import_torchtitan(Draft& draft) {
  const std::string& file = draft.request().file;
  if (file.ends_with(".toml")) {
    ArgumentTable args(arguments_of_toml(file), draft);
    return TorchtitanTranslator(args, draft).run({});
  }
  const ShellScript script = read_shell(config::read_file(file), file, draft.request().defines);
  const auto launch = find_launch(script, is_dotted, draft);
  if (!launch) return;
  std::vector<Argument> flags = arguments_of_words(launch->arguments, file, draft);
  std::erase_if(flags, [](const Argument& a) {
    return a.name.find('.') == std::string::npos && a.name != "module" && a.name != "config";
  });
  std::vector<Argument> arguments;
  if (const std::string toml = named_toml(script, flags, file); !toml.empty()) arguments = arguments_of_toml(toml);
  arguments.insert(arguments.end(), flags.begin(), flags.end());  // flags hold over the file
  ArgumentTable args(std::move(arguments), draft);
  TorchtitanTranslator(args, draft).run(launch->devices);
}

}  // namespace stepcast::imports
