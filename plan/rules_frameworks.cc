// Rules that one framework has and another has not, and what it warns of. What a row of the table (plan/frameworks)
// can say is judged from the row; the rest names its framework.
//
// Sources: Megatron-LM's validate_args; torch.distributed.pipelining (Interleaved1F1B) and torchtitan's parallel_dims;
// nanotron's pipeline engines; DeepSpeed's PipelineEngine and AutoTP.
#include <algorithm>
#include <utility>

#include "config/text.h"
#include "plan/rule_context.h"

namespace stepcast::plan {
namespace {

bool is(const RuleContext& c, Framework framework) { return c.scenario.framework == framework; }

void check_positions(RuleContext& c) {
  const std::int64_t sequence = c.scenario.training.sequence_length;
  const std::int64_t positions = c.scenario.model.max_positions;
  if (positions <= 0 || sequence <= positions) return;
  const std::string values =
      "sequence_length " + text_of(sequence) + " is above max_position_embeddings " + text_of(positions);
  if (c.preset.bounds_positions || c.scenario.model.positions == models::PositionKind::kLearned) {
    c.violate("training.sequence_length", values, {"sequence_length of at most " + text_of(positions)});
  } else {
    c.warn(values);
  }
}

// "0 or 1" of "01".
std::string stages_text(std::string_view stages) {
  std::vector<std::string> words;
  for (const char stage : stages) words.emplace_back(1, stage);
  return config::join(words, " or ");
}

void check_stage(RuleContext& c) {
  const std::string zero = "zero " + text_of(c.plan.zero);
  const bool has = c.preset.zero_stages.find(static_cast<char>('0' + c.plan.zero)) != std::string_view::npos;
  if (!has && is(c, Framework::kMegatronCore)) {
    std::vector<std::string> help{"zero 1"};
    if (!c.shards_tied_embeddings()) help.push_back("framework: plain");
    c.violate("plan.zero", zero + " is megatron-fsdp", std::move(help), ErrorKind::kUnsupported);
    return;
  }
  if (!has) {
    c.violate("plan.zero", zero + " is no sharding it has", {"zero " + stages_text(c.preset.zero_stages)});
  } else if (c.shards_tied_embeddings()) {
    c.violate("plan.zero", "zero 3 with tied embeddings and dp * cp = " + text_of(c.plan.replicas()),
              {"zero 0, 1 or 2", "model.tie_word_embeddings: false", "dp 1 and cp 1"}, ErrorKind::kUnsupported);
  }
}

// DeepSpeed's pipeline accumulates whole gradients over its microbatches, its ZeRO-2 and -3 reduce those of every one;
// AutoTP splits the linear layers that ZeRO-3 would shard.
void check_deepspeed(RuleContext& c) {
  if (!is(c, Framework::kDeepSpeed)) return;
  const std::string zero = "zero " + text_of(c.plan.zero);
  if (c.plan.zero >= 2 && c.plan.pp > 1) {
    c.violate("plan.zero", zero + " is incompatible with pipeline parallelism: pp is " + text_of(c.plan.pp),
              {"zero 0 or 1", "pp 1"});
  }
  if (c.plan.zero == 3 && c.plan.tp > 1) {
    c.violate("plan.zero",
              zero + " with tensor parallelism: AutoTP goes with zero 0 to 2, and tp is " + text_of(c.plan.tp),
              {c.plan.pp > 1 ? "zero 0 or 1" : "zero 0, 1 or 2", "tp 1"});
  }
  // DeepSpeedEngine.no_sync asserts it.
  if (c.plan.zero == 3 && c.plan.fsdp.gradient_sync == GradientSync::kLastMicrobatch && c.plan.pp == 1) {
    c.violate("plan.fsdp.gradient_sync", "gradient_sync last_microbatch: partitioned gradients are reduced every time",
              {"gradient_sync: every_microbatch"});
  }
}

// No flag of torchtitan's chooses: pipeline stages reduce once a step, its own accumulation every time.
void check_gradient_sync(RuleContext& c) {
  if (!is(c, Framework::kTorchtitan) || c.plan.zero != 3) return;
  const GradientSync sync = c.plan.fsdp.gradient_sync;
  if ((sync == GradientSync::kLastMicrobatch) == (c.plan.pp > 1)) return;
  c.warn("no flag gives plan.fsdp.gradient_sync " + std::string(to_string(sync)) + " with pp " + text_of(c.plan.pp) +
         "; simulated as written");
}

// Megatron-LM's validate_args asserts these.
void check_megatron(RuleContext& c) {
  if (!is(c, Framework::kMegatronCore)) return;
  if (c.plan.overlap_param_gather && c.plan.zero == 0) {
    c.violate("plan.overlap.param_gather", "--overlap-param-gather needs the distributed optimizer; zero is 0",
              {"zero 1", "param_gather: false"});
  }
  if (c.plan.overlap_param_gather && !c.plan.overlap_grad_reduce) {
    c.violate("plan.overlap.param_gather", "--overlap-param-gather needs --overlap-grad-reduce",
              {"grad_reduce: true", "param_gather: false"});
  }
  if (c.scenario.training.moments != program::DType::kF32 && c.plan.zero == 0) {
    c.violate("training.optimizer.moments",
              "moments below fp32 are of the precision-aware optimizer, which is a distributed one; zero is 0",
              {"zero 1", "moments: fp32"});
  }
}

void check_schedules(RuleContext& c) {
  const std::string name(c.preset.name);
  if (c.plan.vp > 1 && !c.preset.interleaved) {
    c.violate("plan.vp", "vp " + text_of(c.plan.vp) + ": " + name + " has no virtual stages",
              {"vp 1", "framework: megatron-core or torchtitan"});
  }
  if (c.plan.schedule == ScheduleKind::kGpipe && !c.preset.gpipe) {
    c.warn((is(c, Framework::kMegatronCore) ? "Megatron-Core" : "DeepSpeed") +
           std::string(" has no GPipe schedule; simulated as written"));
  }
}

// nanotron's 1F1B engine fills the pipeline with pp - 1 microbatches before it drains any.
void check_accumulation(RuleContext& c) {
  const auto microbatches = c.whole_microbatches();
  if (!is(c, Framework::kNanotron) || c.plan.schedule != ScheduleKind::k1F1B || !microbatches) return;
  const std::int64_t least = c.plan.pp - 1;
  if (*microbatches >= least) return;
  c.violate(
      "training.global_batch_size",
      "batch_accumulation_per_replica = global_batch_size / (micro_batch_size * dp) = " + text_of(*microbatches) +
          " is below pp - 1 = " + text_of(least) + ": 1f1b needs that many microbatches",
      {"global_batch_size of at least " + text_of(least * c.plan.micro_batch_size * c.plan.dp), "schedule: gpipe"});
}

// torch's Interleaved1F1B runs max(1, M / pp) rounds and raises where they are not of equal size.
void check_rounds(RuleContext& c) {
  const auto microbatches = c.whole_microbatches();
  if (!c.preset.even_rounds || c.plan.schedule != ScheduleKind::kInterleaved1F1B || !microbatches) return;
  const std::int64_t rounds = std::max<std::int64_t>(1, *microbatches / c.plan.pp);
  if (*microbatches % rounds == 0) return;
  const std::int64_t step = c.plan.micro_batch_size * c.plan.dp;
  const std::int64_t below = *microbatches / c.plan.pp * c.plan.pp;
  c.violate("training.global_batch_size",
            text_of(*microbatches) + " microbatches are not equal parts of the " + text_of(rounds) +
                " rounds (microbatches / pp = " + text_of(*microbatches) + " / " + text_of(c.plan.pp) +
                ") of interleaved_1f1b",
            {"global_batch_size " + text_of(below * step) + " or " + text_of((below + c.plan.pp) * step) +
             ": a multiple of pp microbatches"});
}

void check_sequence_split(RuleContext& c) {
  if (c.plan.cp == 1) return;
  const std::string comm(to_string(c.plan.cp_comm));
  if (!c.has_cp_comm(c.plan.cp_comm)) {
    const bool ulysses = is(c, Framework::kDeepSpeed);
    c.violate("plan.cp_comm_type",
              "cp_comm_type " + comm + ": " +
                  (ulysses ? "its sequences are split by all-to-all (Ulysses) only" : "it has none by all-to-all"),
              {ulysses ? "cp_comm_type a2a" : "cp_comm_type p2p or allgather"});
  }
  // Megatron-DeepSpeed's initialize_model_parallel asserts it.
  if (is(c, Framework::kDeepSpeed) && (c.plan.tp > 1 || c.plan.pp > 1)) {
    c.violate("plan.cp",
              "cp " + text_of(c.plan.cp) + ": its sequence parallelism does not work with tensor or pipeline " +
                  "parallelism, and tp is " + text_of(c.plan.tp) + ", pp " + text_of(c.plan.pp),
              {"tp 1 and pp 1", "cp 1", "framework: megatron-core"});
  }
}

// With one hardware queue kernels start in the order they are issued: Megatron-LM needs that before Blackwell, so that
// a collective starts before the matmul it runs beside; FSDP's gathers would wait behind the matmuls it is to hide in.
void check_connections(RuleContext& c) {
  if (!c.scenario.cuda_connections) return;
  const std::int64_t queues = *c.scenario.cuda_connections;
  const std::string given = "CUDA_DEVICE_MAX_CONNECTIONS is " + text_of(queues);
  if (is(c, Framework::kMegatronCore) && queues != 1 && (c.plan.tp > 1 || c.plan.cp > 1)) {
    c.warn(given + ": with tp or cp above 1 Megatron-LM asks for 1 on devices before Blackwell");
  }
  if (c.plan.zero == 3 && queues == 1) {
    c.warn(given + ": gathers of parameters wait behind the kernels issued before them; simulated as if they did not");
  }
}

// The modules of selective recompute, in the scenario's words.
std::vector<std::string> modules_of(const Recompute& recompute) {
  std::vector<std::string> modules;
  if (recompute.core_attn) modules.emplace_back("core_attn");
  if (recompute.layernorm) modules.emplace_back("layernorm");
  if (recompute.mlp_act) modules.emplace_back("mlp_act");
  if (recompute.mlp) modules.emplace_back("mlp");
  return modules;
}

// What a framework has no flag for runs here and is only told.
void check_recompute(RuleContext& c) {
  const Recompute& recompute = c.plan.recompute;
  if (recompute.kind == RecomputeKind::kSelective) {
    for (const std::string& module : modules_of(recompute)) {
      if (c.preset.recompute_modules.find(" " + module + " ") != std::string_view::npos) continue;
      c.warn("no flag recomputes " + module + " alone" +
             (is(c, Framework::kMegatronCore) ? " (--recompute-modules has core_attn, layernorm, mlp)" : ""));
    }
  }
  if (recompute.kind != RecomputeKind::kFull) return;
  const bool blocks = recompute.together > 1 || recompute.first > 0;
  if (blocks && !c.preset.recomputes_blocks)
    c.warn("no flag recomputes several layers at once, or the first ones only");
  if (recompute.every > 1 && !c.preset.selects_layers) c.warn("no flag recomputes each n-th layer only");
  if (recompute.together > 1 && c.plan.zero == 3) {
    c.violate("plan.recompute.num_layers",
              "num_layers " + text_of(recompute.together) +
                  " of method uniform with zero 3: the layers' parameters "
                  "are gathered one by one",
              {"num_layers 1", "zero 0 or 1"}, ErrorKind::kUnsupported);
  }
}

}  // namespace

void check_framework_rules(RuleContext& c) {
  check_positions(c);
  check_stage(c);
  check_deepspeed(c);
  check_gradient_sync(c);
  check_megatron(c);
  check_schedules(c);
  check_accumulation(c);
  check_rounds(c);
  check_sequence_split(c);
  check_connections(c);
  check_recompute(c);
}

}  // namespace stepcast::plan
