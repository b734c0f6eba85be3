// The groups that ZeRO shards over: all replicas (dp * cp), or under HSDP dp_replicate groups of dp_shard each, a group
// being all cp members and a contiguous part of dp (torchtitan's mesh; Megatron-Core's
// --num-distributed-optimizer-instances).
#include <algorithm>
#include <string>
#include <utility>

#include "plan/scenario_draft.h"

namespace stepcast::plan {
namespace {

std::string text_of(std::int64_t value) { return std::to_string(value); }

// What dp_shard * dp_replicate may be: pairs whose groups hold all cp members.
std::string choices(const Plan& plan) {
  std::string text;
  for (std::int32_t groups = 1; groups <= plan.dp; groups *= 2) {
    if (plan.dp % groups != 0) break;
    text += (text.empty() ? "" : ", ") + text_of(plan.replicas() / groups) + " * " + text_of(groups);
  }
  return "dp_shard * dp_replicate " + text;
}

}  // namespace

void resolve_shard_groups(ScenarioDraft& draft) {
  const schema::Plan& given = draft.message.plan();
  Plan& plan = draft.read.scenario.plan;
  const std::int64_t replicas = plan.replicas();
  if (replicas == 0) return;  // dp could not be derived, which is said of gpus
  const auto violate = [&](std::string_view field, std::string message, std::vector<std::string> help) {
    draft.read.violations.push_back({ErrorKind::kInput, std::move(message), draft.locate(field), std::move(help)});
  };
  // Without ZeRO every rank holds everything: the group of one.
  const std::int64_t whole = plan.zero == 0 ? 1 : replicas;
  std::int64_t shard = given.has_dp_shard() ? given.dp_shard() : whole;
  std::int64_t groups = given.has_dp_replicate() ? given.dp_replicate() : replicas / std::max<std::int64_t>(shard, 1);
  if (!given.has_dp_shard() && plan.zero > 0 && replicas % groups == 0) shard = replicas / groups;
  if (plan.zero == 0 && groups == 1) groups = replicas;  // the schema's default says nothing
  const char* field = given.has_dp_shard() ? "plan.dp_shard" : "plan.dp_replicate";
  const std::string product = text_of(shard) + " * " + text_of(groups);
  if (plan.zero == 0 && shard > 1) {
    violate(field, "dp_shard " + text_of(shard) + " with zero 0: every rank holds everything", {"zero 1, 2 or 3"});
  } else if (shard * groups != replicas) {
    violate(field, "dp_shard * dp_replicate = " + product + " is not dp * cp = " + text_of(replicas), {choices(plan)});
  } else if (plan.zero > 0 && plan.dp % groups != 0) {
    violate(field,
            "dp_replicate " + text_of(groups) + " does not divide dp " + text_of(plan.dp) +
                ": a shard group holds all cp members",
            {choices(plan)});
  } else if (plan.zero > 0) {
    plan.dp_replicate = static_cast<std::int32_t>(groups);
  }
  if (given.has_dp_shard() || given.has_dp_replicate()) {
    draft.record("plan.dp_shard", text_of(shard), "derived: dp * cp / dp_replicate");
    draft.record("plan.dp_replicate", text_of(groups), "derived: dp * cp / dp_shard");
  }
}

}  // namespace stepcast::plan
