// What surrounds the plan: the attention kernels of the stack, environment variables that steer the collectives
// library, and the spread of op times.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/quantity.h"
#include "config/text.h"
#include "plan/frameworks.h"
#include "plan/scenario_draft.h"

namespace stepcast::plan {
namespace {

// NCCL's user guide, "Environment Variables": these choose what the collectives' model chooses. Their values are judged
// by whoever acts on them.
constexpr std::array<std::string_view, 4> kActing = {"NCCL_ALGO", "NCCL_MAX_CTAS", "NCCL_NVLS_ENABLE", "NCCL_PROTO"};

// CUDA's limit of hardware queues: 1 to 32.
void resolve_connections(ScenarioDraft& draft, const std::string& text) {
  const auto queues = config::parse_integer(text);
  if (!queues || *queues < 1 || *queues > 32) {
    draft.refuse("stack.env.CUDA_DEVICE_MAX_CONNECTIONS", config::printable(text) + " is no number of queues",
                 {"a whole number from 1 to 32"});
    return;
  }
  draft.read.scenario.cuda_connections = queues;
}

void resolve_environment(ScenarioDraft& draft) {
  const auto& given = draft.message.stack().env();
  std::map<std::string, std::string> ordered(given.begin(), given.end());
  std::vector<std::string> idle;
  for (const auto& [name, value] : ordered) {
    if (name == "CUDA_DEVICE_MAX_CONNECTIONS") {
      resolve_connections(draft, value);
      continue;
    }
    if (std::find(kActing.begin(), kActing.end(), name) == kActing.end()) {
      idle.push_back(config::printable(name));
      continue;
    }
    draft.read.scenario.environment.emplace(name, value);
    draft.read.environment_at.emplace(name, draft.locate("stack.env." + name));
  }
  if (draft.given("stack.env")) {
    std::vector<std::string> texts;
    for (const auto& [name, value] : ordered)
      texts.push_back(config::printable(name) + ": " + config::printable(value));
    draft.record("stack.env", "{" + config::join(texts) + "}", "");
  }
  if (idle.empty()) return;
  draft.read.notes.push_back("stack.env: without influence here: " + config::join(idle));
}

void resolve_memory(ScenarioDraft& draft) {
  Scenario& s = draft.read.scenario;
  if (draft.message.stack().allocator() == "default") s.allocator = AllocatorKind::kDefault;
  draft.record("stack.allocator", s.allocator == AllocatorKind::kDefault ? "default" : "expandable", "default");
  const schema::Report& report = draft.message.report();
  if (report.has_reserve()) s.memory_reserve = static_cast<std::int64_t>(report.reserve());
  const std::string reserve = s.memory_reserve
                                  ? format_quantity(static_cast<double>(*s.memory_reserve), Dimension::kBytes)
                                  : "2 GiB, at most a tenth of the device";
  draft.record("report.reserve", reserve, "default");
}

void resolve_jitter(ScenarioDraft& draft) {
  const schema::Jitter& given = draft.message.jitter();
  const bool has_sigma = given.compute_sigma() > 0 || given.comm_sigma() > 0;
  if (given.has_kind()) {
    if (has_sigma) {
      draft.refuse("jitter.kind", "jitter is none and has a spread", {"leave out kind, or both sigmas"});
    }
    draft.record("jitter", "none", "");
    return;
  }
  if (!has_sigma) {
    const bool asked = given.has_samples() || given.has_seed() || given.has_compute_sigma() || given.has_comm_sigma();
    if (asked) draft.read.warnings.push_back("jitter has no effect without compute_sigma or comm_sigma above 0");
    return;
  }
  Jitter jitter;
  jitter.compute_sigma = given.compute_sigma();
  jitter.comm_sigma = given.comm_sigma();
  if (given.has_samples()) jitter.samples = static_cast<std::int32_t>(given.samples());
  jitter.seed = static_cast<std::uint64_t>(given.seed());
  draft.record("jitter.compute_sigma", config::number_text(jitter.compute_sigma), "default");
  draft.record("jitter.comm_sigma", config::number_text(jitter.comm_sigma), "default");
  draft.record("jitter.samples", std::to_string(jitter.samples), "default");
  draft.record("jitter.seed", std::to_string(jitter.seed), "default");
  draft.read.scenario.jitter = jitter;
}

// Which kernel is not told apart: constants are those of the calibration's stack.
void resolve_attention(ScenarioDraft& draft) {
  const FrameworkPreset& preset = preset_of(draft.read.scenario.framework);
  const auto& given = draft.message.stack();
  const std::string kernel = given.has_attention() ? given.attention() : std::string(preset.attention);
  if (kernel == "unfused") draft.read.scenario.attention = AttentionKind::kUnfused;
  if (given.has_attention() && kernel != "unfused") {
    draft.read.notes.push_back(
        "stack.attention: " + kernel +
        " is simulated as fused attention at the rates of the calibration, as every fused kernel");
  }
  draft.record("stack.attention", kernel, std::string(preset.name) + " default");
}

}  // namespace

void resolve_stack(ScenarioDraft& draft) {
  resolve_environment(draft);
  resolve_attention(draft);
  resolve_memory(draft);
  if (draft.message.stack().has_gradient_accumulation()) {
    const std::string& how = draft.message.stack().gradient_accumulation();
    draft.read.scenario.accumulation = how == "fused" ? GradientAccumulation::kFused : GradientAccumulation::kSeparate;
    draft.record("stack.gradient_accumulation", how, "");
  }
  resolve_jitter(draft);
}

}  // namespace stepcast::plan
