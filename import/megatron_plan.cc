// Degrees, sharding, recompute, overlap and stack of Megatron arguments.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "config/text.h"
#include "import/megatron.h"

namespace stepcast::imports {
namespace {

struct Degree {
  std::string_view flag;
  std::string_view field;
  std::int64_t MegatronRun::*member;
};

constexpr std::array<Degree, 5> kDegrees = {{
    {"tensor-model-parallel-size", "plan.tp", &MegatronRun::tp},
    {"context-parallel-size", "plan.cp", &MegatronRun::cp},
    {"pipeline-model-parallel-size", "plan.pp", &MegatronRun::pp},
    {"expert-model-parallel-size", "plan.ep", &MegatronRun::ep},
    {"expert-tensor-parallel-size", "plan.etp", &MegatronRun::etp},
}};

void take_degrees(MegatronRun& run) {
  constexpr std::int64_t kMost = std::int64_t{1} << 20;  // products of three degrees stay below 2^63
  for (const Degree& degree : kDegrees) {
    const auto value = run.args.integer(degree.flag);
    if (!value) continue;
    if (*value < 1 || *value > kMost) {
      run.draft.refuse("a degree of " + std::to_string(*value), run.args.where(degree.flag), {"from 1 to 2^20"});
      continue;
    }
    run.*degree.member = *value;
    run.draft.set(std::string(degree.field), *value, run.args.origin(degree.flag));
  }
  const bool etp_given = run.args.find("expert-tensor-parallel-size") != nullptr;
  if (!etp_given) run.etp = run.tp;
  if (!etp_given && run.experts > 0 && run.tp > 1) {
    run.draft.set("plan.etp", run.tp, "Megatron default: as --tensor-model-parallel-size");
  }
}

void take_batch_sizes(MegatronRun& run) {
  run.draft.set("plan.micro_batch_size", run.micro_batch, run.origin_or("micro-batch-size", "assumed"));
  if (run.args.origin("micro-batch-size").empty())
    run.draft.assume("plan.micro_batch_size 1: --micro-batch-size is not given");
  if (run.global_batch > 0) {
    run.draft.set("training.global_batch_size", run.global_batch, run.args.origin("global-batch-size"));
  } else if (run.dp() > 0) {
    run.global_batch = run.micro_batch * run.dp();
    run.draft.set("training.global_batch_size", run.global_batch, "Megatron default: --micro-batch-size * dp");
  }
}

void take_sharding(MegatronRun& run) {
  const bool fsdp = run.args.on("use-megatron-fsdp");
  const auto strategy = run.args.word("data-parallel-sharding-strategy");
  run.args.find("megatron-fsdp-version");
  if (fsdp) {
    run.draft.set("framework", "megatron-fsdp", run.args.origin("use-megatron-fsdp"));
    run.draft.set("plan.zero", yaml_text(strategy.value_or("no_shard")),
                  run.origin_or("data-parallel-sharding-strategy", "Megatron default"));
  } else {
    const bool sharded = run.args.on("use-distributed-optimizer");
    run.draft.set("plan.zero", sharded ? 1 : 0,
                  run.origin_or("use-distributed-optimizer", "no --use-distributed-optimizer"));
    const auto instances = run.args.integer("num-distributed-optimizer-instances");
    if (sharded && instances.value_or(1) > 1) {
      run.draft.set("plan.dp_replicate", *instances, run.args.origin("num-distributed-optimizer-instances"));
    }
  }
  const bool sequence_parallel = run.args.on("sequence-parallel");
  if (sequence_parallel && run.tp == 1) {
    run.draft.contradict(run.args.origin("sequence-parallel") +
                         " is switched off by Megatron: --tensor-model-parallel-size is 1");
  }
  if (run.tp > 1) {
    run.draft.set("plan.sequence_parallel", yaml_bool(sequence_parallel),
                  run.origin_or("sequence-parallel", "no --sequence-parallel"));
  }
}

void take_recompute(MegatronRun& run) {
  auto granularity = run.args.word("recompute-granularity");
  std::string origin = run.args.origin("recompute-granularity");
  if (!granularity && run.args.on("recompute-activations")) {
    granularity = "selective";
    origin = run.args.origin("recompute-activations");
  }
  const auto method = run.args.word("recompute-method");
  const auto layers = run.args.integer("recompute-num-layers");
  std::vector<std::string> modules = run.args.words("recompute-modules");
  if (!granularity || *granularity == "null") return;
  if (method && *method == "block" && layers && *layers == 0) {
    run.draft.assume("no recompute: --recompute-method block with --recompute-num-layers 0 recomputes no layer");
    return;
  }
  run.draft.set("plan.recompute.granularity", yaml_text(*granularity), origin);
  if (*granularity == "selective") {
    if (modules.empty()) modules = {"core_attn"};
    run.draft.set("plan.recompute.modules", yaml_list(modules), run.origin_or("recompute-modules", "Megatron default"));
    return;
  }
  if (method) run.draft.set("plan.recompute.method", yaml_text(*method), run.args.origin("recompute-method"));
  if (layers) run.draft.set("plan.recompute.num_layers", *layers, run.args.origin("recompute-num-layers"));
}

struct Switch {
  std::string_view flag;
  std::string_view field;
};

// Off unless given; where the scenario's default is on, the import says false.
constexpr std::array<Switch, 6> kOverlaps = {{
    {"overlap-param-gather", "plan.overlap.param_gather"},
    {"overlap-param-gather-with-optimizer-step", "plan.overlap.param_gather_with_optimizer"},
    {"tp-comm-overlap", "plan.overlap.tp_comm"},
    {"overlap-moe-expert-parallel-comm", "plan.overlap.moe_a2a"},
    {"delay-wgrad-compute", "plan.overlap.delay_wgrad"},
    {"moe-shared-expert-overlap", "plan.overlap.shared_expert"},
}};

void take_overlap(MegatronRun& run) {
  run.draft.set("plan.overlap.grad_reduce", yaml_bool(run.args.on("overlap-grad-reduce")),
                run.origin_or("overlap-grad-reduce", "no --overlap-grad-reduce"));
  for (const Switch& overlap : kOverlaps) {
    if (run.args.on(overlap.flag)) run.draft.set(std::string(overlap.field), "true", run.args.origin(overlap.flag));
  }
  if (run.args.on("no-overlap-p2p-communication")) {
    run.draft.set("plan.overlap.p2p", "false", run.args.origin("no-overlap-p2p-communication"));
  }
  if (const auto bucket = run.args.integer("ddp-bucket-size"); bucket && *bucket > 0) {
    run.draft.set("plan.bucket", *bucket, run.args.origin("ddp-bucket-size"));
  }
}

void take_context(MegatronRun& run) {
  const ImportedValue* dropout = run.draft.find("training.dropout");
  if (run.cp > 1 && dropout != nullptr && dropout->text != "0") {
    run.draft.warn("training.dropout", "training.dropout=0", "the masks of dropout are then left out");
  }
  const std::vector<std::string> kinds = run.args.words("cp-comm-type");
  if (kinds.size() == 1 && run.cp > 1) {
    run.draft.set("plan.cp_comm_type", yaml_text(kinds[0]), run.args.origin("cp-comm-type"));
  } else if (kinds.size() > 1) {
    run.draft.ignore("--cp-comm-type", Reason::kNotSupported, "a kind per layer", run.args.where("cp-comm-type"));
  }
}

void take_expert_parallelism(MegatronRun& run) {
  const auto dispatcher = run.args.word("moe-token-dispatcher-type");
  const auto backend = run.args.word("moe-flex-dispatcher-backend");
  const bool deepep = run.args.on("moe-enable-deepep");
  const bool grouped = run.args.on("moe-grouped-gemm");
  const auto capacity = run.args.number("moe-expert-capacity-factor");
  if (run.experts == 0) return;
  std::string name = dispatcher.value_or("allgather");
  if (name == "flex") name = deepep ? "deepep" : backend.value_or("deepep");
  run.draft.set("plan.moe.dispatcher", yaml_text(name), run.origin_or("moe-token-dispatcher-type", "Megatron default"));
  if (!grouped) run.draft.set("plan.moe.grouped_gemm", "false", "no --moe-grouped-gemm");
  if (capacity) {
    run.draft.set("plan.moe.capacity_factor", config::number_text(*capacity),
                  run.args.origin("moe-expert-capacity-factor"));
  }
}

void take_stack(MegatronRun& run) {
  const std::string graphs = run.args.word("cuda-graph-impl").value_or("none");
  const std::vector<std::string> modules = run.args.words("cuda-graph-modules");
  const bool old_switch = run.args.on("enable-cuda-graph") || run.args.on("external-cuda-graph");
  if (graphs != "none" || old_switch) {
    const bool parts = !modules.empty() && graphs != "full_iteration";
    run.draft.set("stack.cuda_graphs", parts ? yaml_list(modules) : "full",
                  run.origin_or(parts ? "cuda-graph-modules" : "cuda-graph-impl", "CUDA graphs"));
  }
  if (run.args.on("no-gradient-accumulation-fusion")) {
    run.draft.set("stack.gradient_accumulation", "separate", run.args.origin("no-gradient-accumulation-fusion"));
  }
}

// --transformer-impl local: get_gpt_layer_local_spec (gpt_layer_specs.py) takes its attention from LocalSpecProvider,
// which is DotProductAttention: scores by baddbmm, softmax, context by bmm, each in memory.
void take_attention(MegatronRun& run) {
  const auto backend = run.args.word("attention-backend");
  const std::string layers = run.args.word("transformer-impl").value_or("transformer_engine");
  const bool flash = run.args.on("use-flash-attn");
  if (layers != "local" && layers != "transformer_engine") {
    run.draft.refuse("--transformer-impl " + config::printable(layers), run.args.where("transformer-impl"),
                     {"transformer_engine or local"}, ErrorKind::kUnsupported);
  }
  if (backend && (*backend == "unfused" || *backend == "local")) {
    run.draft.set("stack.attention", "unfused", run.args.origin("attention-backend"));
  } else if (layers == "local" && !flash) {
    run.draft.set("stack.attention", "unfused", run.args.origin("transformer-impl"));
  } else if (layers == "local") {
    run.draft.assume("fused attention, of the legacy layers: " + run.args.origin("use-flash-attn") +
                     "; Megatron-Core's local layers have none (--set stack.attention=unfused)");
  }
}

}  // namespace

void translate_megatron_plan(MegatronRun& run) {
  take_degrees(run);
  take_batch_sizes(run);
  take_sharding(run);
  take_recompute(run);
  take_overlap(run);
  take_context(run);
  take_expert_parallelism(run);
  take_stack(run);
  take_attention(run);
  if (const auto group = run.args.integer("microbatch-group-size-per-virtual-pipeline-stage")) {
    run.draft.set("plan.microbatch_group", *group, run.args.origin("microbatch-group-size-per-virtual-pipeline-stage"));
  }
  if (run.args.on("use-tp-pp-dp-mapping")) {
    run.draft.set("plan.rank_order", "tp-cp-ep-pp-dp", run.args.origin("use-tp-pp-dp-mapping"));
  }
}

}  // namespace stepcast::imports
