// What the whole job is: the tokens it trains on, and what an hour of a GPU costs.
#include "config/text.h"
#include "plan/scenario_draft.h"

namespace stepcast::plan {

void resolve_job(ScenarioDraft& draft) {
  const schema::Job& given = draft.message.job();
  if (!given.has_tokens()) {
    if (given.has_price() || given.has_pue()) {
      draft.read.warnings.emplace_back("job has no effect without job.tokens");
    }
    return;
  }
  Job job;
  job.tokens = given.tokens();
  if (given.has_price()) job.price = given.price();
  if (given.has_pue()) job.pue = given.pue();
  draft.record("job.tokens", config::number_text(job.tokens) + " tok", "");
  if (job.price) draft.record("job.price", config::number_text(*job.price) + " $/GPU-h", "");
  draft.record("job.pue", config::number_text(job.pue), "default");
  draft.read.scenario.job = job;
}

}  // namespace stepcast::plan
