// The plan of a scenario: every degree and choice with its default. What depends on more than one value (dp, layout,
// sequence parallelism) is derived here; whether the values fit together is for plan/rules.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/quantity.h"
#include "config/text.h"
#include "plan/frameworks.h"
#include "plan/layout.h"
#include "plan/rules.h"
#include "plan/scenario_draft.h"

namespace stepcast::plan {
namespace {

std::string precision_word(program::DType type) {
  return type == program::DType::kF32 ? "fp32" : type == program::DType::kF16 ? "fp16" : "bf16";
}

class PlanResolver {
 public:
  explicit PlanResolver(ScenarioDraft& draft)
      : draft_(draft),
        given_(draft.message.plan()),
        scenario_(draft.read.scenario),
        plan_(draft.read.scenario.plan),
        preset_(preset_of(scenario_.framework)),
        default_(std::string(preset_.name) + " default") {}

  void run() {
    resolve_gpus();
    plan_.tp = degree("tp", given_.has_tp(), given_.tp());
    resolve_context();
    plan_.pp = degree("pp", given_.has_pp(), given_.pp());
    draft_.record("plan.ep", "1", "default");
    resolve_layout(draft_);
    resolve_dp();
    resolve_sharding();
    resolve_parameters();
    plan_.micro_batch_size = given_.has_micro_batch_size() ? given_.micro_batch_size() : 1;
    draft_.record("plan.micro_batch_size", std::to_string(plan_.micro_batch_size), "default");
    resolve_schedule();
    resolve_recompute(draft_);
    resolve_communication();
    resolve_vocabulary();
  }

 private:
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
    plan_.cp_comm = preset_.cp_comm;
    if (given_.has_cp_comm_type()) {
      plan_.cp_comm = given_.cp_comm_type() == "allgather" ? ContextComm::kAllGather
                      : given_.cp_comm_type() == "a2a"     ? ContextComm::kAllToAll
                                                           : ContextComm::kP2p;
    }
    if (plan_.cp == 1) {
      warn_without_effect("plan.cp_comm_type", "cp 1");
    } else {
      draft_.record("plan.cp_comm_type", std::string(to_string(plan_.cp_comm)), default_);
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

  void resolve_dp() {
    const std::int64_t model_ranks = std::int64_t{plan_.tp} * plan_.cp * plan_.pp;
    const std::int64_t quotient = scenario_.gpus % model_ranks == 0 ? scenario_.gpus / model_ranks : 0;
    plan_.dp = static_cast<std::int32_t>(given_.has_dp() ? given_.dp() : quotient);
    draft_.record("plan.dp", plan_.dp == 0 ? "-" : std::to_string(plan_.dp), "derived: gpus / (tp * cp * pp)");
  }

  void resolve_sharding() {
    const bool alone = preset_.zero_needs_replicas && plan_.replicas() <= 1;
    plan_.zero = given_.has_zero() ? static_cast<std::int32_t>(config::parse_integer(given_.zero()).value_or(0))
                                   : (alone ? 0 : preset_.zero);
    draft_.record("plan.zero", std::to_string(plan_.zero), default_);
    resolve_shard_groups(draft_);
    const std::string sequence_origin = plan_.tp == 1               ? "derived: tp = 1"
                                        : preset_.sequence_parallel ? "derived: tp > 1"
                                                                    : default_;
    const bool splits = preset_.sequence_parallel && plan_.tp > 1;
    plan_.sequence_parallel = given_.has_sequence_parallel() ? given_.sequence_parallel() : splits;
    if (plan_.sequence_parallel && plan_.tp == 1) {
      draft_.read.warnings.push_back("plan.sequence_parallel is off: it needs tp > 1");
      plan_.sequence_parallel = false;
    }
    draft_.record("plan.sequence_parallel", bool_text(plan_.sequence_parallel), sequence_origin);
    resolve_fsdp();
  }

  // FSDP's mixed precision: fp32 shards are what the optimizer updates, and are cast as they are gathered.
  void resolve_parameters() {
    const schema::Training::Precision& given = draft_.message.training().precision();
    const std::string compute = precision_word(scenario_.training.compute);
    const bool casts = preset_.fp32_parameters && plan_.zero == 3;
    const std::string params = given.has_params() ? given.params() : casts ? "fp32" : compute;
    draft_.record("training.precision.params", params, casts ? default_ : "derived: as compute");
    scenario_.training.fp32_shards = params == "fp32" && compute == "bf16" && plan_.zero == 3;
    if (scenario_.training.fp32_shards) say_no_master();
    resolve_reduction();
    if (params == compute || scenario_.training.fp32_shards) return;
    draft_.violate("training.precision.params", "parameters in " + params + " with compute in " + compute,
                   {"supported: params: " + compute, "zero 3, where fp32 shards are cast as they are gathered"},
                   ErrorKind::kUnsupported);
  }

  // Precision is resolved before the sharding that makes the parameters their own master copy.
  void say_no_master() {
    for (ConfigValue& value : draft_.read.values) {
      if (value.field != "training.optimizer.master" || draft_.given(value.field)) continue;
      value.value = "none";
      value.origin = "derived: parameters are fp32";
    }
  }

  // Gradients are summed in the type they are reduced in; those of fp32 shards in fp32, whatever they are reduced in.
  void resolve_reduction() {
    const schema::Training::Precision& given = draft_.message.training().precision();
    const std::string grads = precision_word(scenario_.training.gradients);
    const std::string reduce = given.has_grad_reduce() ? given.grad_reduce() : grads;
    if (scenario_.training.fp32_shards && grads == "bf16") {
      draft_.violate("training.precision.grads", "gradients in bf16 of parameters in fp32, which sums them in fp32",
                     {"grads: fp32; grad_reduce: bf16 reduces them in bf16"});
      return;
    }
    if (scenario_.training.fp32_shards && reduce == "bf16") {
      scenario_.training.gradients = program::DType::kBf16;
    } else if (reduce != grads) {
      draft_.violate("training.precision.grad_reduce", "gradients in " + grads + " reduced in " + reduce,
                     {"supported: grad_reduce: " + grads}, ErrorKind::kUnsupported);
    }
  }

  void resolve_fsdp() {
    const schema::Plan::Fsdp& fsdp = given_.fsdp();
    if (fsdp.has_prefetch()) plan_.fsdp.prefetch = static_cast<std::int32_t>(fsdp.prefetch());
    const bool automatic = !fsdp.has_reshard_after_forward() || fsdp.reshard_after_forward() == "auto";
    // torchtitan's policy: a pipeline would gather again for every microbatch, so it keeps the parameters.
    plan_.fsdp.reshard_after_forward = automatic ? plan_.pp == 1 : fsdp.reshard_after_forward() == "true";
    // torch.distributed.pipelining turns the reduction off for all but the last microbatch (set_requires_gradient_sync
    // in stage.py); torchtitan's own accumulation, without a pipeline, leaves it on (its issue 292).
    const bool chosen = fsdp.has_gradient_sync() && fsdp.gradient_sync() != "auto";
    const bool last = chosen ? fsdp.gradient_sync() == "last_microbatch" : plan_.pp > 1;
    plan_.fsdp.gradient_sync = last ? GradientSync::kLastMicrobatch : GradientSync::kEveryMicrobatch;
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
    show("gradient_sync", std::string(to_string(plan_.fsdp.gradient_sync)),
         plan_.pp == 1 ? "derived: auto is every_microbatch with pp = 1"
                       : "derived: auto is last_microbatch with pp > 1",
         true);
    if (sharded && last) resolve_kept_gradients();
  }

  // FSDP2 adds the gradient of a backward pass, in the type it was computed in, to those it keeps in the type they are
  // reduced in: a kernel of its own (FSDPParam.accumulate_unsharded_grad_if_needed).
  void resolve_kept_gradients() {
    const char* field = "stack.gradient_accumulation";
    if (plan_.shards() == 1 || draft_.given(field)) return;
    scenario_.accumulation = GradientAccumulation::kSeparate;
    draft_.record(field, "separate", "derived: plan.fsdp.gradient_sync is last_microbatch");
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
    const std::int64_t group = given_.has_microbatch_group() ? given_.microbatch_group() : default_group();
    plan_.microbatch_group = static_cast<std::int32_t>(group);
    if (plan_.schedule != ScheduleKind::kInterleaved1F1B) {
      warn_without_effect("plan.microbatch_group", "schedule " + std::string(to_string(plan_.schedule)));
      if (!given_.has_microbatch_group()) return;
    }
    draft_.record("plan.microbatch_group", std::to_string(group),
                  preset_.even_rounds ? "derived: microbatches / max(1, microbatches / pp)" : "derived: pp");
  }

  // Groups of pp, or equal ones of at least pp where the framework makes rounds; pp where there is no batch to divide.
  std::int64_t default_group() const {
    const std::int64_t step = plan_.micro_batch_size * plan_.dp;
    if (!preset_.even_rounds || step < 1 || scenario_.training.global_batch_size % step != 0) return plan_.pp;
    const std::int64_t microbatches = scenario_.training.global_batch_size / step;
    if (microbatches < plan_.pp) return plan_.pp;
    return microbatches / (microbatches / plan_.pp);
  }

  void resolve_communication() {
    plan_.overlap_grad_reduce =
        given_.overlap().has_grad_reduce() ? given_.overlap().grad_reduce() : preset_.overlap_grad_reduce;
    draft_.record("plan.overlap.grad_reduce", bool_text(plan_.overlap_grad_reduce),
                  preset_.overlap_is_assumed ? "stepcast default" : default_);
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
    if (given_.overlap().has_tp_comm()) {
      plan_.overlap_tp_comm = given_.overlap().tp_comm();
      draft_.record("plan.overlap.tp_comm", bool_text(plan_.overlap_tp_comm), "");
    }
    resolve_user_buffers(draft_);
    if (!given_.overlap().has_tp_input_grad()) return;
    plan_.overlap_tp_input_grad = given_.overlap().tp_input_grad();
    draft_.record("plan.overlap.tp_input_grad", bool_text(plan_.overlap_tp_input_grad), "");
    if (plan_.tp == 1) warn_without_effect("plan.overlap.tp_input_grad", "tp 1");
  }

  void resolve_bucket() {
    constexpr std::int64_t kMost = std::int64_t{1} << 48;
    const std::int64_t element = program::size_of(scenario_.training.gradients);
    if (!given_.has_bucket()) {
      if (preset_.bucket_elements == 0) {
        plan_.bucket_elements = preset_.bucket_bytes / element;
        plan_.first_bucket_elements = preset_.first_bucket_bytes / element;
      } else if (plan_.overlap_grad_reduce || !preset_.bucketed_with_overlap_only) {
        plan_.bucket_elements =
            std::max(preset_.bucket_elements, preset_.bucket_elements_per_replica * plan_.replicas());
      }
    } else if (config::looks_like_integer(given_.bucket())) {
      const auto elements = config::parse_integer(given_.bucket());
      if (!elements || *elements < 1 || *elements > kMost) {
        draft_.refuse("plan.bucket", given_.bucket() + " elements are out of range",
                      {"allowed: at least 1, at most 2^48"});
      }
      plan_.bucket_elements = elements.value_or(0);
    } else if (const QuantityResult count = parse_quantity(given_.bucket(), Dimension::kElements); count.ok()) {
      if (count.value < 1 || count.value > kMost || count.value != std::floor(count.value)) {
        draft_.refuse("plan.bucket", config::printable(given_.bucket()) + " are no bucket",
                      {"a whole number of elements: at least 1, at most 2^48"});
      }
      plan_.bucket_elements = static_cast<std::int64_t>(std::min<double>(count.value, kMost));
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

  // Megatron-Core and nanotron pad to a multiple of vocab_pad_to * tp (make_vocab_size_divisible_by).
  void resolve_vocabulary() {
    const schema::Model& model = draft_.message.model();
    const std::int64_t pad = model.has_vocab_pad_to() ? model.vocab_pad_to() : preset_.vocab_pad_to;
    const std::int64_t multiple = preset_.vocab_pad_by_tp ? pad * plan_.tp : pad;
    if (multiple > models::kMaxSize) {
      draft_.violate("model.vocab_pad_to", "vocab_pad_to * tp = " + std::to_string(pad) + " * " +
                                               std::to_string(plan_.tp) + " = " + std::to_string(multiple) +
                                               " is more than 2^31");
    } else {
      scenario_.model.padded_vocab = models::padded_vocab(scenario_.model.vocab, multiple);
    }
    draft_.record("model.vocab_pad_to", std::to_string(pad), default_);
    draft_.record("model.padded_vocab", std::to_string(scenario_.model.padded_vocab),
                  preset_.vocab_pad_by_tp ? "derived: vocab_pad_to * tp" : "derived: vocab_pad_to");
  }

  ScenarioDraft& draft_;
  const schema::Plan& given_;
  Scenario& scenario_;
  Plan& plan_;
  const FrameworkPreset& preset_;
  std::string default_;
};

}  // namespace

void resolve_plan(ScenarioDraft& draft) { PlanResolver(draft).run(); }

}  // namespace stepcast::plan
