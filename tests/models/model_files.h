// Reads the model presets shipped with the project, and says what the reader of model files finds wrong.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.h"
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

// What is wrong with a model file m.json of this text.
inline std::vector<Problem> problems_in(const std::string& text) {
  try {
    parse_hf_config(text, "m.json");
  } catch (const Error& e) {
    return e.problems();
  }
  return {};
}

// Expects exactly one problem, at m.json:line: field, whose message contains `part`.
inline void expect_problem(const std::string& text, ErrorKind kind, int line, const std::string& field,
                           const std::string& part) {
  const std::vector<Problem> problems = problems_in(text);
  ASSERT_EQ(problems.size(), 1u) << text << to_text(problems);
  EXPECT_EQ(problems[0].kind, kind) << to_text(problems);
  EXPECT_EQ(problems[0].where.file, "m.json");
  EXPECT_EQ(problems[0].where.line, line) << to_text(problems);
  EXPECT_EQ(problems[0].where.field, field) << to_text(problems);
  EXPECT_NE(problems[0].message.find(part), std::string::npos) << to_text(problems);
}

}  // namespace stepcast::models::testing
