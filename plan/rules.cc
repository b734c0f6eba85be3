// The order of the rules and what their groups share.
#include "plan/rules.h"

#include <algorithm>
#include <utility>

#include "config/text.h"
#include "plan/cluster_reader.h"
#include "plan/model_support.h"
#include "plan/rule_context.h"

namespace stepcast::plan {

RuleContext::RuleContext(const Scenario& judged, const FieldLocator& locate)
    : scenario(judged), plan(judged.plan), preset(preset_of(judged.framework)), locate_(locate) {}

void RuleContext::violate(std::string_view field, const std::string& message, std::vector<std::string> help,
                          ErrorKind kind) {
  report_.violations.push_back({kind, std::string(preset.name) + ": " + message, locate_(field), std::move(help)});
}

void RuleContext::warn(const std::string& message) {
  report_.warnings.push_back(std::string(preset.name) + ": " + message);
}

bool RuleContext::admits(std::int64_t gpus) const {
  const std::int64_t per_node = scenario.cluster.node.devices;
  return gpus > 0 && gpus <= most_devices(scenario.cluster) && (gpus <= per_node || gpus % per_node == 0);
}

bool RuleContext::dp_fits() const {
  const std::int64_t model_ranks = model_ranks_of(plan);
  return plan.dp >= 1 && scenario.gpus % model_ranks == 0 && plan.dp == scenario.gpus / model_ranks;
}

std::optional<std::int64_t> RuleContext::whole_microbatches() const {
  if (!dp_fits()) return std::nullopt;
  const std::int64_t step = plan.micro_batch_size * plan.dp;
  if (scenario.training.global_batch_size % step != 0) return std::nullopt;
  return scenario.training.global_batch_size / step;
}

bool RuleContext::has_cp_comm(ContextComm comm) const {
  return preset.cp_comms.find(" " + std::string(to_string(comm)) + " ") != std::string_view::npos;
}

bool RuleContext::shards_tied_embeddings() const {
  return plan.zero == 3 && scenario.model.tied_embeddings && plan.replicas() > 1;
}

std::string text_of(std::int64_t value) { return std::to_string(value); }

std::vector<std::int64_t> divisors(std::int64_t n, std::int64_t limit, std::size_t count) {
  std::vector<std::int64_t> result;
  for (std::int64_t d = 1; d <= std::min<std::int64_t>(limit, 4096) && result.size() < count; ++d) {
    if (n % d == 0) result.push_back(d);
  }
  return result;
}

std::string list_of(const std::vector<std::int64_t>& values) {
  std::vector<std::string> words;
  for (const std::int64_t value : values) words.push_back(text_of(value));
  return config::join(words);
}

std::int64_t model_ranks_of(const Plan& plan) { return std::int64_t{plan.tp} * plan.cp * plan.pp; }

RuleReport check_rules(const Scenario& scenario, const FieldLocator& locate) {
  RuleContext context(scenario, locate);
  check_rank_rules(context);
  check_size_rules(context);
  check_tensor_rules(context);
  for (Problem& p : unsupported_settings(scenario)) {
    context.violate(p.where.field, p.message, std::move(p.help), p.kind);
  }
  check_sequence_rules(context);
  check_pipeline_rules(context);
  check_precision_rules(context);
  check_framework_rules(context);
  return context.take();
}

}  // namespace stepcast::plan
