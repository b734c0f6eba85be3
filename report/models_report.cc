// The same reading and counting as a scenario's model.
#include "report/models_report.h"

#include "base/error.h"
#include "models/hf_config.h"
#include "plan/model_support.h"

namespace stepcast::report {
namespace {

constexpr std::int64_t kSequences[] = {2048, 4096, 8192, 32768};

}  // namespace

ModelEntry read_model(const std::string& name, const config::SearchPath& search) {
  const config::FoundFile found = config::find_file(config::PresetKind::kModel, name, "", search, {});
  ModelEntry entry;
  entry.name = found.name;
  entry.file = found.file;
  entry.shape = models::parse_hf_config(found.text, found.file, &entry.ignored_keys);
  entry.parameters = models::count_parameters(entry.shape);
  for (const std::int64_t sequence : kSequences) {
    entry.flops.push_back({sequence, models::training_flops_per_token(entry.shape, sequence)});
  }
  entry.not_lowered = plan::unsupported_parts(entry.shape);
  return entry;
}

ModelList read_all_models(const config::SearchPath& search) {
  ModelList list;
  for (const std::string& name : config::preset_names(config::PresetKind::kModel, search)) {
    try {
      list.entries.push_back(read_model(name, search));
    } catch (const Error& error) {
      list.unreadable.push_back({name, error.problems().front().message});
    }
  }
  return list;
}

}  // namespace stepcast::report
