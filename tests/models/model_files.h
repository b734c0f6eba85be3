// Reads the model presets shipped with the project.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "models/hf_config.h"

namespace stepcast::models::testing {

inline std::string preset_path(const std::string& name) {
  return std::string(STEPCAST_SOURCE_DIR) + "/scenarios/models/" + name + ".json";
}

// Names of all presets, sorted.
inline std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  const auto folder = std::filesystem::path(STEPCAST_SOURCE_DIR) / "scenarios" / "models";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

inline std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline std::string preset_text(const std::string& name) { return file_text(preset_path(name)); }

inline Architecture preset(const std::string& name) { return parse_hf_config(preset_text(name), preset_path(name)); }

}  // namespace stepcast::models::testing
