// What tests of screens share.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "config/search.h"

namespace stepcast::report {

// Every line of `text` fits a terminal of 120 columns.
inline void expect_narrow(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
}

// A scratch folder of the user that holds `file`, such as models/my.json, with this text.
inline config::SearchPath folder_with(const std::string& file, const std::string& text) {
  const auto folder =
      std::filesystem::path(::testing::TempDir()) / ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::create_directories((folder / file).parent_path());
  std::ofstream(folder / file) << text;
  return {{folder.string()}};
}

}  // namespace stepcast::report
