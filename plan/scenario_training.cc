// The training recipe of a scenario: batch, precision, optimizer, seeds.
#include <algorithm>
#include <array>
#include <string>

#include "config/text.h"
#include "plan/frameworks.h"
#include "plan/scenario_draft.h"

namespace stepcast::plan {
namespace {

using program::DType;

void resolve_batch(ScenarioDraft& draft) {
  const schema::Training& given = draft.message.training();
  Training& training = draft.read.scenario.training;
  training.sequence_length = given.sequence_length();
  training.global_batch_size = given.global_batch_size();
  draft.record("training.sequence_length", std::to_string(training.sequence_length), "");
  if (!draft.message.has_training()) return;
  const auto tokens = given.global_batch_tokens();
  if (!given.has_global_batch_tokens()) {
    if (!draft.given("training.global_batch_size") && draft.problems.empty()) {
      draft.problems.add(ErrorKind::kInput, "missing required field", draft.locate("training.global_batch_size"),
                         {"in sequences; or give training.global_batch_tokens, such as 4 Mitok"});
    }
  } else if (training.sequence_length > 0 && tokens % training.sequence_length != 0) {
    draft.refuse("training.global_batch_tokens",
                 std::to_string(tokens) + " tokens are not a whole number of sequences of " +
                     std::to_string(training.sequence_length),
                 {"Mitok is 2^20 tokens, Mtok is 10^6"});
  } else if (training.sequence_length > 0) {
    const std::int64_t sequences = tokens / training.sequence_length;
    if (given.has_global_batch_size() && given.global_batch_size() != sequences) {
      draft.refuse("training.global_batch_tokens",
                   "global_batch_tokens is " + std::to_string(sequences) + " sequences, global_batch_size says " +
                       std::to_string(given.global_batch_size()),
                   {"give one of the two"});
    }
    constexpr std::int64_t kMost = std::int64_t{1} << 31;
    if (sequences > kMost) {
      draft.refuse("training.global_batch_tokens", std::to_string(sequences) + " sequences of " +
                                                       std::to_string(training.sequence_length) +
                                                       " tokens are more than 2^31");
    }
    training.global_batch_size = sequences;
  }
  draft.record("training.global_batch_size", std::to_string(training.global_batch_size),
               "derived: global_batch_tokens / sequence_length");
}

// true is a norm of 1, false is no clipping, a number is the norm.
void resolve_clip(ScenarioDraft& draft) {
  const schema::Training::Optimizer& given = draft.message.training().optimizer();
  double& norm = draft.read.scenario.training.adam.clip_norm;
  norm = 1.0;
  if (given.has_clip() && given.clip() != "true") {
    const auto number = config::parse_number(given.clip());
    if (given.clip() != "false" && (!number || *number < 0)) {
      draft.refuse("training.optimizer.clip", "\"" + config::printable(given.clip()) + "\" is not a gradient norm",
                   {"true (norm 1), false, or a norm of at least 0"});
    }
    norm = given.clip() == "false" ? 0.0 : number.value_or(0.0);
  }
  draft.record("training.optimizer.clip", norm == 0 ? "false" : config::number_text(norm), "default");
}

void resolve_optimizer(ScenarioDraft& draft) {
  const schema::Training::Optimizer& given = draft.message.training().optimizer();
  Training& training = draft.read.scenario.training;
  AdamSettings& adam = training.adam;
  if (given.has_lr()) adam.learning_rate = given.lr();
  if (given.has_eps()) adam.eps = given.eps();
  const bool betas_work = given.betas_size() == 2 && given.betas(0) < 1 && given.betas(1) < 1;
  if (betas_work) {
    adam.beta1 = given.betas(0);
    adam.beta2 = given.betas(1);
  } else if (draft.given("training.optimizer.betas")) {
    draft.refuse("training.optimizer.betas", "expected two numbers from 0 to below 1", {"for example [0.9, 0.95]"});
  }
  draft.record("training.optimizer.name", "adamw", "default");
  draft.record("training.optimizer.master", training.master_weights ? "fp32" : "none",
               training.master_weights ? "default" : "derived: parameters are fp32");
  training.moments = given.moments() == "bf16" ? DType::kBf16 : DType::kF32;
  draft.record("training.optimizer.moments", given.has_moments() ? given.moments() : "fp32", "default");
  draft.record("training.optimizer.lr", config::number_text(adam.learning_rate), "default");
  draft.record("training.optimizer.betas",
               "[" + config::number_text(adam.beta1) + ", " + config::number_text(adam.beta2) + "]", "default");
  draft.record("training.optimizer.eps", config::number_text(adam.eps), "default");
  resolve_clip(draft);
}

}  // namespace

void resolve_training(ScenarioDraft& draft) {
  const schema::Training& given = draft.message.training();
  Training& training = draft.read.scenario.training;
  resolve_batch(draft);
  resolve_precision(draft);
  resolve_optimizer(draft);
  if (given.has_init_std()) training.init_std = given.init_std();
  const models::Architecture& model = draft.read.scenario.model;
  training.dropout = given.has_dropout() ? given.dropout() : model.dropout;
  if (given.has_seed()) training.seed = static_cast<std::uint64_t>(given.seed());
  const FrameworkPreset& preset = preset_of(draft.read.scenario.framework);
  const std::string loss = given.has_lm_head_loss()               ? given.lm_head_loss()
                           : preset.head_loss == HeadLoss::kFused ? "fused_vocab_parallel"
                                                                  : "unfused";
  training.head_loss = loss == "unfused" ? HeadLoss::kUnfused : HeadLoss::kFused;
  draft.record("training.lm_head_loss", loss, std::string(preset.name) + " default");
  draft.record("training.seed", std::to_string(training.seed), "default");
  draft.record("training.dropout", config::number_text(training.dropout),
               model.dropout > 0 ? "model " + config::printable(model.name) : "default");
  draft.record("training.init_std", config::number_text(training.init_std), "default");
}

}  // namespace stepcast::plan
