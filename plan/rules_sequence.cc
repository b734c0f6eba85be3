// Rules of splitting a sequence: context parallelism, sequence parallelism and its communication beside matmuls.
#include <algorithm>
#include <utility>

#include "plan/rule_context.h"

namespace stepcast::plan {
namespace {

// A member holds two of 2 * cp equal parts of a sequence.
bool shares_are_whole(const RuleContext& c) {
  return c.plan.cp == 1 || c.scenario.training.sequence_length % (2 * c.plan.cp) == 0;
}

// By all-to-all a member attends with its group of a tensor-parallel rank's heads. Transformer Engine asserts it of
// queries and of keys: "The number of attention heads needs to be divisible by CP size!"
void check_head_groups(RuleContext& c) {
  if (c.plan.cp == 1 || c.plan.cp_comm != ContextComm::kAllToAll) return;
  const auto check = [&](const char* what, std::int64_t all) {
    const std::int64_t heads = std::max<std::int64_t>(1, all / c.plan.tp);  // of a rank, or one that ranks share
    if (heads % c.plan.cp == 0) return;
    std::vector<std::string> help{"cp " + list_of(divisors(heads, c.scenario.gpus))};
    if (c.has_cp_comm(ContextComm::kP2p)) help.emplace_back("cp_comm_type: p2p");
    c.violate(
        "plan.cp",
        text_of(all) + " " + what +
            (c.plan.tp > 1 ? " over tp " + text_of(c.plan.tp) + " are " + text_of(heads) + " a rank, which" : "") +
            " do not divide by cp " + text_of(c.plan.cp) + ": by all-to-all the number of attention heads " +
            "needs to be divisible by cp",
        std::move(help));
  };
  check("attention heads", c.scenario.model.heads);
  check("key-value heads", c.scenario.model.kv_heads);
}

void check_context_parallel(RuleContext& c) {
  check_head_groups(c);
  if (c.plan.cp > 1) {
    const auto not_yet = [&](const char* what, const char* help) {
      c.violate("plan.cp", "cp " + text_of(c.plan.cp) + " with " + what, {"cp 1", help}, ErrorKind::kUnsupported);
    };
    if (c.scenario.training.dropout > 0) not_yet("dropout", "training.dropout: 0");
    if (c.scenario.attention == AttentionKind::kUnfused) not_yet("unfused attention", "stack.attention: flash2");
    if (c.scenario.model.positions != models::PositionKind::kRotary)
      not_yet("positions other than rotary", "a rotary model");
  }
  if (shares_are_whole(c)) return;
  const std::int64_t sequence = c.scenario.training.sequence_length;
  const std::int64_t parts = 2 * std::int64_t{c.plan.cp};
  const std::int64_t below = sequence / parts * parts;
  std::vector<std::string> help;
  if (sequence % 2 == 0) help.push_back("cp " + list_of(divisors(sequence / 2, c.scenario.gpus)));
  help.push_back("sequence_length " + (below > 0 ? text_of(below) + " or " : "") + text_of(below + parts));
  c.violate("plan.cp",
            "sequence_length " + text_of(sequence) + " does not divide by 2 * cp = " + text_of(parts) +
                ": each member holds two of that many equal parts",
            std::move(help));
}

// Megatron-Core and torchtitan split every sequence; others the tokens of a microbatch.
void check_sequence_parallel(RuleContext& c) {
  if (!c.plan.sequence_parallel || !shares_are_whole(c)) return;
  const std::int64_t sequence = c.scenario.training.sequence_length / c.plan.cp;
  const std::string name = c.plan.cp > 1 ? "sequence_length / cp" : "sequence_length";
  const std::vector<std::string> help{"sequence_parallel: false", "tp " + list_of(divisors(sequence, c.scenario.gpus))};
  if (c.preset.shards_whole_sequences) {
    if (sequence % c.plan.tp == 0) return;
    c.violate("plan.sequence_parallel",
              name + (c.plan.cp > 1 ? " = " : " ") + text_of(sequence) + " does not divide by tp " + text_of(c.plan.tp),
              help);
    return;
  }
  const std::int64_t tokens = sequence * c.plan.micro_batch_size;
  if (tokens % c.plan.tp == 0) return;
  c.violate("plan.sequence_parallel",
            name + " * micro_batch_size = " + text_of(tokens) + " tokens do not divide by tp " + text_of(c.plan.tp),
            help);
}

// Megatron-LM's validate_args asserts sequence parallelism for --tp-comm-overlap; without it nothing is split over tp
// that could travel in parts. Transformer Engine's user buffers are mapped into the peers of an NVLink domain.
void check_tensor_overlap(RuleContext& c) {
  if (!c.plan.overlap_tp_comm) return;
  const char* const field = "plan.overlap.tp_comm";
  const std::int32_t domain = c.scenario.cluster.node.devices_without_network();
  if (!c.preset.has_user_buffers) {
    c.violate(field, "tp_comm is lowered as Transformer Engine's user buffers, which this framework does not have",
              {"tp_comm: false", "framework: megatron-core"}, ErrorKind::kUnsupported);
  }
  if (!c.plan.overlap_tp_input_grad) {
    c.violate("plan.overlap.tp_input_grad",
              "tp_comm reduces input gradients beside weight gradients (qkv_wgrad, fc1_wgrad); tp_input_grad is off",
              {"tp_input_grad: true", "tp_comm: false"});
  }
  if (c.plan.tp == 1) {
    c.violate(field, "tp_comm needs sequence parallelism, which needs tp > 1; tp is 1", {"tp_comm: false", "tp 2"});
  } else if (!c.plan.sequence_parallel) {
    c.violate(field, "tp_comm needs sequence parallelism, which is off", {"sequence_parallel: true", "tp_comm: false"});
  } else if (c.plan.tp > domain) {
    c.violate(field,
              "tp_comm passes rows within a scale-up domain, of " + text_of(domain) + " devices here; tp is " +
                  text_of(c.plan.tp),
              {"tp_comm: false", "tp " + text_of(domain)});
  }
}

// A pipeline cuts the product's columns.
void check_pipelines(RuleContext& c) {
  if (!c.plan.overlap_tp_comm) return;
  for (const OverlappedMatmul matmul : {OverlappedMatmul::kProjForward, OverlappedMatmul::kFc2Forward}) {
    const UserBuffer& buffer = c.plan.user_buffers.of(matmul);
    const std::int64_t hidden = c.scenario.model.hidden;
    if (buffer.method != OverlapMethod::kPipeline || hidden % buffer.splits == 0) continue;
    c.violate("plan.overlap.tp_comm_cfg." + std::string(to_string(matmul)) + ".num_splits",
              std::string(to_string(matmul)) + ": num_splits " + text_of(buffer.splits) +
                  " does not divide hidden_size " + text_of(hidden),
              {"num_splits " + list_of(divisors(hidden, kMostUserBufferSplits)), "method: ring_exchange"});
  }
}

}  // namespace

void check_sequence_rules(RuleContext& c) {
  check_context_parallel(c);
  check_sequence_parallel(c);
  check_tensor_overlap(c);
  check_pipelines(c);
}

}  // namespace stepcast::plan
