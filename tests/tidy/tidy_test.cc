// The house rules hold in the whole tree.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/tidy/rules.h"
#include "tests/tidy/source.h"

namespace stepcast::tidy {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string>& folders() {
  static const std::vector<std::string> names = {"base",  "config",    "program", "models", "topology",
                                                 "trace", "kernels",   "plan",    "import", "sim",
                                                 "exec",  "calibrate", "report",  "cli",    "tests"};
  return names;
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Paths of the tree that `wanted` accepts, relative to the root, sorted.
template <class Wanted>
std::vector<std::string> paths_where(Wanted wanted) {
  std::vector<std::string> paths;
  const fs::path root = STEPCAST_SOURCE_DIR;
  for (const std::string& folder : folders()) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.is_regular_file() && wanted(entry.path())) paths.push_back(fs::relative(entry.path(), root).string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool is_source(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".h" || extension == ".cc" || extension == ".cu" || extension == ".cuh";
}

bool is_build_file(const fs::path& path) { return path.filename() == "CMakeLists.txt" || path.extension() == ".cmake"; }

TEST(Tree, KeepsTheHouseRules) {
  Findings findings;
  const std::vector<std::string> paths = paths_where(is_source);
  EXPECT_GT(paths.size(), 10U);  // else the wrong folder was read
  for (const std::string& path : paths) {
    const Source source = read_source(path, text_of(fs::path(STEPCAST_SOURCE_DIR) / path));
    const Findings found = check_source(source);
    findings.insert(findings.end(), found.begin(), found.end());
  }
  EXPECT_TRUE(findings.empty()) << to_text(findings);
}

TEST(Tree, BuildsWithoutFastMath) {
  Findings findings;
  std::vector<std::string> paths = paths_where(is_build_file);
  paths.insert(paths.end(), {"CMakeLists.txt", "CMakePresets.json", "cmake/StepcastLibrary.cmake"});
  for (const std::string& path : paths) {
    check_build_file(path, text_of(fs::path(STEPCAST_SOURCE_DIR) / path), findings);
  }
  EXPECT_TRUE(findings.empty()) << to_text(findings);
}

TEST(Tree, ExplainsEveryFolder) {
  Findings findings;
  for (const std::string& folder : folders()) {
    const fs::path path = fs::path(STEPCAST_SOURCE_DIR) / folder;
    if (!fs::exists(path) || fs::is_empty(path)) continue;
    check_readme(folder, fs::exists(path / "README.md"), text_of(path / "README.md"), findings);
  }
  EXPECT_TRUE(findings.empty()) << to_text(findings);
}

TEST(Tree, DocumentsItsProtos) {
  Findings findings;
  for (const std::string& path : paths_where([](const fs::path& p) { return p.extension() == ".proto"; })) {
    const Source source = read_source(path, text_of(fs::path(STEPCAST_SOURCE_DIR) / path));
    check_opening(source, findings);
    check_sizes(source, findings);
  }
  EXPECT_TRUE(findings.empty()) << to_text(findings);
}

}  // namespace
}  // namespace stepcast::tidy
