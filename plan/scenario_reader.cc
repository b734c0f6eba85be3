// The order of a reading: load and merge, bind, then resolve model, cluster, training, plan, then the rules.
#include "plan/scenario_reader.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "config/text.h"
#include "plan/frameworks.h"
#include "plan/rules.h"
#include "plan/scenario_aliases.h"
#include "plan/scenario_draft.h"

namespace stepcast::plan {
namespace {

constexpr const char* kMissing = "missing required field";  // as config::bind says it

constexpr std::string_view kMegatronFsdp = "megatron-fsdp";  // known, not lowered

// megatron-core@0.12: the version picks nothing yet.
void resolve_framework(ScenarioDraft& draft) {
  const std::string text = draft.message.has_framework() ? draft.message.framework() : "megatron-core";
  const std::size_t at = text.find('@');
  const std::string name = text.substr(0, at);
  if (at != std::string::npos)
    draft.read.notes.push_back("framework: the version in " + config::printable(text) + " is noted only");
  std::vector<std::string> all;
  for (const FrameworkPreset& preset : framework_presets()) all.emplace_back(preset.name);
  if (const FrameworkPreset* preset = find_framework(name)) {
    draft.read.scenario.framework = preset->framework;
  } else if (name == kMegatronFsdp) {
    draft.refuse("framework", "framework: " + name,
                 {"supported: " + config::join(all), "framework: torchtitan with plan.zero: 3 shards alike"},
                 ErrorKind::kUnsupported);
  } else {
    all.emplace_back(kMegatronFsdp);
    const std::vector<std::string> near = config::nearest_names(name, all, 1);
    std::vector<std::string> help{"one of " + config::join(all)};
    if (!near.empty()) help.insert(help.begin(), "did you mean " + near.front() + "?");
    draft.refuse("framework", "no framework is called \"" + config::printable(name) + "\"", std::move(help));
  }
  draft.record("framework", std::string(to_string(draft.read.scenario.framework)), "default");
}

void resolve_name(ScenarioDraft& draft) {
  std::string& name = draft.read.scenario.name;
  std::string origin = "file name";
  if (draft.message.has_name()) {
    name = draft.message.name();
  } else if (!draft.source.file.empty()) {
    name = std::filesystem::path(draft.source.file).stem().string();
  } else {
    name = draft.message.model().has_config() ? draft.message.model().config() : "scenario";
    origin = "model";
  }
  name = config::printable(name, 120);
  draft.record("name", name, origin);
}

void resolve_calibration(ScenarioDraft& draft) {
  const auto& names = draft.message.calibration();
  if (names.size() > 1) {
    draft.refuse("calibration", "calibration: a list of " + std::to_string(names.size()), {"give one"},
                 ErrorKind::kUnsupported);
  }
  if (!names.empty()) draft.read.scenario.calibration = names.Get(0);
  draft.record("calibration", draft.read.scenario.calibration, "default");
}

// Values are recorded as they are resolved; people read them by section, in the schema's order.
void order_values(std::vector<ConfigValue>& values) {
  const auto section = [](const ConfigValue& value) {
    const auto* field = schema::Scenario::descriptor()->FindFieldByName(value.field.substr(0, value.field.find('.')));
    return field == nullptr ? 0 : field->number();
  };
  std::stable_sort(values.begin(), values.end(),
                   [&](const ConfigValue& a, const ConfigValue& b) { return section(a) < section(b); });
}

// Lines of the items, which the binder keeps of the whole list only.
void locate_perturbations(ScenarioDraft& draft, const config::Node& root) {
  const config::Node* list = root.find("perturb");
  if (list == nullptr) return;
  if (list->kind != config::Node::Kind::kList) {
    draft.perturbations_at.push_back(list->where);
    return;
  }
  for (const config::Node& item : list->children) draft.perturbations_at.push_back(item.where);
}

// Required figures are those of the cluster with its base: where the base is missing or cannot be found, that is the
// fault to tell, not every figure it would have stated.
void bind_scenario(ScenarioDraft& draft, const config::Node& root) {
  ProblemList found;
  config::bind(root, draft.message, found, draft.bound);
  bool lacks_figures = false;
  for (const Problem& problem : found.problems()) {
    const bool figure = problem.message == kMissing && problem.where.field.rfind("cluster.", 0) == 0;
    if (figure && !draft.cluster_is_whole) {
      lacks_figures = true;
    } else {
      draft.problems.add(problem);
    }
  }
  if (!draft.message.has_cluster() && root.find("cluster") == nullptr) {
    draft.problems.add(ErrorKind::kInput, kMissing, draft.locate("cluster"));
  } else if (lacks_figures && !draft.given("cluster.base")) {
    draft.problems.add(ErrorKind::kInput, kMissing, draft.locate("cluster.base"),
                       {"name a preset, such as hgx-h100 or local-cpu, or state every figure"});
  }
}

// "clusters/hgx-h100.yaml:8 (built in)"
std::string origin_of(Location where) {
  constexpr std::string_view kBuiltIn = " (built in)";
  if (where.file.size() <= kBuiltIn.size() || !std::string_view(where.file).ends_with(kBuiltIn)) {
    return config::origin_text(where);
  }
  where.file.resize(where.file.size() - kBuiltIn.size());
  return config::origin_text(where) + std::string(kBuiltIn);
}

bool names_cluster(const Problem& problem) { return problem.where.field.rfind("cluster", 0) == 0; }

// Runs a step that throws for its own part, so that the problems of the other parts are reported with it.
template <class Step>
bool attempt(ScenarioDraft& draft, Step step) {
  try {
    step(draft);
    return true;
  } catch (const Error& fault) {
    for (const Problem& problem : fault.problems()) draft.problems.add(problem);
    return false;
  }
}

}  // namespace

Location ScenarioDraft::locate(std::string_view field) const {
  for (const config::BoundValue& value : bound) {
    if (value.field == field) return value.where;
  }
  const config::Node* item = tree == nullptr ? nullptr : config::find_path(*tree, field);
  if (item != nullptr) return {item->where.file, item->where.line, std::string(field)};
  return {source.file.empty() ? "command line" : source.file, 0, std::string(field)};
}

bool ScenarioDraft::given(std::string_view field) const {
  return std::any_of(bound.begin(), bound.end(), [&](const config::BoundValue& v) { return v.field == field; });
}

void ScenarioDraft::record(std::string field, std::string value, std::string otherwise) {
  std::string origin = given(field) ? origin_of(locate(field)) : std::move(otherwise);
  read.values.push_back({std::move(field), std::move(value), std::move(origin)});
}

void ScenarioDraft::refuse(std::string_view field, std::string text, std::vector<std::string> help, ErrorKind kind) {
  problems.add(kind, std::move(text), locate(field), std::move(help));
}

void ScenarioDraft::violate(std::string_view field, std::string text, std::vector<std::string> help, ErrorKind kind) {
  read.violations.push_back({kind, std::move(text), locate(field), std::move(help)});
}

ReadScenario read_scenario(const config::ScenarioSource& source) {
  ScenarioDraft draft{source, {}, {}, {}, {}, false, {}, nullptr};
  const config::Canonicalise canonicalise = [&draft](config::Node& layer, ProblemList& problems) {
    canonicalise_names(layer, problems, draft.read.notes);
  };
  config::Node root = config::load_source(source, *schema::Scenario::descriptor(), canonicalise, draft.problems);
  attempt(draft, [&root](ScenarioDraft& d) { lay_cluster(d, root); });
  bind_scenario(draft, root);
  locate_perturbations(draft, root);
  draft.tree = &root;

  resolve_name(draft);
  resolve_framework(draft);
  const auto& faults = draft.problems.problems();
  const bool cluster_works = draft.message.has_cluster() && (draft.cluster_is_whole || !draft.given("cluster.base")) &&
                             std::none_of(faults.begin(), faults.end(), names_cluster);
  const bool model = draft.message.has_model() && attempt(draft, resolve_model);
  const bool cluster = cluster_works && attempt(draft, resolve_cluster);
  resolve_training(draft);
  resolve_calibration(draft);
  resolve_stack(draft);
  resolve_job(draft);
  judge_perturbations(draft);
  if (model && cluster && draft.problems.empty()) {
    resolve_plan(draft);
    attempt(draft, resolve_placement);
  }
  draft.problems.throw_if_any();
  order_values(draft.read.values);

  RuleReport report =
      check_rules(draft.read.scenario, [&draft](std::string_view field) { return draft.locate(field); });
  for (Problem& problem : report.violations) draft.read.violations.push_back(std::move(problem));
  for (std::string& warning : report.warnings) draft.read.warnings.push_back(std::move(warning));
  if (draft.read.violations.empty()) {
    apply_perturbations(draft);
    if (draft.problems.empty()) judge_network(draft);
  }
  draft.problems.throw_if_any();
  return std::move(draft.read);
}

void throw_if_violated(const ReadScenario& read) {
  if (!read.violations.empty()) throw Error(read.violations);
}

}  // namespace stepcast::plan
