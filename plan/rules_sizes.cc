// Bounds of sizes, so that every byte count of a later step fits 64-bit integers.
#include <algorithm>
#include <utility>

#include "base/quantity.h"
#include "plan/lowering.h"
#include "plan/rule_context.h"

namespace stepcast::plan {
namespace {

// Elements are counted at 4 bytes and unsharded. A layer keeps fewer than 16 tensors as wide as the widest, so the
// activations of a whole step stay below 2^62 bytes, and one tensor or weight below 2^50.
void check_sizes(RuleContext& c) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 48;
  constexpr std::int64_t kMostTokens = std::int64_t{1} << 50;
  constexpr std::int64_t kMostStepElements = std::int64_t{1} << 56;
  constexpr std::int64_t kLongestSequence = std::int64_t{1} << 20;  // token positions are addressed in 20 bits
  const models::Architecture& m = c.scenario.model;
  const std::int64_t positions = m.positions == models::PositionKind::kLearned ? m.max_positions : 0;
  const std::int64_t widest =
      std::max({m.hidden, 2 * m.ffn, m.qkv_width(), m.padded_vocab, positions, std::int64_t{1}});
  if (widest >= kMostElements / m.hidden) {
    c.violate("model.hidden_size", "a weight of " + text_of(m.hidden) + " by " + text_of(widest) +
                                       " elements of 4 bytes is not below 2^50 bytes");
  }
  const std::int64_t sequence = c.scenario.training.sequence_length;
  if (sequence >= kLongestSequence) {
    c.violate("training.sequence_length", "sequence_length " + text_of(sequence) + " is not below 2^20 tokens", {},
              ErrorKind::kUnsupported);
  }
  const std::int64_t tokens = sequence * c.plan.micro_batch_size;
  const std::int64_t step_tokens = sequence * c.scenario.training.global_batch_size;
  // A token's scores stand in memory for all keys where no fused kernel makes them.
  const std::int64_t scores = c.scenario.attention == AttentionKind::kUnfused ? m.heads * sequence : 0;
  const std::int64_t wide = std::max(widest, scores);
  if (tokens >= kMostElements / wide) {
    c.violate("plan.micro_batch_size",
              "sequence_length * micro_batch_size = " + text_of(sequence) + " * " + text_of(c.plan.micro_batch_size) +
                  " = " + text_of(tokens) + " tokens of " + text_of(wide) +
                  " elements of 4 bytes are not below 2^50 bytes",
              {"sequence_length * micro_batch_size below " + text_of(kMostElements / wide)});
  }
  const std::string step = "sequence_length * global_batch_size = " + text_of(sequence) + " * " +
                           text_of(c.scenario.training.global_batch_size) + " = " + text_of(step_tokens) +
                           " tokens a step";
  if (step_tokens > kMostTokens) {
    c.violate("training.global_batch_size", step + " are more than 2^50");
  } else if (step_tokens >= kMostStepElements / wide / (m.layers + 2)) {
    c.violate("training.global_batch_size",
              step + " through " + text_of(m.layers) + " layers of 16 tensors of " + text_of(wide) +
                  " elements of 4 bytes a token are not below 2^62 bytes",
              {"at most " + text_of(kMostStepElements / wide / (m.layers + 2)) + " tokens a step"});
  }
}

// Every microbatch of every layer is lowered and simulated; also, the weights are read for each, and the traffic of a
// step stays below 2^62 bytes.
void check_microbatches(RuleContext& c, std::int64_t microbatches) {
  constexpr std::int64_t kMostReads = std::int64_t{1} << 58;
  const std::int64_t parameters = models::count_parameters(c.scenario.model).total;
  const auto most_lowered = static_cast<std::int64_t>(kMostOps / estimated_ops(c.scenario.model, 1));
  const std::int64_t most = std::min(most_lowered, kMostReads / parameters);
  if (microbatches <= most) return;
  std::vector<std::string> help{"fewer layers"};
  if (most > 0) {
    help = {"global_batch_size of at most " + text_of(most * c.plan.micro_batch_size * c.plan.dp),
            "a larger micro_batch_size or dp"};
  }
  c.violate("training.global_batch_size",
            "global_batch_size / (micro_batch_size * dp) = " + text_of(microbatches) + " microbatches a step of " +
                counted(c.scenario.model.layers, "layer") + "; at most " + text_of(most) + " are simulated",
            std::move(help), ErrorKind::kUnsupported);
}

}  // namespace

void check_size_rules(RuleContext& c) {
  check_sizes(c);
  if (const auto microbatches = c.whole_microbatches()) check_microbatches(c, *microbatches);
}

}  // namespace stepcast::plan
