// One function per group of rules. Divisors are listed because "does not divide" helps only with what does.
//
// Sizes are bounded so that every byte count of a later step fits 64-bit integers: see check_sizes.
#include "plan/rules.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "config/text.h"
#include "plan/cluster_reader.h"
#include "plan/lowering.h"
#include "plan/model_support.h"
#include "topology/mesh.h"

namespace stepcast::plan {
namespace {

std::string text_of(std::int64_t value) { return std::to_string(value); }

// The divisors of n up to `limit`, at most `count` of them.
std::vector<std::int64_t> divisors(std::int64_t n, std::int64_t limit, std::size_t count = 12) {
  std::vector<std::int64_t> result;
  for (std::int64_t d = 1; d <= std::min<std::int64_t>(limit, 4096) && result.size() < count; ++d) {
    if (n % d == 0) result.push_back(d);
  }
  return result;
}

// Ranks that together hold every parameter once for each share of a sequence.
std::int64_t model_ranks_of(const Plan& plan) { return std::int64_t{plan.tp} * plan.cp * plan.pp; }

std::string list_of(const std::vector<std::int64_t>& values) {
  std::vector<std::string> words;
  for (const std::int64_t value : values) words.push_back(text_of(value));
  return config::join(words);
}

class RuleChecker {
 public:
  RuleChecker(const Scenario& scenario, const FieldLocator& locate)
      : s_(scenario),
        plan_(scenario.plan),
        locate_(locate),
        megatron_(scenario.framework == Framework::kMegatronCore),
        label_(std::string(to_string(scenario.framework)) + ": ") {}

  RuleReport run() {
    check_world();
    check_devices();
    check_dp();
    check_sizes();
    check_tensor_parallel();
    for (Problem& p : unsupported_settings(s_)) violate(p.where.field, p.message, std::move(p.help), p.kind);
    check_context_parallel();
    check_sequence_parallel();
    check_batch();
    check_pipeline();
    check_interleaving();
    check_framework();
    return std::move(report_);
  }

 private:
  void violate(std::string_view field, std::string message, std::vector<std::string> help = {},
               ErrorKind kind = ErrorKind::kInput) {
    report_.violations.push_back({kind, label_ + std::move(message), locate_(field), std::move(help)});
  }
  void warn(std::string message) { report_.warnings.push_back(label_ + std::move(message)); }

  void check_world() {
    const std::int64_t model_ranks = model_ranks_of(plan_);
    const bool context = plan_.cp > 1;
    const std::int64_t stage_ranks = std::int64_t{plan_.tp} * plan_.cp;
    const std::string product = std::string("tp * ") + (context ? "cp * " : "") + "pp = " + text_of(plan_.tp) + " * " +
                                (context ? text_of(plan_.cp) + " * " : "") + text_of(plan_.pp) + " = " +
                                text_of(model_ranks);
    if (s_.gpus % model_ranks != 0) {
      std::vector<std::string> help;
      if (s_.gpus % stage_ranks == 0) {
        help.push_back("pp " + list_of(divisors(s_.gpus / stage_ranks, s_.gpus)) + " with tp " + text_of(plan_.tp) +
                       (context ? " and cp " + text_of(plan_.cp) : ""));
      } else if (context && s_.gpus % plan_.tp == 0) {
        help.push_back("cp " + list_of(divisors(s_.gpus / plan_.tp, s_.gpus)) + " with tp " + text_of(plan_.tp));
      } else {
        help.push_back("tp " + list_of(divisors(s_.gpus, s_.gpus)) + " divide " + text_of(s_.gpus) + " gpus");
      }
      const std::int64_t below = s_.gpus / model_ranks * model_ranks;
      std::vector<std::string> counts;
      for (const std::int64_t count : {below, below + model_ranks}) {
        if (admits(count)) counts.push_back(text_of(count));
      }
      if (!counts.empty()) help.push_back("gpus " + config::join(counts, " or "));
      violate("gpus", "gpus " + text_of(s_.gpus) + " do not divide by " + product, std::move(help));
    }
    try {
      // Degrees of 2 stand for any: only the words of the order are judged here.
      const auto two = [](std::int32_t degree) { return degree > 1 ? 2 : 1; };
      const std::vector<topology::Axis> axes{
          {"tp", two(plan_.tp)}, {"cp", two(plan_.cp)}, {"ep", 1}, {"dp", two(plan_.dp)}, {"pp", two(plan_.pp)}};
      topology::make_mesh(plan_.rank_order, axes);
    } catch (const Error& fault) {
      for (const Problem& problem : fault.problems()) violate("plan.rank_order", problem.message, problem.help);
    }
  }

  // Launchers start the same number of ranks on every node of a job, so that only a single node may be filled in part.
  void check_devices() {
    const std::int64_t per_node = s_.cluster.node.devices;
    const std::int64_t most = most_devices(s_.cluster);
    if (s_.gpus > per_node && s_.gpus % per_node != 0) {
      const std::int64_t below = s_.gpus / per_node * per_node;
      std::vector<std::string> counts{text_of(std::min(below, most))};
      if (below + per_node <= most) counts.push_back(text_of(below + per_node));
      std::vector<std::string> help{"gpus " + config::join(counts, " or ")};
      violate("gpus",
              "gpus " + text_of(s_.gpus) + " are not whole nodes of the " + text_of(per_node) + " devices of " +
                  s_.cluster.name + ", and more than one node",
              std::move(help));
    } else if (s_.gpus > most) {
      Problem problem = no_network_problem(s_.cluster, s_.gpus, locate_("gpus"));
      violate("gpus", std::move(problem.message), std::move(problem.help));
    } else if (most != kMostDevices && !s_.placement.empty()) {
      const auto [first, last] = std::minmax_element(s_.placement.begin(), s_.placement.end());
      const std::int32_t domain = std::max(s_.cluster.node.scale_up.domain, s_.cluster.node.devices);
      if (*first / domain == *last / domain) return;
      violate("placement.nodes",
              "nodes " + text_of(*first / per_node) + " to " + text_of(*last / per_node) + " of " + s_.cluster.name +
                  " are not in one scale-up domain, and have no network",
              {"a cluster with a fabric, such as hgx-h100-ndr400-rail, or other nodes"});
    }
  }

  // Whether a job of that size has devices.
  bool admits(std::int64_t gpus) const {
    const std::int64_t per_node = s_.cluster.node.devices;
    return gpus > 0 && gpus <= most_devices(s_.cluster) && (gpus <= per_node || gpus % per_node == 0);
  }

  void check_dp() {
    if (dp_fits() || plan_.dp == 0) return;
    const std::int64_t model_ranks = model_ranks_of(plan_);
    if (s_.gpus % model_ranks != 0) return;  // said of gpus
    const std::int64_t quotient = s_.gpus / model_ranks;
    std::vector<std::string> help{"dp " + text_of(quotient) + ", or leave it out"};
    const std::int64_t gpus = model_ranks * plan_.dp;
    if (admits(gpus)) help.push_back("gpus " + text_of(gpus));
    violate("plan.dp",
            "dp " + text_of(plan_.dp) + " disagrees with gpus / (tp * cp * pp) = " + text_of(s_.gpus) + " / (" +
                text_of(plan_.tp) + " * " + text_of(plan_.cp) + " * " + text_of(plan_.pp) + ") = " + text_of(quotient),
            std::move(help));
  }

  // Rules about the share of a data-parallel rank wait until there is one.
  bool dp_fits() const {
    const std::int64_t model_ranks = model_ranks_of(plan_);
    return plan_.dp >= 1 && s_.gpus % model_ranks == 0 && plan_.dp == s_.gpus / model_ranks;
  }

  // Elements are counted at 4 bytes and unsharded. A layer keeps fewer than 16 tensors as wide as the widest, so the
  // activations of a whole step stay below 2^62 bytes, and one tensor or weight below 2^50.
  void check_sizes() {
    constexpr std::int64_t kMostElements = std::int64_t{1} << 48;
    constexpr std::int64_t kMostTokens = std::int64_t{1} << 50;
    constexpr std::int64_t kMostStepElements = std::int64_t{1} << 56;
    constexpr std::int64_t kLongestSequence = std::int64_t{1} << 20;  // token positions are addressed in 20 bits
    const models::Architecture& m = s_.model;
    const std::int64_t positions = m.positions == models::PositionKind::kLearned ? m.max_positions : 0;
    const std::int64_t widest =
        std::max({m.hidden, 2 * m.ffn, m.qkv_width(), m.padded_vocab, positions, std::int64_t{1}});
    if (widest >= kMostElements / m.hidden) {
      violate("model.hidden_size", "a weight of " + text_of(m.hidden) + " by " + text_of(widest) +
                                       " elements of 4 bytes is not below 2^50 bytes");
    }
    const std::int64_t sequence = s_.training.sequence_length;
    if (sequence >= kLongestSequence) {
      violate("training.sequence_length", "sequence_length " + text_of(sequence) + " is not below 2^20 tokens", {},
              ErrorKind::kUnsupported);
    }
    const std::int64_t tokens = sequence * plan_.micro_batch_size;
    const std::int64_t step_tokens = sequence * s_.training.global_batch_size;
    // A token's scores stand in memory for all keys where no fused kernel makes them.
    const std::int64_t scores = s_.attention == AttentionKind::kUnfused ? m.heads * sequence : 0;
    const std::int64_t wide = std::max(widest, scores);
    if (tokens >= kMostElements / wide) {
      violate("plan.micro_batch_size",
              "sequence_length * micro_batch_size = " + text_of(sequence) + " * " + text_of(plan_.micro_batch_size) +
                  " = " + text_of(tokens) + " tokens of " + text_of(wide) +
                  " elements of 4 bytes are not below 2^50 bytes",
              {"sequence_length * micro_batch_size below " + text_of(kMostElements / wide)});
    }
    const std::string step = "sequence_length * global_batch_size = " + text_of(sequence) + " * " +
                             text_of(s_.training.global_batch_size) + " = " + text_of(step_tokens) + " tokens a step";
    if (step_tokens > kMostTokens) {
      violate("training.global_batch_size", step + " are more than 2^50");
    } else if (step_tokens >= kMostStepElements / wide / (m.layers + 2)) {
      violate("training.global_batch_size",
              step + " through " + text_of(m.layers) + " layers of 16 tensors of " + text_of(wide) +
                  " elements of 4 bytes a token are not below 2^62 bytes",
              {"at most " + text_of(kMostStepElements / wide / (m.layers + 2)) + " tokens a step"});
    }
  }

  // One "VALUE NAME does not divide by tp" rule.
  void divides_by_tp(std::string_view field, const std::string& what, std::int64_t value) {
    if (value % plan_.tp == 0) return;
    violate(field,
            text_of(value) + " " + what + " do not divide by tp " + text_of(plan_.tp) + ": " + text_of(value) +
                " mod " + text_of(plan_.tp) + " = " + text_of(value % plan_.tp),
            {"tp " + list_of(divisors(value, std::min(value, std::max<std::int64_t>(s_.gpus, 1)))) + " divide " +
             text_of(value)});
  }

  void check_tensor_parallel() {
    const models::Architecture& m = s_.model;
    divides_by_tp("plan.tp", "attention heads", m.heads);
    divides_by_tp("plan.tp", "columns of the feed-forward size", m.ffn);
    if (m.padded_vocab % plan_.tp != 0) {
      violate("plan.tp",
              "a vocabulary of " + text_of(m.padded_vocab) + " rows does not divide by tp " + text_of(plan_.tp),
              {"model.vocab_pad_to: " + text_of(plan_.tp)});
    }
    constexpr std::int64_t kMostRows = std::int64_t{1} << 31;
    if (m.padded_vocab > kMostRows) {
      violate("model.vocab_pad_to", "a padded vocabulary of " + text_of(m.padded_vocab) + " rows is more than 2^31");
    }
    check_kv_heads(m.kv_heads);
  }

  // Megatron-Core replicates key and value heads over tp ranks when tp is a multiple of their number.
  void check_kv_heads(std::int64_t kv_heads) {
    if (kv_heads % plan_.tp == 0) return;
    const std::vector<std::string> help{"tp " + list_of(divisors(kv_heads, kv_heads)) + " divide " + text_of(kv_heads)};
    const std::string values = text_of(kv_heads) + " key-value heads and tp " + text_of(plan_.tp);
    if (plan_.tp % kv_heads == 0) {
      if (megatron_) {
        violate("plan.tp", values + " need each head on " + text_of(plan_.tp / kv_heads) + " ranks", help,
                ErrorKind::kUnsupported);
      } else {
        violate("plan.tp", values + ": plain does not replicate heads", help);
      }
      return;
    }
    violate("plan.tp", values + ": neither is a multiple of the other", help);
  }

  // A member holds two of 2 * cp equal parts of a sequence.
  bool shares_are_whole() const { return plan_.cp == 1 || s_.training.sequence_length % (2 * plan_.cp) == 0; }

  void check_context_parallel() {
    if (plan_.cp > 1) {
      const auto not_yet = [&](const char* what, const char* help) {
        violate("plan.cp", "cp " + text_of(plan_.cp) + " with " + what, {"cp 1", help}, ErrorKind::kUnsupported);
      };
      if (s_.training.dropout > 0) not_yet("dropout", "training.dropout: 0");
      if (s_.attention == AttentionKind::kUnfused) not_yet("unfused attention", "stack.attention: flash2");
      if (s_.model.positions != models::PositionKind::kRotary) not_yet("positions other than rotary", "a rotary model");
    }
    if (shares_are_whole()) return;
    const std::int64_t sequence = s_.training.sequence_length;
    const std::int64_t parts = 2 * std::int64_t{plan_.cp};
    const std::int64_t below = sequence / parts * parts;
    std::vector<std::string> help;
    if (sequence % 2 == 0) help.push_back("cp " + list_of(divisors(sequence / 2, s_.gpus)));
    help.push_back("sequence_length " + (below > 0 ? text_of(below) + " or " : "") + text_of(below + parts));
    violate("plan.cp",
            "sequence_length " + text_of(sequence) + " does not divide by 2 * cp = " + text_of(parts) +
                ": each member holds two of that many equal parts",
            std::move(help));
  }

  void check_sequence_parallel() {
    if (!plan_.sequence_parallel || !shares_are_whole()) return;
    const std::int64_t sequence = s_.training.sequence_length / plan_.cp;
    const std::string name = plan_.cp > 1 ? "sequence_length / cp" : "sequence_length";
    const std::vector<std::string> help{"sequence_parallel: false", "tp " + list_of(divisors(sequence, s_.gpus))};
    if (megatron_ && sequence % plan_.tp != 0) {
      violate("plan.sequence_parallel",
              name + (plan_.cp > 1 ? " = " : " ") + text_of(sequence) + " does not divide by tp " + text_of(plan_.tp),
              help);
    }
    const std::int64_t tokens = sequence * plan_.micro_batch_size;
    if (!megatron_ && tokens % plan_.tp != 0) {
      violate("plan.sequence_parallel",
              name + " * micro_batch_size = " + text_of(tokens) + " tokens do not divide by tp " + text_of(plan_.tp),
              help);
    }
  }

  void check_batch() {
    if (!dp_fits()) return;
    const std::int64_t batch = s_.training.global_batch_size;
    const std::int64_t step = plan_.micro_batch_size * plan_.dp;
    if (batch % step == 0) {
      check_microbatches(batch / step);
      return;
    }
    const std::int64_t below = batch / step * step;
    std::vector<std::string> help{"global_batch_size " + (below > 0 ? text_of(below) + " or " : "") +
                                  text_of(below + step)};
    if (batch % plan_.dp == 0) help.push_back("micro_batch_size " + list_of(divisors(batch / plan_.dp, batch)));
    violate("training.global_batch_size",
            "global_batch_size " + text_of(batch) + " does not divide by micro_batch_size * dp = " +
                text_of(plan_.micro_batch_size) + " * " + text_of(plan_.dp) + " = " + text_of(step),
            std::move(help));
  }

  // Every microbatch of every layer is lowered and simulated; also, the weights are read for each, and the traffic of a
  // step stays below 2^62 bytes.
  void check_microbatches(std::int64_t microbatches) {
    constexpr std::int64_t kMostReads = std::int64_t{1} << 58;
    const std::int64_t parameters = models::count_parameters(s_.model).total;
    const auto most_lowered = static_cast<std::int64_t>(kMostOps / estimated_ops(s_.model, 1));
    const std::int64_t most = std::min(most_lowered, kMostReads / parameters);
    if (microbatches <= most) return;
    std::vector<std::string> help{"fewer layers"};
    if (most > 0) {
      help = {"global_batch_size of at most " + text_of(most * plan_.micro_batch_size * plan_.dp),
              "a larger micro_batch_size or dp"};
    }
    violate("training.global_batch_size",
            "global_batch_size / (micro_batch_size * dp) = " + text_of(microbatches) + " microbatches a step of " +
                text_of(s_.model.layers) + " layers; at most " + text_of(most) + " are simulated",
            std::move(help), ErrorKind::kUnsupported);
  }

  void check_pipeline() {
    if (plan_.vp > 1 && plan_.pp == 1) {
      violate("plan.vp", "vp " + text_of(plan_.vp) + " needs pp > 1; pp is 1", {"vp 1", "pp of at least 2"});
    }
    const bool interleaved = plan_.schedule == ScheduleKind::kInterleaved1F1B;
    if (plan_.schedule == ScheduleKind::k1F1B && plan_.vp > 1) {
      violate("plan.schedule", "1f1b runs one virtual stage per rank; vp is " + text_of(plan_.vp),
              {"schedule: interleaved_1f1b", "vp 1"});
    }
    if (plan_.schedule == ScheduleKind::kGpipe && plan_.vp > 1) {
      violate("plan.schedule", "gpipe with vp " + text_of(plan_.vp), {"schedule: interleaved_1f1b", "vp 1"},
              ErrorKind::kUnsupported);
    }
    if (interleaved && plan_.vp == 1) {
      violate("plan.schedule", "interleaved_1f1b needs vp > 1; vp is 1", {"schedule: 1f1b", "vp 2"});
    }
    const std::optional<std::int64_t> microbatches = whole_microbatches();
    if (microbatches && *microbatches < plan_.pp && !interleaved) {
      warn(text_of(*microbatches) + " microbatches for pp " + text_of(plan_.pp) + ": some stages always wait");
    }
  }

  std::optional<std::int64_t> whole_microbatches() const {
    if (!dp_fits()) return std::nullopt;
    const std::int64_t step = plan_.micro_batch_size * plan_.dp;
    if (s_.training.global_batch_size % step != 0) return std::nullopt;
    return s_.training.global_batch_size / step;
  }

  // Megatron's schedules.py raises for a group below pp or above the microbatches, and for a last group that is neither
  // whole nor at least pp: the ring of stages would wait for itself.
  void check_interleaving() {
    const std::optional<std::int64_t> microbatches = whole_microbatches();
    if (plan_.schedule != ScheduleKind::kInterleaved1F1B || plan_.vp == 1 || !microbatches) return;
    const std::int64_t m = *microbatches;
    const std::int64_t group = plan_.microbatch_group;
    const std::string both = "microbatch_group " + text_of(group);
    if (group < plan_.pp) {
      violate("plan.microbatch_group", both + " is below pp " + text_of(plan_.pp),
              {"microbatch_group " + text_of(plan_.pp)});
    } else if (group > m) {
      violate("plan.microbatch_group", both + " is above the " + text_of(m) + " microbatches of a step",
              {"a global_batch_size of at least " + text_of(group * plan_.micro_batch_size * plan_.dp)});
    } else if (m % group != 0 && m % group < plan_.pp) {
      std::vector<std::int64_t> groups;
      for (std::int64_t g = plan_.pp; g <= std::min<std::int64_t>(m, plan_.pp + 4096) && groups.size() < 8; ++g) {
        if (m % g == 0 || m % g >= plan_.pp) groups.push_back(g);
      }
      std::vector<std::string> help{"a multiple of " + text_of(group) + " microbatches"};
      if (!groups.empty()) help.insert(help.begin(), "microbatch_group " + list_of(groups));
      violate("plan.microbatch_group",
              text_of(m) + " microbatches leave a last group of " + text_of(m) + " mod " + text_of(group) + " = " +
                  text_of(m % group) + ", below pp " + text_of(plan_.pp),
              std::move(help));
    }
  }

  void check_framework() {
    const std::int64_t sequence = s_.training.sequence_length;
    const std::int64_t positions = s_.model.max_positions;
    if (positions > 0 && sequence > positions) {
      const std::string values =
          "sequence_length " + text_of(sequence) + " is above max_position_embeddings " + text_of(positions);
      if (megatron_ || s_.model.positions == models::PositionKind::kLearned) {
        violate("training.sequence_length", values, {"sequence_length of at most " + text_of(positions)});
      } else {
        warn(values);
      }
    }
    const bool tied_shards = plan_.zero == 3 && s_.model.tied_embeddings && plan_.replicas() > 1;
    if (!megatron_) {
      if (tied_shards) {
        violate("plan.zero", "zero 3 with tied embeddings and dp * cp = " + text_of(plan_.replicas()),
                {"zero 0, 1 or 2", "model.tie_word_embeddings: false", "dp 1 and cp 1"}, ErrorKind::kUnsupported);
      }
      return;
    }
    if (plan_.zero >= 2) {
      std::vector<std::string> help{"zero 1"};
      if (!tied_shards) help.push_back("framework: plain");
      violate("plan.zero", "zero " + text_of(plan_.zero) + " is megatron-fsdp", std::move(help),
              ErrorKind::kUnsupported);
    }
    check_param_gather();
    if (s_.training.moments != program::DType::kF32 && plan_.zero == 0) {
      violate("training.optimizer.moments",
              "moments below fp32 are of the precision-aware optimizer, which is a distributed one; zero is 0",
              {"zero 1", "moments: fp32"});
    }
    if (plan_.schedule == ScheduleKind::kGpipe) warn("Megatron-Core has no GPipe schedule; simulated as written");
    if (plan_.recompute.kind == RecomputeKind::kSelective && plan_.recompute.mlp_act) {
      warn("no flag recomputes mlp_act alone (--recompute-modules has core_attn, layernorm, mlp)");
    }
  }

  // Megatron-LM's validate_args asserts both.
  void check_param_gather() {
    if (!plan_.overlap_param_gather) return;
    if (plan_.zero == 0) {
      violate("plan.overlap.param_gather", "--overlap-param-gather needs the distributed optimizer; zero is 0",
              {"zero 1", "param_gather: false"});
    }
    if (!plan_.overlap_grad_reduce) {
      violate("plan.overlap.param_gather", "--overlap-param-gather needs --overlap-grad-reduce",
              {"grad_reduce: true", "param_gather: false"});
    }
  }

  const Scenario& s_;
  const Plan& plan_;
  const FieldLocator& locate_;
  bool megatron_;
  std::string label_;
  RuleReport report_;
};

}  // namespace

RuleReport check_rules(const Scenario& scenario, const FieldLocator& locate) {
  return RuleChecker(scenario, locate).run();
}

}  // namespace stepcast::plan
