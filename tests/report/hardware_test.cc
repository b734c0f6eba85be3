// Every figure of every preset with its source, through the same reading as `stepcast hardware`.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "report/hardware_output.h"
#include "tests/report/screens.h"

namespace stepcast::report {
namespace {

const HardwareFigure& figure(const HardwareEntry& entry, const std::string& field) {
  static const HardwareFigure none;
  for (const HardwareFigure& f : entry.figures) {
    if (f.field == field) return f;
  }
  ADD_FAILURE() << entry.name << " has no " << field;
  return none;
}

// 400 Gb/s are 50e9 B/s. The node's figures keep the file that states them and its source.
TEST(Hardware, SaysWhichFileStatesAFigure) {
  const HardwareEntry entry = read_hardware("hgx-h100-roce400-rail", {});
  EXPECT_EQ(entry.name, "hgx-h100-roce400-rail");
  EXPECT_EQ(entry.files, (std::vector<std::string>{"hgx-h100-roce400-rail", "hgx-h100"}));
  const HardwareFigure& nic = figure(entry, "nic.rate");
  EXPECT_EQ(nic.stated_by, "hgx-h100-roce400-rail");
  EXPECT_EQ(nic.text, "400 Gb/s");
  EXPECT_EQ(nic.number, 50e9);
  EXPECT_EQ(nic.unit, "B/s");
  const HardwareFigure& memory = figure(entry, "gpu.hbm_bandwidth");
  EXPECT_EQ(memory.stated_by, "hgx-h100");
  EXPECT_EQ(memory.number, 3.35e12);
  EXPECT_EQ(memory.source, "NVIDIA H100 datasheet");
  EXPECT_DOUBLE_EQ(figure(entry, "fabric.hop_latency").number.value_or(0), 800e-9);
  EXPECT_EQ(figure(entry, "fabric.kind").number, std::nullopt);
}

// 1 - e^-4 4^4 / 4! = 0.8046 is left of the rate by four queue pairs under E-ECMP (topology/routing.h); a domain that
// no file states is the node.
TEST(Hardware, ShowsWhatFollowsFromFigures) {
  const HardwareEntry roce = read_hardware("hgx-h100-roce400-rail", {});
  EXPECT_EQ(figure(roce, "fabric.routing_efficiency").stated_by, "derived");
  EXPECT_NEAR(figure(roce, "fabric.routing_efficiency").number.value_or(0), 0.8046, 5e-5);
  EXPECT_EQ(figure(roce, "scale_up.domain").number, 8);
  const HardwareEntry rack = read_hardware("gb200-nvl72", {});
  EXPECT_EQ(figure(rack, "scale_up.domain").stated_by, "gb200-nvl72");
  EXPECT_EQ(figure(rack, "scale_up.bandwidth").stated_by, "gb200");
}

TEST(Hardware, HasASourceForEveryFigureOfEveryPreset) {
  const HardwareList list = read_all_hardware({});
  EXPECT_GE(list.entries.size(), 39u);
  EXPECT_TRUE(list.unreadable.empty());
  for (const HardwareEntry& entry : list.entries) {
    EXPECT_GE(entry.figures.size(), 8u) << entry.name;
    for (const HardwareFigure& f : entry.figures) {
      EXPECT_NE(f.source, "") << entry.name << " " << f.field;
      // Each field once, though a file and its base may both state it.
      EXPECT_EQ(std::count_if(entry.figures.begin(), entry.figures.end(),
                              [&](const HardwareFigure& other) { return other.field == f.field; }),
                1)
          << entry.name << " " << f.field;
    }
    expect_narrow(hardware_screen(entry));
  }
}

TEST(Hardware, ListsOneLineForEachCluster) {
  const HardwareList list = read_all_hardware({});
  const std::string table = hardware_table(list);
  expect_narrow(table);
  for (const HardwareEntry& entry : list.entries) {
    EXPECT_TRUE(table.starts_with(entry.name + " ") || table.find("\n" + entry.name + " ") != std::string::npos)
        << entry.name;
  }
  // The cells of one row, by hand from its files; spaces between columns vary.
  std::istringstream lines(table);
  std::string row;
  while (std::getline(lines, row) && !row.starts_with("hgx-h100-efa400-rail ")) {
  }
  std::istringstream words(row);
  const std::vector<std::string> cells{std::istream_iterator<std::string>(words), {}};
  EXPECT_EQ(cells, (std::vector<std::string>{"hgx-h100-efa400-rail", "H100-SXM-80GB", "989.5", "1979", "80", "3.35",
                                             "450", "x", "8", "4", "x", "100", "efa", "rail", "32"}));
}

TEST(Hardware, NamesTheNearestCluster) {
  try {
    read_hardware("hgx-h10O", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_NE(std::string(error.what()).find("hgx-h100"), std::string::npos) << error.what();
  }
}

TEST(Hardware, ReadsFilesOfTheUserAndSaysWhatIsWrong) {
  const config::SearchPath search = folder_with(
      "clusters/ours.yaml",
      "base: hgx-h100\nnic: {rate: 200 Gb/s}\nfabric: {kind: rail}\nsources:\n  - \"nic.rate 200 Gb/s: ours\"\n");
  const HardwareEntry ours = read_hardware("ours", search);
  EXPECT_EQ(figure(ours, "nic.rate").source, "ours");
  EXPECT_EQ(figure(ours, "fabric.kind").source, "");
  EXPECT_NE(hardware_screen(ours).find("no source stated"), std::string::npos);
  folder_with("clusters/wrong.yaml", "base: hgx-h100\nnic: {rate: 200}\n");
  const HardwareList list = read_all_hardware(search);
  ASSERT_EQ(list.unreadable.size(), 1u);
  EXPECT_EQ(list.unreadable[0].name, "wrong");
  EXPECT_NE(hardware_table(list).find("wrong is unreadable"), std::string::npos);
}

TEST(Hardware, IsOneJsonObject) {
  const auto json = nlohmann::json::parse(hardware_json({{read_hardware("mi300x-8", {})}, {}}));
  EXPECT_EQ(json["schema"], "stepcast/hardware/1");
  ASSERT_EQ(json["clusters"].size(), 1u);
  const auto& cluster = json["clusters"][0];
  EXPECT_EQ(cluster["name"], "mi300x-8");
  EXPECT_EQ(cluster["gpu"], "MI300X-192GB");
  const auto& figures = cluster["figures"];
  const auto memory =
      std::find_if(figures.begin(), figures.end(), [](const auto& f) { return f["field"] == "gpu.memory"; });
  ASSERT_NE(memory, figures.end());
  EXPECT_EQ((*memory)["value"], 192LL << 30);
  EXPECT_EQ((*memory)["unit"], "B");
  EXPECT_EQ((*memory)["text"], "192 GiB");
  EXPECT_NE((*memory)["source"], "");
}

}  // namespace
}  // namespace stepcast::report
