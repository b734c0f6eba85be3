// The plan of a scenario: every degree and choice with its default. What depends on more than one value (dp, layout,
// sequence parallelism) is derived here; whether the values fit together is for plan/rules.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/quantity.h"
#include "config/text.h"
#include "plan/layout.h"
#include "plan/rules.h"
#include "plan/scenario_draft.h"

namespace stepcast::plan {
namespace {

// PyTorch DDP's bucket_cap_mb and its first, small bucket, in bytes.
constexpr std::int64_t kDdpBucketBytes = std::int64_t{25} << 20;
constexpr std::int64_t kDdpFirstBucketBytes = std::int64_t{1} << 20;

std::string bool_text(bool value) { return value ? "true" : "false"; }

class PlanResolver {
 public:
  explicit PlanResolver(ScenarioDraft& draft)
      : draft_(draft),
        given_(draft.message.plan()),
        scenario_(draft.read.scenario),
        plan_(draft.read.scenario.plan),
        megatron_(scenario_.framework == Framework::kMegatronCore),
        default_(std::string(to_string(scenario_.framework)) + " default") {}

  void run() {
    resolve_gpus();
    plan_.tp = degree("tp", given_.has_tp(), given_.tp());
    resolve_context();
    plan_.pp = degree("pp", given_.has_pp(), given_.pp());
    draft_.record("plan.ep", "1", "default");
    resolve_layout();
    resolve_dp();
    resolve_sharding();
    plan_.micro_batch_size = given_.has_micro_batch_size() ? given_.micro_batch_size() : 1;
    draft_.record("plan.micro_batch_size", std::to_string(plan_.micro_batch_size), "default");
    resolve_schedule();
    resolve_recompute();
    resolve_communication();
    resolve_vocabulary();
  }

 private:
  void violate(std::string_view field, std::string message, std::vector<std::string> help = {},
               ErrorKind kind = ErrorKind::kInput) {
    draft_.read.violations.push_back({kind, std::move(message), draft_.locate(field), std::move(help)});
  }

  // A key the plan makes nothing of: told, so that nobody waits for its effect, and only to who gave it.
  void warn_without_effect(const std::string& field, const std::string& with) {
    if (draft_.given(field)) draft_.read.warnings.push_back(field + " has no effect with " + with);
  }

  std::int32_t degree(const std::string& name, bool has, std::int64_t value) {
    const auto result = static_cast<std::int32_t>(has ? value : 1);
    draft_.record("plan." + name, std::to_string(result), "default");
    return result;
  }

  void resolve_context() {
    plan_.cp = degree("cp", given_.has_cp(), given_.cp());
    if (given_.cp_comm_type() == "allgather") plan_.cp_comm = ContextComm::kAllGather;
    if (plan_.cp == 1) {
      warn_without_effect("plan.cp_comm_type", "cp 1");
    } else {
      draft_.record("plan.cp_comm_type", std::string(to_string(plan_.cp_comm)), "default");
      draft_.record("plan.cp_order", "zigzag", "default");
    }
  }

  void resolve_gpus() {
    const std::int64_t per_node = scenario_.cluster.node.devices;
    const bool has_gpus = draft_.message.has_gpus();
    scenario_.gpus = draft_.message.gpus();
    if (draft_.message.has_nodes()) {
      const std::int64_t by_nodes = draft_.message.nodes() * per_node;
      if (has_gpus && scenario_.gpus != by_nodes) {
        draft_.refuse("nodes",
                      std::to_string(draft_.message.nodes()) + " nodes of " + std::to_string(per_node) + " are " +
                          std::to_string(by_nodes) + " GPUs, gpus says " + std::to_string(scenario_.gpus),
                      {"give one of the two"});
      }
      constexpr std::int64_t kMostGpus = std::int64_t{1} << 24;
      if (by_nodes > kMostGpus) draft_.refuse("nodes", std::to_string(by_nodes) + " GPUs are more than 2^24");
      if (!has_gpus) scenario_.gpus = std::min(by_nodes, kMostGpus);
    } else if (!has_gpus) {
      draft_.refuse("gpus", "missing required field", {"give gpus, or nodes"});
    }
    draft_.record("gpus", std::to_string(scenario_.gpus), "derived: nodes * " + std::to_string(per_node));
    if (draft_.message.has_nodes()) draft_.record("nodes", std::to_string(draft_.message.nodes()), "");
  }

  // Sets the layout and, with it, vp: a layout given in full says how many virtual stages there are.
  void resolve_layout() {
    plan_.vp = static_cast<std::int32_t>(given_.has_vp() ? given_.vp() : 1);
    std::string vp_origin = "default";
    std::string layout_origin = "default";
    const std::int64_t layers = scenario_.model.layers;
    std::vector<std::string> items(given_.layout().begin(), given_.layout().end());
    const bool automatic = items.empty() ? !draft_.given("plan.layout") : items.size() == 1 && items.front() == "auto";
    if (automatic) {
      apply_layers_per_virtual_stage(layers, vp_origin);
      const std::int64_t stages = std::int64_t{plan_.pp} * plan_.vp;
      // More stages than items: the rules say so, with the values.
      if (stages > layers + 2) {
        violate(given_.has_vp() ? "plan.vp" : "plan.pp",
                std::to_string(stages) + " virtual stages (pp * vp) for " + std::to_string(layers) +
                    " layers: more than the layers, embedding and loss counted",
                {"pp * vp of at most " + std::to_string(layers + 2)});
      } else {
        const std::int64_t stage = std::int64_t{plan_.tp} * plan_.cp;  // ranks of one
        const std::int64_t ranks = scenario_.gpus % stage == 0 ? scenario_.gpus / stage : 0;
        accept_layout(auto_layout(layers, plan_.pp, plan_.vp, ranks), "plan.pp");
        layout_origin = layers % stages == 0 ? "derived: layers / (pp * vp)"
                                             : "derived: (layers + 2) / (pp * vp), embedding and loss counted";
      }
    } else {
      const bool text = items.size() == 1 && !config::looks_like_integer(items.front());
      accept_explicit(text ? parse_layout(items.front()) : list_layout(items), vp_origin);
    }
    draft_.record("plan.vp", std::to_string(plan_.vp), vp_origin);
    draft_.record("plan.layout", plan_.layout.empty() ? "-" : layout_text(plan_.layout), layout_origin);
    if (!given_.has_layers_per_virtual_stage()) return;
    draft_.record("plan.layers_per_virtual_stage", std::to_string(given_.layers_per_virtual_stage()), "");
  }

  void apply_layers_per_virtual_stage(std::int64_t layers, std::string& vp_origin) {
    if (!given_.has_layers_per_virtual_stage()) return;
    const std::int64_t per_stage = given_.layers_per_virtual_stage();
    const std::int64_t step = per_stage * plan_.pp;
    if (layers % step != 0) {
      violate("plan.layers_per_virtual_stage", std::to_string(layers) + " layers do not divide over pp " +
                                                   std::to_string(plan_.pp) + " in parts of " +
                                                   std::to_string(per_stage));
      return;
    }
    const std::int64_t vp = layers / step;
    if (given_.has_vp() && given_.vp() != vp) {
      violate("plan.layers_per_virtual_stage",
              "layers_per_virtual_stage " + std::to_string(per_stage) + " makes vp " + std::to_string(vp) +
                  ", vp says " + std::to_string(given_.vp()),
              {"give one of the two"});
    }
    plan_.vp = static_cast<std::int32_t>(vp);
    vp_origin = "derived: layers / (pp * layers_per_virtual_stage)";
  }

  void accept_explicit(const LayoutResult& result, std::string& vp_origin) {
    if (!result.ok()) {
      violate("plan.layout", result.problem, result.help, result.kind);
      return;
    }
    const auto stages = static_cast<std::int64_t>(result.layers.size());
    if (stages % plan_.pp != 0) {
      violate("plan.layout",
              "the layout has " + std::to_string(stages) + " stages, not a multiple of pp " + std::to_string(plan_.pp));
      return;
    }
    const std::int64_t vp = stages / plan_.pp;
    if (given_.has_vp() && given_.vp() != vp) {
      violate("plan.layout",
              "the layout has " + std::to_string(stages) + " stages, pp * vp is " + std::to_string(plan_.pp) + " * " +
                  std::to_string(plan_.vp) + " = " + std::to_string(std::int64_t{plan_.pp} * plan_.vp),
              {"leave vp out: the layout makes it " + std::to_string(vp)});
      return;
    }
    plan_.vp = static_cast<std::int32_t>(vp);
    vp_origin = "derived: stages of the layout / pp";
    std::int64_t sum = 0;
    for (const std::int64_t count : result.layers) sum += count;
    if (sum != scenario_.model.layers) {
      violate("plan.layout", "the layout places " + std::to_string(sum) + " layers, the model has " +
                                 std::to_string(scenario_.model.layers));
      return;
    }
    agree_with_layers_per_virtual_stage(result.layers);
    accept_layout(result, "plan.layout");
  }

  void agree_with_layers_per_virtual_stage(const std::vector<std::int64_t>& layers) {
    if (!given_.has_layers_per_virtual_stage()) return;
    const std::int64_t per_stage = given_.layers_per_virtual_stage();
    const auto other = std::find_if(layers.begin(), layers.end(), [&](std::int64_t n) { return n != per_stage; });
    if (other == layers.end()) return;
    violate("plan.layers_per_virtual_stage",
            "layers_per_virtual_stage is " + std::to_string(per_stage) + ", virtual stage " +
                std::to_string(other - layers.begin()) + " of the layout holds " + std::to_string(*other) + " layers",
            {"give one of the two"});
  }

  void accept_layout(const LayoutResult& result, std::string_view field) {
    if (result.ok()) {
      plan_.layout = stage_items(result.layers);
    } else {
      violate(field, result.problem, result.help, result.kind);
    }
  }

  void resolve_dp() {
    const std::int64_t model_ranks = std::int64_t{plan_.tp} * plan_.cp * plan_.pp;
    const std::int64_t quotient = scenario_.gpus % model_ranks == 0 ? scenario_.gpus / model_ranks : 0;
    plan_.dp = static_cast<std::int32_t>(given_.has_dp() ? given_.dp() : quotient);
    draft_.record("plan.dp", plan_.dp == 0 ? "-" : std::to_string(plan_.dp), "derived: gpus / (tp * cp * pp)");
  }

  void resolve_sharding() {
    plan_.zero = given_.has_zero() ? static_cast<std::int32_t>(config::parse_integer(given_.zero()).value_or(0))
                                   : (megatron_ ? 1 : 0);
    draft_.record("plan.zero", std::to_string(plan_.zero), default_);
    resolve_shard_groups(draft_);
    const std::string sequence_origin = plan_.tp > 1 ? "derived: tp > 1" : "derived: tp = 1";
    plan_.sequence_parallel = given_.has_sequence_parallel() ? given_.sequence_parallel() : plan_.tp > 1;
    if (plan_.sequence_parallel && plan_.tp == 1) {
      draft_.read.warnings.push_back("plan.sequence_parallel is off: it needs tp > 1");
      plan_.sequence_parallel = false;
    }
    draft_.record("plan.sequence_parallel", bool_text(plan_.sequence_parallel), sequence_origin);
    resolve_fsdp();
  }

  void resolve_fsdp() {
    const schema::Plan::Fsdp& fsdp = given_.fsdp();
    if (fsdp.has_prefetch()) plan_.fsdp.prefetch = static_cast<std::int32_t>(fsdp.prefetch());
    const bool automatic = !fsdp.has_reshard_after_forward() || fsdp.reshard_after_forward() == "auto";
    // torchtitan's policy: a pipeline would gather again for every microbatch, so it keeps the parameters.
    plan_.fsdp.reshard_after_forward = automatic ? plan_.pp == 1 : fsdp.reshard_after_forward() == "true";
    const bool sharded = plan_.zero == 3;
    const auto show = [&](const std::string& key, std::string value, const std::string& origin, bool always) {
      const std::string field = "plan.fsdp." + key;
      if (!sharded) warn_without_effect(field, "zero " + std::to_string(plan_.zero));
      if ((sharded && always) || draft_.given(field)) draft_.record(field, std::move(value), origin);
    };
    show("version", std::to_string(fsdp.version()), "", false);
    show("unit", fsdp.unit(), "", false);
    show("prefetch", std::to_string(plan_.fsdp.prefetch), "default", true);
    show("reshard_after_forward", bool_text(plan_.fsdp.reshard_after_forward),
         plan_.pp == 1 ? "derived: auto is true with pp = 1" : "derived: auto is false with pp > 1", true);
  }

  void resolve_schedule() {
    const std::string& text = given_.schedule();
    if (!given_.has_schedule()) {
      plan_.schedule = plan_.vp > 1 ? ScheduleKind::kInterleaved1F1B : ScheduleKind::k1F1B;
    } else {
      plan_.schedule = text == "gpipe"  ? ScheduleKind::kGpipe
                       : text == "1f1b" ? ScheduleKind::k1F1B
                                        : ScheduleKind::kInterleaved1F1B;
    }
    draft_.record("plan.schedule", std::string(to_string(plan_.schedule)),
                  plan_.vp > 1 ? "derived: vp > 1" : "derived: vp = 1");
    const std::int64_t group = given_.has_microbatch_group() ? given_.microbatch_group() : plan_.pp;
    plan_.microbatch_group = static_cast<std::int32_t>(group);
    if (plan_.schedule != ScheduleKind::kInterleaved1F1B) {
      warn_without_effect("plan.microbatch_group", "schedule " + std::string(to_string(plan_.schedule)));
      if (!given_.has_microbatch_group()) return;
    }
    draft_.record("plan.microbatch_group", std::to_string(group), "derived: pp");
  }

  void resolve_recompute() {
    const schema::Plan::Recompute& given = given_.recompute();
    Recompute& recompute = plan_.recompute;
    std::vector<std::string> modules(given.modules().begin(), given.modules().end());
    const std::string kind = given.has_granularity() ? given.granularity() : modules.empty() ? "none" : "selective";
    recompute.kind = kind == "full"        ? RecomputeKind::kFull
                     : kind == "selective" ? RecomputeKind::kSelective
                                           : RecomputeKind::kNone;
    draft_.record("plan.recompute.granularity", kind, modules.empty() ? "default" : "derived: modules are given");
    if (recompute.kind != RecomputeKind::kSelective) {
      if (!modules.empty()) {
        violate("plan.recompute.modules", "modules are recomputed by granularity selective, not " + kind,
                {"granularity: selective, or no modules"});
      }
      return;
    }
    if (modules.empty()) modules = {"core_attn"};  // Megatron-Core's default
    for (const std::string& module : modules) {
      recompute.layernorm = recompute.layernorm || module == "layernorm";
      recompute.mlp_act = recompute.mlp_act || module == "mlp_act";
      recompute.core_attn = recompute.core_attn || module == "core_attn";
    }
    draft_.record("plan.recompute.modules", "[" + config::join(modules) + "]", "default");
  }

  void resolve_communication() {
    plan_.overlap_grad_reduce = !given_.overlap().has_grad_reduce() || given_.overlap().grad_reduce();
    // Megatron-Core overlaps only with --overlap-grad-reduce; here that is the default.
    draft_.record("plan.overlap.grad_reduce", bool_text(plan_.overlap_grad_reduce),
                  megatron_ ? "stepcast default" : default_);
    resolve_tp_overlap();
    resolve_bucket();
    plan_.overlap_param_gather = given_.overlap().param_gather();
    draft_.record("plan.overlap.param_gather", bool_text(plan_.overlap_param_gather), "default");
    if (plan_.overlap_param_gather && (plan_.zero == 0 || plan_.zero == 3 || plan_.shards() == 1)) {
      warn_without_effect("plan.overlap.param_gather",
                          plan_.replicas() == 1 ? "dp 1" : "zero " + std::to_string(plan_.zero));
    }
    if (plan_.replicas() == 1 || plan_.zero == 3) {
      // Gathered parameters are reduced unit by unit, and one replica reduces nothing.
      const std::string with = plan_.replicas() == 1 ? "dp 1" : "zero 3";
      warn_without_effect("plan.overlap.grad_reduce", with);
      warn_without_effect("plan.bucket", with);
    }
    if (given_.has_rank_order()) plan_.rank_order = given_.rank_order();
    draft_.record("plan.rank_order", config::printable(plan_.rank_order), "default");
  }

  void resolve_tp_overlap() {
    if (!given_.overlap().has_tp_input_grad()) return;
    plan_.overlap_tp_input_grad = given_.overlap().tp_input_grad();
    draft_.record("plan.overlap.tp_input_grad", bool_text(plan_.overlap_tp_input_grad), "");
    if (plan_.tp == 1) warn_without_effect("plan.overlap.tp_input_grad", "tp 1");
  }

  void resolve_bucket() {
    const std::int64_t element = program::size_of(scenario_.training.gradients);
    if (!given_.has_bucket()) {
      if (!megatron_) {
        plan_.bucket_elements = kDdpBucketBytes / element;
        plan_.first_bucket_elements = kDdpFirstBucketBytes / element;
      } else if (plan_.overlap_grad_reduce) {
        plan_.bucket_elements = std::max<std::int64_t>(40'000'000, std::int64_t{1'000'000} * plan_.replicas());
      }
    } else if (config::looks_like_integer(given_.bucket())) {
      const auto elements = config::parse_integer(given_.bucket());
      constexpr std::int64_t kMost = std::int64_t{1} << 48;
      if (!elements || *elements < 1 || *elements > kMost) {
        draft_.refuse("plan.bucket", given_.bucket() + " elements are out of range",
                      {"allowed: at least 1, at most 2^48"});
      }
      plan_.bucket_elements = elements.value_or(0);
    } else {
      const QuantityResult size = parse_quantity(given_.bucket(), Dimension::kBytes);
      constexpr double kMostBytes = 1125899906842624.0;  // 2^50
      const double bytes = size.ok() && size.value > 0 ? std::min(size.value, kMostBytes) : 0;
      const auto elements = static_cast<std::int64_t>(bytes) / element;
      if (!size.ok()) {
        draft_.refuse("plan.bucket", config::printable(size.problem, 120),
                      {"a number of elements, or a size such as 25 MiB"});
      } else if (size.value > kMostBytes) {
        draft_.refuse("plan.bucket", config::printable(given_.bucket()) + " is more than 2^50 bytes");
      } else if (elements < 1) {
        draft_.refuse("plan.bucket", config::printable(given_.bucket()) + " holds no gradient element");
      }
      plan_.bucket_elements = elements;
    }
    const std::string first =
        plan_.first_bucket_elements > 0 ? ", the first " + std::to_string(plan_.first_bucket_elements) : std::string();
    draft_.record("plan.bucket",
                  plan_.bucket_elements == 0 ? "one" : std::to_string(plan_.bucket_elements) + " elements" + first,
                  default_);
  }

  // Megatron-Core pads to a multiple of vocab_pad_to * tp (make_vocab_size_divisible_by); plain pads to vocab_pad_to.
  void resolve_vocabulary() {
    const schema::Model& model = draft_.message.model();
    const std::int64_t pad = model.has_vocab_pad_to() ? model.vocab_pad_to() : megatron_ ? 128 : 1;
    const std::int64_t multiple = megatron_ ? pad * plan_.tp : pad;
    if (multiple > models::kMaxSize) {
      violate("model.vocab_pad_to", "vocab_pad_to * tp = " + std::to_string(pad) + " * " + std::to_string(plan_.tp) +
                                        " = " + std::to_string(multiple) + " is more than 2^31");
    } else {
      scenario_.model.padded_vocab = models::padded_vocab(scenario_.model.vocab, multiple);
    }
    draft_.record("model.vocab_pad_to", std::to_string(pad), default_);
    draft_.record("model.padded_vocab", std::to_string(scenario_.model.padded_vocab),
                  megatron_ ? "derived: vocab_pad_to * tp" : "derived: vocab_pad_to");
  }

  ScenarioDraft& draft_;
  const schema::Plan& given_;
  Scenario& scenario_;
  Plan& plan_;
  bool megatron_;
  std::string default_;
};

}  // namespace

void resolve_plan(ScenarioDraft& draft) { PlanResolver(draft).run(); }

}  // namespace stepcast::plan
