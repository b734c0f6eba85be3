// Lists what plan/rules found; the wording of a problem is that of base/error.
#include <fmt/format.h>

#include <algorithm>

#include "plan/layout.h"
#include "report/check_output.h"
#include "report/json.h"
#include "report/resolved_plan.h"
#include "report/text.h"

namespace stepcast::report {
namespace {

std::string config_block(const plan::ReadScenario& read) {
  std::size_t field_width = 5;
  std::size_t value_width = 5;
  for (const plan::ConfigValue& v : read.values) {
    field_width = std::max(field_width, v.field.size());
    value_width = std::max(value_width, v.value.size());
  }
  // One long value (a layout, say) does not push every origin off the screen.
  value_width = std::min<std::size_t>(value_width, 36);
  std::string text = fmt::format("\n{:<{}}  {:<{}}  origin\n", "field", field_width, "value", value_width);
  for (const plan::ConfigValue& v : read.values) {
    text += fmt::format("{:<{}}  {:<{}}  {}\n", v.field, field_width, v.value, value_width, v.origin);
  }
  return text;
}

std::string problems_block(const plan::ReadScenario& read) {
  const std::size_t count = read.violations.size();
  const char* const plural = count == 1 ? "" : "s";
  const std::string verdict =
      only_unsupported(read)
          ? fmt::format("UNSUPPORTED  {}: {} choice{} known, not supported yet", read.scenario.name, count, plural)
          : fmt::format("INVALID  {}: {} rule{} broken", read.scenario.name, count, plural);
  std::string text = verdict + "\n\n" + stepcast::to_text(read.violations);
  if (text.back() != '\n') text += '\n';
  return text;
}

}  // namespace

bool only_unsupported(const plan::ReadScenario& read) {
  return !read.violations.empty() && std::all_of(read.violations.begin(), read.violations.end(),
                                                 [](const Problem& p) { return p.kind == ErrorKind::kUnsupported; });
}

std::string check_screen(const plan::ReadScenario& read, bool show_config) {
  std::string text;
  if (read.violations.empty()) {
    text = fmt::format("OK  {} is valid\n", read.scenario.name);
    text += wrapped("plan", kLabelWidth, plan_text(read.scenario));
    text += wrapped("layout", kLabelWidth, plan::layout_text(read.scenario.plan.layout));
    text += wrapped("memory", kLabelWidth, "not judged here: see simulate");
  } else {
    text = problems_block(read);
  }
  for (const std::string& warning : read.warnings) text += wrapped("warning", kLabelWidth, warning);
  for (const std::string& note : read.notes) text += wrapped("note", kLabelWidth, note);
  if (show_config) text += config_block(read);
  return text;
}

std::string check_json(const plan::ReadScenario& read) {
  Json config = Json::array();
  for (const plan::ConfigValue& v : read.values) {
    config.push_back({{"field", v.field}, {"value", v.value}, {"origin", v.origin}});
  }
  const Json json = {{"schema", "stepcast/check/1"},
                     {"scenario", read.scenario.name},
                     {"valid", read.violations.empty()},
                     {"violations", problems_json(read.violations)},
                     {"warnings", read.warnings},
                     {"notes", read.notes},
                     {"config", config}};
  return to_text(json);
}

}  // namespace stepcast::report
