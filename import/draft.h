// The import in progress: readers of all formats put values, remarks and problems here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "import/imported.h"
#include "models/architecture.h"

namespace stepcast::imports {

// A quoted YAML scalar where plain text would be read as something else.
std::string yaml_text(std::string_view text);
// "[a, b]".
std::string yaml_list(const std::vector<std::string>& items);
std::string yaml_bool(bool value);

class Draft {
 public:
  explicit Draft(const ImportRequest& request);

  const ImportRequest& request() const { return request_; }

  // A later value of the same field replaces an earlier one.
  void set(const std::string& field, std::string text, std::string origin);
  void set(const std::string& field, std::int64_t value, std::string origin);
  const ImportedValue* find(std::string_view field) const;

  void ignore(std::string name, Reason reason, std::string detail, Location where);
  void assume(std::string text) { imported_.assumed.push_back(std::move(text)); }
  void convert(std::string text) { imported_.converted.push_back(std::move(text)); }
  void contradict(std::string text) { imported_.contradictions.push_back(std::move(text)); }
  // A value that this release refuses: `setting` is the setting that runs, `consequence` what differs then. Not told
  // where a setting replaces the field.
  void warn(const std::string& field, std::string setting, std::string consequence);
  // A problem: what stands at `where` depends on a variable of the script without a value.
  void ask_for(const std::string& variable, Location where, const std::string& help = "=VALUE");
  void refuse(std::string message, Location where, std::vector<std::string> help = {},
              ErrorKind kind = ErrorKind::kInput);

  // Sets model.config to the model asked for on the command line, if one was. True then.
  bool take_requested_model();
  // The shape of model.config, where it can be found; a problem, once, where it cannot.
  std::optional<models::Architecture> architecture();

  // Devices of the run: asked for on the command line, else `stated`; a problem when neither says. Then the cluster.
  // Returns 0 after a problem.
  std::int64_t take_gpus(std::optional<std::int64_t> stated, const std::string& origin, std::vector<std::string> help);

  // Lays the command line's settings over all, then throws if there were problems.
  Imported finish();

 private:
  struct Warning {
    std::string field;
    std::string setting;
    std::string consequence;
  };

  void lay_setting(const config::Setting& setting);
  void tell_warnings();
  void take_cluster(std::int64_t gpus);

  const ImportRequest& request_;
  Imported imported_;
  ProblemList problems_;
  std::vector<Warning> warnings_;
  bool model_failed_ = false;
};

}  // namespace stepcast::imports
