// Reads the model presets shipped with the project.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "models/hf_config.h"

namespace stepcast::models::testing {

inline constexpr const char* kPresets[] = {"llama-2-7b",    "llama-2-13b",    "llama-2-70b",  "llama-3.1-8b",
                                           "llama-3.1-70b", "llama-3.1-405b", "llama-3.2-1b", "llama-3.2-3b"};

inline std::string preset_path(const std::string& name) {
  return std::string(STEPCAST_SOURCE_DIR) + "/scenarios/models/" + name + ".json";
}

inline std::string preset_text(const std::string& name) {
  std::ifstream file(preset_path(name), std::ios::binary);
  EXPECT_TRUE(file) << preset_path(name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline Architecture preset(const std::string& name) { return parse_hf_config(preset_text(name), preset_path(name)); }

}  // namespace stepcast::models::testing
