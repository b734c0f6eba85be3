// Layers: extends, settings, and who wins.
#include "config/source.h"

#include <gtest/gtest.h>

#include "config/options.pb.h"
#include "tests/config/scratch_folder.h"

namespace stepcast::config {
namespace {

Node load(const std::string& file, const std::vector<std::string>& settings = {}) {
  ScenarioSource source;
  source.file = file;
  for (const std::string& setting : settings) source.settings.push_back(parse_setting(setting));
  ProblemList problems;
  Node root = load_source(
      source, *FieldRule::descriptor(), [](Node&, ProblemList&) {}, problems);
  problems.throw_if_any();
  return root;
}

TEST(ParseSetting, SplitsAtTheFirstEquals) {
  const Setting setting = parse_setting("plan.layout=a=b");
  EXPECT_EQ(setting.field, "plan.layout");
  EXPECT_EQ(setting.value, "a=b");
  EXPECT_EQ(setting.origin, "--set plan.layout=a=b");
  for (const char* text : {"plan.tp", "=4", ""}) {
    try {
      parse_setting(text);
      FAIL() << text;
    } catch (const Error& fault) {
      EXPECT_EQ(fault.exit_code(), 2);
    }
  }
}

TEST(LoadSource, LaysAFileOverWhatItExtends) {
  const ScratchFolder folder;
  folder.write("base/base.yaml", "name: base\nmin: 1\nmax: 9\n");
  folder.write("mid.yaml", "extends: base/base.yaml\nmax: 8\n");
  const Node root = load(folder.write("top.yaml", "extends: mid.yaml\nmin: 2\n"));
  EXPECT_EQ(root.find("min")->text, "2");
  EXPECT_EQ(root.find("max")->text, "8");
  EXPECT_EQ(root.find("max")->where.file, folder.path("mid.yaml"));
  EXPECT_EQ(root.find("max")->where.line, 2);
  EXPECT_EQ(root.find("name"), nullptr);  // a variant is not called as its base
}

TEST(LoadSource, RefusesCyclesAndMissingBases) {
  const ScratchFolder folder;
  folder.write("a.yaml", "extends: b.yaml\n");
  const std::string b = folder.write("b.yaml", "min: 1\nextends: a.yaml\n");
  EXPECT_THROW(load(b), Error);
  try {
    load(folder.write("c.yaml", "min: 1\nextends: nowhere.yaml\n"));
    FAIL();
  } catch (const Error& fault) {
    EXPECT_EQ(fault.problems().front().where.line, 2);
    EXPECT_EQ(fault.problems().front().where.field, "extends");
  }
}

TEST(LoadSource, SettingsWinAndTakeListsAndStructs) {
  const ScratchFolder folder;
  const std::string file = folder.write("run.yaml", "min: 1\n");
  const Node root = load(file, {"min=5", "values=[a, b]", "x.y={k: [1, {m: 2}]}", "preset=80 GiB"});
  EXPECT_EQ(root.find("min")->text, "5");
  EXPECT_EQ(origin_text(root.find("min")->where), "--set min=5");
  EXPECT_EQ(flow_text(*root.find("values")), "[a, b]");
  EXPECT_EQ(flow_text(*root.find("x")), "{y: {k: [1, {m: 2}]}}");
  EXPECT_EQ(root.find("preset")->text, "80 GiB");
}

TEST(LoadSource, RefusesSettingsThatDoNotParse) {
  for (const char* setting : {"min=[1", "a..b=1", ".a=1", "min=", "min=\xFF", "extends=a.yaml"}) {
    EXPECT_THROW(load("", {setting}), Error) << setting;
  }
}

}  // namespace
}  // namespace stepcast::config
