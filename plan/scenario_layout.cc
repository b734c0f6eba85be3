// Virtual stages and their layers: from vp, from layers_per_virtual_stage or from a layout given in full.
#include <algorithm>
#include <string>
#include <utility>

#include "config/text.h"
#include "plan/layout.h"
#include "plan/scenario_draft.h"

namespace stepcast::plan {
namespace {

class LayoutResolver {
 public:
  explicit LayoutResolver(ScenarioDraft& draft)
      : draft_(draft), given_(draft.message.plan()), scenario_(draft.read.scenario), plan_(draft.read.scenario.plan) {}

  // Sets the layout and, with it, vp: a layout given in full says how many virtual stages there are.
  void run() {
    plan_.vp = static_cast<std::int32_t>(given_.has_vp() ? given_.vp() : 1);
    std::string vp_origin = "default";
    std::string layout_origin = "default";
    const std::int64_t layers = scenario_.model.layers;
    std::vector<std::string> items(given_.layout().begin(), given_.layout().end());
    const bool automatic = items.empty() ? !draft_.given("plan.layout") : items.size() == 1 && items.front() == "auto";
    if (automatic) {
      apply_layers_per_virtual_stage(layers, vp_origin);
      const std::int64_t stages = std::int64_t{plan_.pp} * plan_.vp;
      // More stages than items: the rules say so, with the values.
      if (stages > layers + 2) {
        draft_.violate(given_.has_vp() ? "plan.vp" : "plan.pp",
                       std::to_string(stages) + " virtual stages (pp * vp) for " + std::to_string(layers) +
                           " layers: more than the layers, embedding and loss counted",
                       {"pp * vp of at most " + std::to_string(layers + 2)});
      } else {
        const std::int64_t stage = std::int64_t{plan_.tp} * plan_.cp;  // ranks of one
        const std::int64_t ranks = scenario_.gpus % stage == 0 ? scenario_.gpus / stage : 0;
        accept_layout(auto_layout(layers, plan_.pp, plan_.vp, ranks), "plan.pp");
        layout_origin = layers % stages == 0 ? "derived: layers / (pp * vp)"
                                             : "derived: (layers + 2) / (pp * vp), embedding and loss counted";
      }
    } else {
      const bool text = items.size() == 1 && !config::looks_like_integer(items.front());
      accept_explicit(text ? parse_layout(items.front()) : list_layout(items), vp_origin);
    }
    draft_.record("plan.vp", std::to_string(plan_.vp), vp_origin);
    draft_.record("plan.layout", plan_.layout.empty() ? "-" : layout_text(plan_.layout), layout_origin);
    if (!given_.has_layers_per_virtual_stage()) return;
    draft_.record("plan.layers_per_virtual_stage", std::to_string(given_.layers_per_virtual_stage()), "");
  }

 private:
  void apply_layers_per_virtual_stage(std::int64_t layers, std::string& vp_origin) {
    if (!given_.has_layers_per_virtual_stage()) return;
    const std::int64_t per_stage = given_.layers_per_virtual_stage();
    const std::int64_t step = per_stage * plan_.pp;
    if (layers % step != 0) {
      draft_.violate("plan.layers_per_virtual_stage", std::to_string(layers) + " layers do not divide over pp " +
                                                          std::to_string(plan_.pp) + " in parts of " +
                                                          std::to_string(per_stage));
      return;
    }
    const std::int64_t vp = layers / step;
    if (given_.has_vp() && given_.vp() != vp) {
      draft_.violate("plan.layers_per_virtual_stage",
                     "layers_per_virtual_stage " + std::to_string(per_stage) + " makes vp " + std::to_string(vp) +
                         ", vp says " + std::to_string(given_.vp()),
                     {"give one of the two"});
    }
    plan_.vp = static_cast<std::int32_t>(vp);
    vp_origin = "derived: layers / (pp * layers_per_virtual_stage)";
  }

  void accept_explicit(const LayoutResult& result, std::string& vp_origin) {
    if (!result.ok()) {
      draft_.violate("plan.layout", result.problem, result.help, result.kind);
      return;
    }
    const auto stages = static_cast<std::int64_t>(result.layers.size());
    if (stages % plan_.pp != 0) {
      draft_.violate("plan.layout", "the layout has " + std::to_string(stages) + " stages, not a multiple of pp " +
                                        std::to_string(plan_.pp));
      return;
    }
    const std::int64_t vp = stages / plan_.pp;
    if (given_.has_vp() && given_.vp() != vp) {
      draft_.violate("plan.layout",
                     "the layout has " + std::to_string(stages) + " stages, pp * vp is " + std::to_string(plan_.pp) +
                         " * " + std::to_string(plan_.vp) + " = " + std::to_string(std::int64_t{plan_.pp} * plan_.vp),
                     {"leave vp out: the layout makes it " + std::to_string(vp)});
      return;
    }
    plan_.vp = static_cast<std::int32_t>(vp);
    vp_origin = "derived: stages of the layout / pp";
    std::int64_t sum = 0;
    for (const std::int64_t count : result.layers) sum += count;
    if (sum != scenario_.model.layers) {
      draft_.violate("plan.layout", "the layout places " + std::to_string(sum) + " layers, the model has " +
                                        std::to_string(scenario_.model.layers));
      return;
    }
    agree_with_layers_per_virtual_stage(result.layers);
    accept_layout(result, "plan.layout");
  }

  void agree_with_layers_per_virtual_stage(const std::vector<std::int64_t>& layers) {
    if (!given_.has_layers_per_virtual_stage()) return;
    const std::int64_t per_stage = given_.layers_per_virtual_stage();
    const auto other = std::find_if(layers.begin(), layers.end(), [&](std::int64_t n) { return n != per_stage; });
    if (other == layers.end()) return;
    draft_.violate("plan.layers_per_virtual_stage",
                   "layers_per_virtual_stage is " + std::to_string(per_stage) + ", virtual stage " +
                       std::to_string(other - layers.begin()) + " of the layout holds " + std::to_string(*other) +
                       " layers",
                   {"give one of the two"});
  }

  void accept_layout(const LayoutResult& result, std::string_view field) {
    if (result.ok()) {
      plan_.layout = stage_items(result.layers);
    } else {
      draft_.violate(field, result.problem, result.help, result.kind);
    }
  }

  ScenarioDraft& draft_;
  const schema::Plan& given_;
  Scenario& scenario_;
  Plan& plan_;
};

}  // namespace

void resolve_layout(ScenarioDraft& draft) { LayoutResolver(draft).run(); }

}  // namespace stepcast::plan
