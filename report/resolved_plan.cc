// Formats plan::Plan; the words are those of scenario files.
#include "report/resolved_plan.h"

#include <fmt/format.h>

#include "base/quantity.h"
#include "plan/rules.h"
#include "report/text.h"

namespace stepcast::report {
std::string recompute_text(const plan::Recompute& recompute) {
  if (recompute.kind == plan::RecomputeKind::kNone) return "none";
  if (recompute.kind == plan::RecomputeKind::kFull) {
    if (recompute.every > 1) return fmt::format("full[every {}]", recompute.every);
    if (recompute.first > 0) return fmt::format("full[block {}]", recompute.first);
    return recompute.together > 1 ? fmt::format("full[uniform {}]", recompute.together) : "full";
  }
  std::vector<std::string> modules;
  if (recompute.core_attn) modules.emplace_back("core_attn");
  if (recompute.layernorm) modules.emplace_back("layernorm");
  if (recompute.mlp_act) modules.emplace_back("mlp_act");
  if (recompute.mlp) modules.emplace_back("mlp");
  return "selective[" + joined(modules, ",") + "]";
}

namespace {

std::string context_text(const plan::Plan& p) {
  if (p.cp == 1) return "";
  if (p.cp_comm == plan::ContextComm::kP2p) return fmt::format(" CP{}", p.cp);
  return fmt::format(" CP{} {}", p.cp, to_string(p.cp_comm));
}

// Nothing for a plan whose matmuls read the compute type.
std::string recipe_text(const plan::Training& training) {
  if (training.recipe == plan::MatmulRecipe::kNone) return "";
  const char* const bits = training.recipe == plan::MatmulRecipe::kNvfp4 ? "fp4" : "fp8";
  return fmt::format("  {} {}{}", bits, to_string(training.recipe),
                     training.first_last_layers_bf16 ? " but first and last layer" : "");
}

}  // namespace

std::string plan_text(const plan::Scenario& s) {
  const plan::Plan& p = s.plan;
  const double tokens = static_cast<double>(s.training.global_batch_size * s.training.sequence_length);
  const std::string token_text = tokens < 1e6 ? format_count(static_cast<std::int64_t>(tokens)) + " tok"
                                              : fmt::format("{} Mtok", significant(tokens * 1e-6, 3));
  return fmt::format("TP{}{}{} PP{} VP{} DP{}  {}  zero-{}  MBS {} x {} microbatches  GBS {} x {} = {}  recompute {}",
                     p.tp, p.sequence_parallel ? "+SP" : "", context_text(p), p.pp, p.vp, p.dp, to_string(p.schedule),
                     p.zero, p.micro_batch_size, s.microbatches(), s.training.global_batch_size,
                     format_count(s.training.sequence_length), token_text, recompute_text(p.recompute)) +
         recipe_text(s.training);
}

}  // namespace stepcast::report
