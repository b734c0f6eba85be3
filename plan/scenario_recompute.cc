// What is recomputed: by granularity, method and modules as in Megatron-LM, or by mode and policy as in torchtitan.
//
// Megatron's uniform keeps the input of every num_layers layers and recomputes those together; its block recomputes the
// first num_layers of each virtual stage. torchtitan's selective recomputes each n-th layer of a stage.
#include <string>
#include <utility>
#include <vector>

#include "config/text.h"
#include "plan/frameworks.h"
#include "plan/scenario_draft.h"

namespace stepcast::plan {
namespace {

constexpr std::int64_t kDefaultEvery = 2;  // torchtitan's selective_ac_option

class RecomputeResolver {
 public:
  explicit RecomputeResolver(ScenarioDraft& draft)
      : draft_(draft),
        given_(draft.message.plan().recompute()),
        preset_(preset_of(draft.read.scenario.framework)),
        recompute_(draft.read.scenario.plan.recompute) {}

  void run() {
    const bool by_layers = preset_.selects_layers && given_.granularity() == "selective" && given_.modules_size() == 0;
    if (given_.has_mode() || given_.has_policy() || by_layers) {
      by_mode();
    } else {
      by_granularity();
    }
  }

 private:
  void by_mode() {
    if (given_.has_granularity() && (given_.has_mode() || given_.has_policy())) {
      draft_.violate("plan.recompute.mode", "granularity and mode say the same",
                     {"granularity, method and modules are Megatron-LM's words, mode and policy torchtitan's"});
      return;
    }
    const std::string mode = given_.has_mode() ? given_.mode() : "selective";
    draft_.record("plan.recompute.mode", mode, given_.has_policy() ? "derived: a policy is given" : "");
    recompute_.kind = mode == "none" ? RecomputeKind::kNone : RecomputeKind::kFull;
    if (mode == "selective") return take_policy();
    if (given_.has_policy()) {
      draft_.violate("plan.recompute.policy", "a policy belongs to mode selective, not " + mode,
                     {"mode: selective, or no policy"});
    }
  }

  // "every 2" layers, "2", or "op".
  void take_policy() {
    std::string policy = given_.has_policy() ? given_.policy() : std::to_string(kDefaultEvery);
    if (policy == "op") {
      draft_.violate("plan.recompute.policy", "recompute of single operators (policy op)",
                     {"policy: every 2, or another number of layers", "mode: full", "mode: none"},
                     ErrorKind::kUnsupported);
      return;
    }
    constexpr std::string_view kEvery = "every ";
    if (policy.starts_with(kEvery)) policy = policy.substr(kEvery.size());
    const auto layers = config::parse_integer(policy);
    if (!layers || *layers < 1 || *layers > 100'000) {
      draft_.violate("plan.recompute.policy", "\"" + config::printable(given_.policy()) + "\" is no policy",
                     {"every N, a number of layers from 1 to 100000", "op"});
      return;
    }
    recompute_.every = *layers;
    draft_.record("plan.recompute.policy", "every " + std::to_string(*layers), std::string(preset_.name) + " default");
  }

  void by_granularity() {
    const bool modules = given_.modules_size() > 0;
    const std::string kind = given_.has_granularity() ? given_.granularity() : modules ? "selective" : "none";
    recompute_.kind = kind == "full"        ? RecomputeKind::kFull
                      : kind == "selective" ? RecomputeKind::kSelective
                                            : RecomputeKind::kNone;
    draft_.record("plan.recompute.granularity", kind, modules ? "derived: modules are given" : "default");
    if (recompute_.kind == RecomputeKind::kSelective) {
      take_modules();
    } else if (modules) {
      draft_.violate("plan.recompute.modules", "modules are recomputed by granularity selective, not " + kind,
                     {"granularity: selective, or no modules"});
    }
    if (recompute_.kind == RecomputeKind::kFull) {
      take_method();
    } else {
      refuse_method(kind);
    }
  }

  void take_modules() {
    std::vector<std::string> modules(given_.modules().begin(), given_.modules().end());
    if (modules.empty()) modules = {"core_attn"};  // Megatron-Core's default
    for (const std::string& module : modules) {
      recompute_.layernorm = recompute_.layernorm || module == "layernorm";
      recompute_.mlp_act = recompute_.mlp_act || module == "mlp_act";
      recompute_.core_attn = recompute_.core_attn || module == "core_attn";
      recompute_.mlp = recompute_.mlp || module == "mlp";
    }
    draft_.record("plan.recompute.modules", "[" + config::join(modules) + "]", "default");
  }

  void take_method() {
    const std::string method = given_.has_method() ? given_.method() : "uniform";
    if (method == "block" && !given_.has_num_layers()) {
      draft_.violate("plan.recompute.method", "block recomputes the first num_layers of each virtual stage",
                     {"num_layers: 1, or another number of layers"});
      return;
    }
    const std::int64_t layers = given_.has_num_layers() ? given_.num_layers() : 1;
    (method == "block" ? recompute_.first : recompute_.together) = layers;
    draft_.record("plan.recompute.method", method, "default");
    draft_.record("plan.recompute.num_layers", std::to_string(layers), "default");
  }

  void refuse_method(const std::string& kind) {
    for (const auto& [field, has] : {std::pair{"plan.recompute.method", given_.has_method()},
                                     std::pair{"plan.recompute.num_layers", given_.has_num_layers()}}) {
      if (has)
        draft_.violate(field, "belongs to granularity full, not " + kind, {"granularity: full, or leave it out"});
    }
  }

  ScenarioDraft& draft_;
  const schema::Plan::Recompute& given_;
  const FrameworkPreset& preset_;
  Recompute& recompute_;
};

}  // namespace

void resolve_recompute(ScenarioDraft& draft) { RecomputeResolver(draft).run(); }

}  // namespace stepcast::plan
