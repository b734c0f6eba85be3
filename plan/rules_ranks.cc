// Rules of the degrees: that they fill the devices, and that tensor parallelism splits the model evenly.
#include <algorithm>
#include <utility>

#include "config/text.h"
#include "plan/cluster_reader.h"
#include "plan/rule_context.h"
#include "topology/mesh.h"

namespace stepcast::plan {
namespace {

// "tp 1, 2, 4 divide 12", up to `most`; "tp 1 divides 4097".
std::string tp_dividing(std::int64_t value, std::int64_t most) {
  const auto all = divisors(value, most);
  return "tp " + list_of(all) + (all.size() == 1 ? " divides " : " divide ") + text_of(value);
}

void check_world(RuleContext& c) {
  const std::int64_t model_ranks = model_ranks_of(c.plan);
  const bool context = c.plan.cp > 1;
  const std::int64_t stage_ranks = std::int64_t{c.plan.tp} * c.plan.cp;
  const std::string product = std::string("tp * ") + (context ? "cp * " : "") + "pp = " + text_of(c.plan.tp) + " * " +
                              (context ? text_of(c.plan.cp) + " * " : "") + text_of(c.plan.pp) + " = " +
                              text_of(model_ranks);
  if (c.scenario.gpus % model_ranks != 0) {
    std::vector<std::string> help;
    if (c.scenario.gpus % stage_ranks == 0) {
      help.push_back("pp " + list_of(divisors(c.scenario.gpus / stage_ranks, c.scenario.gpus)) + " with tp " +
                     text_of(c.plan.tp) + (context ? " and cp " + text_of(c.plan.cp) : ""));
    } else if (context && c.scenario.gpus % c.plan.tp == 0) {
      help.push_back("cp " + list_of(divisors(c.scenario.gpus / c.plan.tp, c.scenario.gpus)) + " with tp " +
                     text_of(c.plan.tp));
    } else {
      help.push_back(tp_dividing(c.scenario.gpus, c.scenario.gpus) + (c.scenario.gpus == 1 ? " gpu" : " gpus"));
    }
    const std::int64_t below = c.scenario.gpus / model_ranks * model_ranks;
    std::vector<std::string> counts;
    for (const std::int64_t count : {below, below + model_ranks}) {
      if (c.admits(count)) counts.push_back(text_of(count));
    }
    if (!counts.empty()) help.push_back("gpus " + config::join(counts, " or "));
    c.violate("gpus", "gpus " + text_of(c.scenario.gpus) + " do not divide by " + product, std::move(help));
  }
  try {
    // Degrees of 2 stand for any: only the words of the order are judged here.
    const auto two = [](std::int32_t degree) { return degree > 1 ? 2 : 1; };
    const std::vector<topology::Axis> axes{
        {"tp", two(c.plan.tp)}, {"cp", two(c.plan.cp)}, {"ep", 1}, {"dp", two(c.plan.dp)}, {"pp", two(c.plan.pp)}};
    topology::make_mesh(c.plan.rank_order, axes);
  } catch (const Error& fault) {
    for (const Problem& problem : fault.problems()) c.violate("plan.rank_order", problem.message, problem.help);
  }
}

// Launchers start the same number of ranks on every node of a job, so that only a single node may be filled in part.
void check_devices(RuleContext& c) {
  const std::int64_t per_node = c.scenario.cluster.node.devices;
  const std::int64_t most = most_devices(c.scenario.cluster);
  if (c.scenario.gpus > per_node && c.scenario.gpus % per_node != 0) {
    const std::int64_t below = c.scenario.gpus / per_node * per_node;
    std::vector<std::string> counts{text_of(std::min(below, most))};
    if (below + per_node <= most) counts.push_back(text_of(below + per_node));
    std::vector<std::string> help{"gpus " + config::join(counts, " or ")};
    c.violate("gpus",
              "gpus " + text_of(c.scenario.gpus) + " are not whole nodes of the " + text_of(per_node) + " devices of " +
                  c.scenario.cluster.name + ", and more than one node",
              std::move(help));
  } else if (c.scenario.gpus > most) {
    Problem problem = no_network_problem(c.scenario.cluster, c.scenario.gpus, c.locate("gpus"));
    c.violate("gpus", problem.message, std::move(problem.help));
  } else if (most != kMostDevices && !c.scenario.placement.empty()) {
    const auto [first, last] = std::minmax_element(c.scenario.placement.begin(), c.scenario.placement.end());
    const std::int32_t domain = c.scenario.cluster.node.devices_without_network();
    if (*first / domain == *last / domain) return;
    c.violate("placement.nodes",
              "nodes " + text_of(*first / per_node) + " to " + text_of(*last / per_node) + " of " +
                  c.scenario.cluster.name + " are not in one scale-up domain, and have no network",
              {"a cluster with a fabric, such as hgx-h100-ndr400-rail, or other nodes"});
  }
}

void check_dp(RuleContext& c) {
  if (c.dp_fits() || c.plan.dp == 0) return;
  const std::int64_t model_ranks = model_ranks_of(c.plan);
  if (c.scenario.gpus % model_ranks != 0) return;  // said of gpus
  const std::int64_t quotient = c.scenario.gpus / model_ranks;
  std::vector<std::string> help{"dp " + text_of(quotient) + ", or leave it out"};
  const std::int64_t gpus = model_ranks * c.plan.dp;
  if (c.admits(gpus)) help.push_back("gpus " + text_of(gpus));
  c.violate("plan.dp",
            "dp " + text_of(c.plan.dp) + " disagrees with gpus / (tp * cp * pp) = " + text_of(c.scenario.gpus) +
                " / (" + text_of(c.plan.tp) + " * " + text_of(c.plan.cp) + " * " + text_of(c.plan.pp) +
                ") = " + text_of(quotient),
            std::move(help));
}

// One "VALUE NAME does not divide by tp" rule.
void divides_by_tp(RuleContext& c, std::string_view field, const std::string& what, std::int64_t value) {
  if (value % c.plan.tp == 0) return;
  c.violate(field,
            text_of(value) + " " + what + " do not divide by tp " + text_of(c.plan.tp) + ": " + text_of(value) +
                " mod " + text_of(c.plan.tp) + " = " + text_of(value % c.plan.tp),
            {tp_dividing(value, std::min(value, std::max<std::int64_t>(c.scenario.gpus, 1)))});
}

// Megatron-Core gathers key and value heads over the tp ranks that share one when tp is a multiple of their number;
// others have no such path.
void check_kv_heads(RuleContext& c, std::int64_t kv_heads) {
  if (kv_heads % c.plan.tp == 0) return;
  const std::vector<std::string> help{tp_dividing(kv_heads, kv_heads)};
  const std::string values = text_of(kv_heads) + " key-value heads and tp " + text_of(c.plan.tp);
  if (c.plan.tp % kv_heads == 0) {
    const std::int64_t ranks = c.plan.tp / kv_heads;
    const std::int64_t dim = c.scenario.model.head_dim;
    if (!c.preset.shares_kv_heads) {
      c.violate("plan.tp", values + ": " + std::string(c.preset.name) + " does not replicate heads", help);
    } else if (dim % ranks != 0) {
      c.violate(
          "plan.tp",
          values + " share each head among " + text_of(ranks) + " ranks, which do not divide head_dim " + text_of(dim),
          help, ErrorKind::kUnsupported);
    }
    return;
  }
  c.violate("plan.tp", values + ": neither is a multiple of the other", help);
}

}  // namespace

void check_rank_rules(RuleContext& c) {
  check_world(c);
  check_devices(c);
  check_dp(c);
}

void check_tensor_rules(RuleContext& c) {
  const models::Architecture& m = c.scenario.model;
  divides_by_tp(c, "plan.tp", "attention heads", m.heads);
  divides_by_tp(c, "plan.tp", "columns of the feed-forward size", m.ffn);
  if (m.padded_vocab % c.plan.tp != 0) {
    c.violate("plan.tp",
              "a vocabulary of " + text_of(m.padded_vocab) + " rows does not divide by tp " + text_of(c.plan.tp),
              {"model.vocab_pad_to: " + text_of(c.plan.tp)});
  }
  constexpr std::int64_t kMostRows = std::int64_t{1} << 31;
  if (m.padded_vocab > kMostRows) {
    c.violate("model.vocab_pad_to", "a padded vocabulary of " + text_of(m.padded_vocab) + " rows is more than 2^31");
  }
  check_kv_heads(c, m.kv_heads);
}

}  // namespace stepcast::plan
