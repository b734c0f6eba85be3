// The parts of a row's scenario, in the order in which later ones build on earlier ones.
#include "calibrate/row_scenario.h"

#include "calibrate/row_draft.h"
#include "config/text.h"

namespace stepcast::calibrate {
namespace {

RowScenario skipped_row(std::string reason) {
  RowScenario scenario;
  scenario.skipped = std::move(reason);
  return scenario;
}

void take_stack(RowDraft& draft) {
  for (const StackSetting& setting : draft.stack.settings) {
    draft.set(std::string(setting.field), std::string(setting.value));
    if (!setting.assumption.empty()) draft.assume(std::string(setting.assumption));
  }
}

void take_training(RowDraft& draft) {
  draft.set("training.sequence_length", draft.row.sequence_length);
  draft.set("training.global_batch_size", draft.row.global_batch);
  draft.set("plan.micro_batch_size", draft.row.micro_batch);
  if (draft.row.noted("packed samples")) {
    draft.assume("packed samples attend to the whole sequence, as one document");
  }
  if (draft.row.flagged("pack_sample_into_one True")) {
    draft.assume("samples packed into one attend to themselves only: attention over sequence_length tokens");
  }
  if (draft.row.flagged("torch.compile")) draft.assume("torch.compile fuses what the calibration has as fused");
  if (draft.row.flagged("uda graph") || draft.row.flagged("uda_graph")) {
    draft.assume("CUDA graphs are not modelled: launches cost what the calibration says");
  }
}

}  // namespace

RowScenario scenario_of(const PublishedRow& row) {
  if (!row.unusable.empty()) return skipped_row(row.unusable);
  if (row.experts > 0) {
    return skipped_row("mixture of " + std::to_string(row.experts) + " experts: not simulated yet");
  }
  const StackPreset* const stack = stack_of(row);
  if (stack == nullptr) {
    return skipped_row("source '" + config::printable(row.source) +
                       "': its framework is not known here; a column `framework` can state it");
  }
  RowDraft draft(row, *stack);
  take_sharding(draft);
  take_framework(draft);
  take_stack(draft);
  take_model(draft);
  take_cluster(draft);
  take_training(draft);
  take_precision(draft);
  take_plan(draft);
  take_recompute(draft);
  return draft.finish();
}

}  // namespace stepcast::calibrate
