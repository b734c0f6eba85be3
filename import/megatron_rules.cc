// Rules of Megatron-LM about arguments, said in its flags' names and with the values that break them. Source:
// validate_args in megatron/training/arguments.py, TransformerConfig.__post_init__ and parallel_state.py; what the
// scenario's own rules (plan/rules) see as well is judged here where Megatron's answer differs or its flag helps more.
#include <algorithm>
#include <string_view>
#include <utility>

#include "config/text.h"
#include "import/megatron.h"

namespace stepcast::imports {
namespace {

std::string divisors_below(std::int64_t value, std::int64_t limit) {
  std::vector<std::string> divisors;
  for (std::int64_t d = 1; d <= std::min<std::int64_t>({value, limit, 4096}); ++d) {
    if (value % d == 0) divisors.push_back(std::to_string(d));
  }
  return config::join(divisors, ", ");
}

void judge_world(MegatronRun& run) {
  if (run.world == 0) return;
  const std::int64_t ranks = run.tp * run.cp * run.pp;
  if (run.world % ranks != 0) {
    run.draft.refuse("a world of " + std::to_string(run.world) +
                         " does not divide by tensor * context * pipeline = " + std::to_string(run.tp) + " * " +
                         std::to_string(run.cp) + " * " + std::to_string(run.pp) + " = " + std::to_string(ranks),
                     run.args.where("tensor-model-parallel-size"),
                     {"a world of " + std::to_string((run.world / ranks + 1) * ranks) + ", or other degrees"});
  }
  const std::int64_t expert_ranks = run.etp * run.ep * run.pp;
  if (run.experts > 0 && run.world % expert_ranks != 0) {
    run.draft.refuse("a world of " + std::to_string(run.world) +
                         " does not divide by expert-tensor * expert * pipeline = " + std::to_string(run.etp) + " * " +
                         std::to_string(run.ep) + " * " + std::to_string(run.pp) + " = " + std::to_string(expert_ranks),
                     run.args.where("expert-model-parallel-size"),
                     {"a world of " + std::to_string((run.world / expert_ranks + 1) * expert_ranks)});
  }
}

// The largest data-parallel degree up to dp that the batch divides by.
std::int64_t fitting_dp(const MegatronRun& run) {
  std::int64_t best = 1;
  for (std::int64_t dp = 1; dp <= run.dp(); ++dp) {
    if (run.global_batch % (run.micro_batch * dp) == 0) best = dp;
  }
  return best;
}

void judge_batch(MegatronRun& run) {
  const std::int64_t dp = run.dp();
  if (dp == 0 || run.global_batch == 0) return;
  const std::int64_t step = run.micro_batch * dp;
  if (run.global_batch % step == 0) return;
  const std::int64_t below = run.global_batch / step * step;
  std::vector<std::string> help{"--global-batch-size " + (below > 0 ? std::to_string(below) + " or " : "") +
                                std::to_string(below + step) + "; " + std::to_string(step * run.pp) +
                                " gives every one of the " + std::to_string(run.pp) + " stages a microbatch"};
  const std::int64_t fitting = fitting_dp(run);
  help.push_back("a world of " + std::to_string(fitting * run.tp * run.cp * run.pp) + ": data parallel " +
                 std::to_string(fitting));
  run.draft.refuse("--global-batch-size " + std::to_string(run.global_batch) +
                       " does not divide by --micro-batch-size * dp = " + std::to_string(run.micro_batch) + " * " +
                       std::to_string(dp) + " = " + std::to_string(step) + ": remainder " +
                       std::to_string(run.global_batch % step),
                   run.args.where("global-batch-size"), std::move(help));
}

void judge_shape(MegatronRun& run) {
  if (run.heads > 0 && run.heads % run.tp != 0) {
    run.draft.refuse("--num-attention-heads " + std::to_string(run.heads) +
                         " does not divide by --tensor-model-parallel-size " + std::to_string(run.tp),
                     run.args.where("num-attention-heads"),
                     {"--tensor-model-parallel-size " + divisors_below(run.heads, run.heads)});
  }
  const bool replicates = run.groups > 0 && run.tp % run.groups == 0;
  const bool grouped = run.groups != run.heads;  // else said of the heads
  if (grouped && run.groups > 0 && run.groups % run.tp != 0 && !replicates) {
    run.draft.refuse("--num-query-groups " + std::to_string(run.groups) +
                         " is neither a multiple nor a divisor of "
                         "--tensor-model-parallel-size " +
                         std::to_string(run.tp),
                     run.args.where("num-query-groups"),
                     {"--tensor-model-parallel-size " + divisors_below(run.groups, run.groups)});
  }
  const bool channels = run.args.find("kv-channels") != nullptr;
  if (run.heads > 0 && run.hidden % run.heads != 0 && !channels) {
    run.draft.refuse("--hidden-size " + std::to_string(run.hidden) + " does not divide by --num-attention-heads " +
                         std::to_string(run.heads),
                     run.args.where("hidden-size"), {"state --kv-channels, or other sizes"});
  }
  if (run.cp > 1 && run.sequence > 0 && run.sequence % (2 * run.cp) != 0) {
    run.draft.refuse("--seq-length " + std::to_string(run.sequence) +
                         " does not divide by 2 * --context-parallel-size = " + std::to_string(2 * run.cp),
                     run.args.where("seq-length"));
  }
  const auto positions = run.args.integer("max-position-embeddings");
  if (positions && *positions < run.sequence) {
    run.draft.refuse("--max-position-embeddings " + std::to_string(*positions) + " is below --seq-length " +
                         std::to_string(run.sequence),
                     run.args.where("max-position-embeddings"),
                     {"--max-position-embeddings " + std::to_string(run.sequence)});
  }
}

void judge_experts(MegatronRun& run) {
  if (run.ep > 1 && run.experts == 0 && run.draft.request().model.empty()) {
    run.draft.refuse("--expert-model-parallel-size " + std::to_string(run.ep) + " needs --num-experts",
                     run.args.where("expert-model-parallel-size"),
                     {"--num-experts N, a multiple of " + std::to_string(run.ep)});
  }
  if (run.experts > 0 && run.experts % run.ep != 0) {
    run.draft.refuse("--num-experts " + std::to_string(run.experts) +
                         " does not divide by --expert-model-parallel-size " + std::to_string(run.ep),
                     run.args.where("num-experts"),
                     {"--expert-model-parallel-size " + divisors_below(run.experts, run.experts)});
  }
}

// Two switches that exclude each other.
void exclusive(MegatronRun& run, std::string_view one, std::string_view other, const std::string& help) {
  if (!run.args.on(one) || !run.args.on(other)) return;
  run.draft.refuse(run.args.origin(one) + " and " + run.args.origin(other) + " exclude each other", run.args.where(one),
                   {help});
}

// A switch that needs another.
void needs(MegatronRun& run, std::string_view one, bool fulfilled, const std::string& relation) {
  if (fulfilled || !run.args.on(one)) return;
  run.draft.refuse("--" + std::string(one) + " needs " + relation, run.args.where(one), {relation});
}

void judge_switches(MegatronRun& run) {
  ArgumentTable& args = run.args;
  exclusive(run, "fp16", "bf16", "one of --fp16 and --bf16");
  exclusive(run, "fp8-format", "fp4-format", "one of --fp8-format and --fp4-format");
  exclusive(run, "num-layers-per-virtual-pipeline-stage", "num-virtual-stages-per-pipeline-rank",
            "one way to state the virtual stages");
  exclusive(run, "num-layers-per-virtual-pipeline-stage", "pipeline-model-parallel-layout",
            "one way to state the virtual stages");
  exclusive(run, "num-virtual-stages-per-pipeline-rank", "pipeline-model-parallel-layout",
            "one way to state the virtual stages");
  const bool fsdp = args.on("use-megatron-fsdp");
  needs(run, "overlap-param-gather", fsdp || args.on("use-distributed-optimizer"), "--use-distributed-optimizer");
  needs(run, "overlap-param-gather", fsdp || args.on("overlap-grad-reduce"), "--overlap-grad-reduce");
  needs(run, "tp-comm-overlap", args.on("sequence-parallel"), "--sequence-parallel");
  needs(run, "overlap-p2p-communication-warmup-flush", run.vp > 1 && !args.on("no-overlap-p2p-communication"),
        "overlapped messages: virtual stages, and no --no-overlap-p2p-communication (without, messages are batched)");
}

void judge_recompute(MegatronRun& run) {
  const std::string granularity = run.args.word("recompute-granularity").value_or("");
  if (granularity == "selective" && run.args.on("recompute-method")) {
    run.draft.refuse("--recompute-method " + run.args.word("recompute-method").value_or("") +
                         " goes with --recompute-granularity full, not selective",
                     run.args.where("recompute-method"), {"leave --recompute-method out"});
  }
  if (!run.args.on("distribute-saved-activations")) return;
  run.draft.ignore("--distribute-saved-activations", Reason::kNotSupported,
                   "saved activations spread over tensor-parallel ranks",
                   run.args.where("distribute-saved-activations"));
  if (run.tp == 1 || granularity != "full") {
    run.draft.refuse("--distribute-saved-activations needs --tensor-model-parallel-size above 1 (" +
                         std::to_string(run.tp) + ") and --recompute-granularity full (" +
                         (granularity.empty() ? "none" : granularity) + ")",
                     run.args.where("distribute-saved-activations"));
  }
}

void judge_weight_shards(MegatronRun& run) {
  const auto shards = run.args.integer("tensor-parallel-num-weight-shards");
  if (!shards) return;
  const Location where = run.args.where("tensor-parallel-num-weight-shards");
  if (*shards == run.tp) return;
  if (*shards % run.tp == 0) {
    run.draft.refuse("--tensor-parallel-num-weight-shards " + std::to_string(*shards) +
                         ": weight sharding beside tensor parallelism",
                     where, {std::to_string(run.tp) + ", as --tensor-model-parallel-size, shards no further"},
                     ErrorKind::kUnsupported);
    return;
  }
  run.draft.refuse("--tensor-parallel-num-weight-shards " + std::to_string(*shards) +
                       " is not a multiple of --tensor-model-parallel-size " + std::to_string(run.tp),
                   where, {"a multiple of " + std::to_string(run.tp)});
}

// megatron/core/models/backends.py: LocalSpecProvider gives DotProductAttention, which asserts context_parallel_size 1
// (dot_product_attention.py), and ColumnParallelLinear and RowParallelLinear, which know neither fp8 nor user buffers.
// arguments.py asserts transformer_engine for --delay-wgrad-compute.
void judge_implementation(MegatronRun& run) {
  if (run.args.word("transformer-impl").value_or("transformer_engine") != "local") return;
  const std::string local = run.args.origin("transformer-impl");
  const auto refuse = [&](std::string_view flag) {
    run.draft.refuse("--" + std::string(flag) + " acts in Transformer Engine's layers; " + local + " has none",
                     run.args.where(flag), {"--transformer-impl transformer_engine, or leave it out"});
  };
  for (const std::string_view flag : {"tp-comm-overlap", "delay-wgrad-compute"}) {
    if (run.args.on(flag)) refuse(flag);
  }
  for (const std::string_view flag : {"fp8-format", "fp4-format"}) {
    if (run.args.word(flag).value_or("null") != "null") refuse(flag);
  }
  if (run.cp > 1) refuse("context-parallel-size");
}

// OptimizerConfig and validate_args: gradients are fp32 unless a precision-aware optimizer reads others.
void judge_gradients(MegatronRun& run) {
  if (run.args.word("main-grads-dtype").value_or("fp32") == "fp32") return;
  needs(run, "main-grads-dtype", run.args.on("use-precision-aware-optimizer"), "--use-precision-aware-optimizer");
  if (!run.args.on("accumulate-allreduce-grads-in-fp32")) return;
  run.draft.refuse(run.args.origin("accumulate-allreduce-grads-in-fp32") + " goes with --main-grads-dtype fp32 only",
                   run.args.where("main-grads-dtype"), {"leave out one of them"});
}

}  // namespace

void judge_megatron(MegatronRun& run) {
  judge_world(run);
  judge_batch(run);
  judge_shape(run);
  judge_experts(run);
  judge_switches(run);
  judge_recompute(run);
  judge_weight_shards(run);
  judge_implementation(run);
  judge_gradients(run);
}

}  // namespace stepcast::imports
