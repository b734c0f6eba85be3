// Finds the files a scenario names: a path is taken as it is, a name is looked up in the user's directories and then
// among the presets embedded in the binary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace stepcast::config {

// What a name stands for decides its folder and its ending: models/NAME.json, clusters/NAME.yaml,
// calibrations/NAME.yaml.
enum class PresetKind : std::uint8_t { kModel, kCluster, kCalibration };

struct SearchPath {
  std::vector<std::string>
      directories;  // first wins; each holds models/, clusters/, calibrations/ or the files themselves
};

// Splits the value of an environment variable such as STEPCAST_PATH: folders separated by colons, empty ones skipped.
SearchPath split_search_path(std::string_view text);

struct FoundFile {
  std::string file;  // for messages: a path, or "models/llama-3.1-8b.json (built in)"
  std::string name;  // the stem: llama-3.1-8b
  std::string text;
  bool built_in = false;
};

// Reads a regular file of at most kMaxFileBytes. Throws Error (kInput) at `where`, or at the file when `where` is
// empty.
std::string read_file(const std::string& path, const Location& where = {});

// True for text that names a file rather than a preset: it has a slash or ends in .json, .yaml or .yml.
bool is_path(std::string_view name_or_path);

// `beside` is the file that says the name; a relative path starts at its folder (empty: the current folder). A model
// path may be a folder with a config.json. Throws Error (kInput) listing the nearest names.
FoundFile find_file(PresetKind kind, const std::string& name_or_path, const std::string& beside,
                    const SearchPath& search, const Location& where);

// Names of the embedded presets of a kind and of those in the directories, sorted, each once.
std::vector<std::string> preset_names(PresetKind kind, const SearchPath& search);

}  // namespace stepcast::config
