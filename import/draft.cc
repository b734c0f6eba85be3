// Order of the sections, quoting, and what every format lacks in the same way: a cluster.
#include "import/draft.h"

#include <algorithm>
#include <array>
#include <utility>

#include "config/text.h"
#include "models/hf_config.h"

namespace stepcast::imports {
namespace {

constexpr std::array<std::string_view, 9> kSections = {"schema",  "name",     "framework", "model", "gpus",
                                                       "cluster", "training", "plan",      "stack"};

std::size_t section_of(const ImportedValue& value) {
  const std::string_view section = std::string_view(value.field).substr(0, value.field.find('.'));
  return static_cast<std::size_t>(std::find(kSections.begin(), kSections.end(), section) - kSections.begin());
}

}  // namespace

std::string yaml_text(std::string_view written) {
  constexpr std::size_t kMost = 4096;
  std::string text = config::printable(written, kMost);
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-+./").find(c) != std::string_view::npos;
  });
  if (plain && text.front() != '-' && text.front() != '+') return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string yaml_list(const std::vector<std::string>& items) {
  std::vector<std::string> texts;
  for (const std::string& item : items) texts.push_back(yaml_text(item));
  return "[" + config::join(texts) + "]";
}

std::string yaml_bool(bool value) { return value ? "true" : "false"; }

Draft::Draft(const ImportRequest& request) : request_(request) {
  imported_.format = request.format;
  imported_.file = request.file;
  set("schema", "stepcast/scenario/1", "");
}

void Draft::set(const std::string& field, std::string text, std::string origin) {
  for (ImportedValue& value : imported_.values) {
    if (value.field != field) continue;
    value = {field, std::move(text), std::move(origin)};
    return;
  }
  imported_.values.push_back({field, std::move(text), std::move(origin)});
}

void Draft::set(const std::string& field, std::int64_t value, std::string origin) {
  set(field, std::to_string(value), std::move(origin));
}

const ImportedValue* Draft::find(std::string_view field) const {
  const auto& values = imported_.values;
  const auto found =
      std::find_if(values.begin(), values.end(), [&](const ImportedValue& value) { return value.field == field; });
  return found == values.end() ? nullptr : &*found;
}

void Draft::ignore(std::string name, Reason reason, std::string detail, Location where) {
  imported_.ignored.push_back({std::move(name), reason, std::move(detail), std::move(where)});
}

void Draft::refuse(std::string message, Location where, std::vector<std::string> help, ErrorKind kind) {
  problems_.add(kind, std::move(message), std::move(where), std::move(help));
}

void Draft::warn(const std::string& field, std::string setting, std::string consequence) {
  warnings_.push_back({field, std::move(setting), std::move(consequence)});
}

void Draft::ask_for(const std::string& variable, Location where, const std::string& help) {
  const bool named = variable.find_first_of("$`{#") == std::string::npos;
  const std::string what = named ? "the variable " + variable : "the output of a command, " + variable;
  refuse("what stands here depends on " + what + ", which has no value here", std::move(where),
         {named ? "give --define " + variable + help : "put the value in its place"});
}

bool Draft::take_requested_model() {
  if (request_.model.empty()) return false;
  set("model.config", yaml_text(request_.model), "--model " + request_.model);
  return true;
}

std::optional<models::Architecture> Draft::architecture() {
  const ImportedValue* config = find("model.config");
  if (config == nullptr || model_failed_) return std::nullopt;
  std::string name = config->text;
  if (name.starts_with('"')) name = name.substr(1, name.size() - 2);
  try {
    const config::FoundFile found =
        config::find_file(config::PresetKind::kModel, name, "", request_.search, {config->origin, 0, ""});
    return models::parse_hf_config(found.text, found.file);
  } catch (const Error& fault) {
    model_failed_ = true;
    for (const Problem& problem : fault.problems()) {
      if (problem.kind != ErrorKind::kUnsupported) problems_.add(problem);
    }
    return std::nullopt;
  }
}

std::int64_t Draft::take_gpus(std::optional<std::int64_t> stated, const std::string& origin,
                              std::vector<std::string> help) {
  const std::optional<std::int64_t> gpus = request_.gpus ? request_.gpus : stated;
  if (!gpus) {
    help.insert(help.begin(), "give --gpus N, the number of devices of the run");
    refuse("the number of devices is not known", {request_.file, 0, ""}, std::move(help));
    return 0;
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  if (*gpus < 1 || *gpus > kMost) {
    refuse(std::to_string(*gpus) + " devices", {request_.file, 0, ""}, {"from 1 to 2^24"});
    return 0;
  }
  set("gpus", *gpus, request_.gpus ? "--gpus " + std::to_string(*gpus) : origin);
  if (request_.gpus && stated && *stated != *request_.gpus) {
    contradict("--gpus " + std::to_string(*request_.gpus) + " holds; " + origin + " says " + std::to_string(*stated));
  }
  take_cluster(*gpus);
  return *gpus;
}

void Draft::take_cluster(std::int64_t gpus) {
  if (!request_.cluster.empty()) return set("cluster", yaml_text(request_.cluster), "--cluster " + request_.cluster);
  const std::string cluster = gpus <= 8 ? "hgx-h100" : "hgx-h100-ndr400-rail";
  set("cluster", cluster, "assumed");
  assume("cluster " + cluster + ": the source does not say what it runs on (--cluster NAME)");
}

// A setting replaces the whole it names. One inside a scalar replaces that, too, but a cluster's name stays its base.
void Draft::lay_setting(const config::Setting& setting) {
  for (ImportedValue& value : imported_.values) {
    if (value.field == "cluster" && setting.field.starts_with("cluster.")) value.field = "cluster.base";
  }
  std::erase_if(imported_.values, [&](const ImportedValue& value) {
    return value.field.starts_with(setting.field + ".") || setting.field.starts_with(value.field + ".");
  });
  set(setting.field, setting.value, setting.origin);
}

void Draft::tell_warnings() {
  for (Warning& warning : warnings_) {
    const ImportedValue* value = find(warning.field);
    if (value == nullptr) continue;
    imported_.warnings.push_back(value->field + ": " + value->text + " (" + value->origin +
                                 ") is not simulated yet: simulate refuses it; --set " + warning.setting +
                                 " runs, and " + warning.consequence);
  }
}

// A warning goes by the value it is about; a setting of that field has taken it away.
Imported Draft::finish() {
  const std::vector<config::Setting>& settings = request_.settings;
  std::erase_if(warnings_, [&](const Warning& warning) {
    return std::any_of(settings.begin(), settings.end(), [&](const config::Setting& setting) {
      return warning.field == setting.field || warning.field.starts_with(setting.field + ".");
    });
  });
  for (const config::Setting& setting : settings) lay_setting(setting);
  tell_warnings();
  problems_.throw_if_any();
  std::stable_sort(imported_.values.begin(), imported_.values.end(),
                   [](const ImportedValue& a, const ImportedValue& b) { return section_of(a) < section_of(b); });
  return std::move(imported_);
}

}  // namespace stepcast::imports
