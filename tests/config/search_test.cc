// Lookup order: paths, the user's folders, the presets in the binary.
#include "config/search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/config/scratch_folder.h"

namespace stepcast::config {
namespace {

TEST(FindFile, FindsEmbeddedPresets) {
  const FoundFile found = find_file(PresetKind::kCluster, "hgx-h100", "", {}, {});
  EXPECT_EQ(found.name, "hgx-h100");
  EXPECT_EQ(found.file, "clusters/hgx-h100.yaml (built in)");
  EXPECT_NE(found.text.find("gpus_per_node"), std::string::npos);
}

TEST(FindFile, PrefersTheUsersFolder) {
  const ScratchFolder folder;
  folder.write("clusters/hgx-h100.yaml", "name: mine\n");
  folder.write("models/own.json", "{}\n");
  const SearchPath search{{folder.path("missing"), folder.path("")}};
  EXPECT_EQ(find_file(PresetKind::kCluster, "hgx-h100", "", search, {}).text, "name: mine\n");
  const std::vector<std::string> names = preset_names(PresetKind::kModel, search);
  EXPECT_TRUE(std::binary_search(names.begin(), names.end(), "own"));
}

TEST(FindFile, TakesPathsRelativeToTheFileThatNamesThem) {
  const ScratchFolder folder;
  folder.write("runs/model/config.json", "{\"a\": 1}");
  const std::string run = folder.path("runs/run.yaml");
  EXPECT_EQ(find_file(PresetKind::kModel, "./model/config.json", run, {}, {}).name, "model");
  folder.write("runs/meta/params.json", "{}");
  EXPECT_EQ(find_file(PresetKind::kModel, "./meta/params.json", run, {}, {}).name, "meta");
  EXPECT_EQ(find_file(PresetKind::kModel, "./model", run, {}, {}).text, "{\"a\": 1}");
}

TEST(FindFile, ListsTheNearestNames) {
  try {
    find_file(PresetKind::kModel, "llama-3.1-8bb", "", {}, {"run.yaml", 2, "model"});
    FAIL() << "found a model that does not exist";
  } catch (const Error& fault) {
    EXPECT_EQ(fault.exit_code(), 3);
    const Problem& problem = fault.problems().front();
    EXPECT_EQ(problem.where.line, 2);
    EXPECT_NE(problem.help.front().find("did you mean llama-3.1-8b"), std::string::npos) << problem.help.front();
  }
}

TEST(FindFile, RefusesNamesThatClimbAndThingsThatAreNotFiles) {
  const ScratchFolder folder;
  folder.write("models/a.json", "{}");
  const SearchPath search{{folder.path("models")}};
  for (const std::string& name : {std::string("../models/a"), std::string("."), std::string(""), std::string("a\0b", 3),
                                  folder.path("models"), std::string("/dev/zero.json"), std::string("no/such.json")}) {
    EXPECT_THROW(find_file(PresetKind::kModel, name, "", search, {}), Error) << name;
  }
}

TEST(SplitSearchPath, SkipsEmptyParts) {
  EXPECT_EQ(split_search_path(":/a::b:").directories, (std::vector<std::string>{"/a", "b"}));
  EXPECT_TRUE(split_search_path("").directories.empty());
}

TEST(ReadFile, RefusesFoldersDevicesAndBigFiles) {
  const ScratchFolder folder;
  const std::string big = folder.write("big.yaml", std::string((4u << 20) + 1, ' '));
  for (const std::string& path : {folder.path(""), std::string("/dev/zero"), std::string("/no/such"), big}) {
    EXPECT_THROW(read_file(path), Error) << path;
  }
}

}  // namespace
}  // namespace stepcast::config
