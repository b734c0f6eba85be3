// Imports of texts, for tests: written to a scratch folder and read from there.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "import/imported.h"
#include "tests/config/scratch_folder.h"

namespace stepcast::imports {

struct Answer {
  Imported imported;
  std::vector<Problem> problems;

  std::string value(std::string_view field) const {
    for (const ImportedValue& value : imported.values) {
      if (value.field == field) return value.text;
    }
    return "-";
  }
  const Ignored* ignored(std::string_view name) const {
    for (const Ignored& entry : imported.ignored) {
      if (entry.name == name) return &entry;
    }
    return nullptr;
  }
  // Messages and help of all problems.
  std::string problem_text() const { return problems.empty() ? "" : to_text(problems); }
};

inline Answer answer(const ImportRequest& request) {
  try {
    return {import_file(request), {}};
  } catch (const Error& fault) {
    return {{}, fault.problems()};
  }
}

inline ImportRequest request_for(const std::string& format, const std::string& file) {
  ImportRequest request;
  request.format = format;
  request.file = file;
  return request;
}

inline Answer import_text(const std::string& format, const std::string& name, const std::string& text,
                          ImportRequest request = {}) {
  const ScratchFolder folder;
  request.format = format;
  request.file = folder.write(name, text);
  return answer(request);
}

inline std::string case_file(const std::string& name) {
  return std::string(STEPCAST_SOURCE_DIR) + "/tests/import/cases/" + name;
}

}  // namespace stepcast::imports
