// The calibration files that ship, and files with mistakes.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/error.h"
#include "sim/cost/calibration_reader.h"
#include "tests/sim/shipped_calibration.h"

namespace stepcast::sim {
namespace {

using testing::calibration_text;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::vector<Problem> problems_of(const std::string& text) {
  try {
    read_calibration(text, "c.yaml");
  } catch (const Error& e) {
    return e.problems();
  }
  return {};
}

TEST(Calibration, ShippedFilesReadAndEveryConstantHasMeaningUnitAndSource) {
  for (const std::string name : {"h100-default", "a100-default", "b200-default", "mi300x-default", "cpu-reference"}) {
    const Calibration c = read_calibration(calibration_text(name), name);
    EXPECT_EQ(c.name, name);
    EXPECT_FALSE(c.devices.empty());
    // 4 of matmul, 8 of attention, 8 of memory, 4 of host, 8 of collectives, 3 of p2p, 2 of copies; 4 of 8-bit matmuls
    // where they were measured.
    EXPECT_EQ(c.constants.size(), name == "h100-default" ? 41U : 37U);
    std::set<std::string> names;
    for (const CalibrationConstant& k : c.constants) {
      EXPECT_TRUE(names.insert(k.name).second) << k.name;
      EXPECT_FALSE(k.value.empty()) << k.name;
      EXPECT_NE(k.meaning.find("(unit: "), std::string::npos) << k.name;
      EXPECT_GT(k.source.size(), 20U) << k.name;
    }
  }
}

TEST(Calibration, ReadsQuantitiesWithTheirUnits) {
  // The values the file states, in base units.
  const Calibration c = read_calibration(calibration_text("h100-default"), "h100-default");
  EXPECT_DOUBLE_EQ(c.matmul_bf16, 0.715);
  EXPECT_EQ(c.collective.start, Duration(5'000'000));
  EXPECT_DOUBLE_EQ(c.collective.half_size, 3e6);
  EXPECT_EQ(c.devices, (std::vector<std::string>{"H100", "H800", "H200", "H20", "GH200"}));
  EXPECT_EQ(c.constants.front().name, "matmul.bf16");
  EXPECT_EQ(c.constants.front().value, "0.715");
}

TEST(Calibration, ReportsEveryMistakeWithItsPlace) {
  std::string text = calibration_text("h100-default");
  text = replaced(text, "value: 0.715", "value: 0");   // a fraction must be above zero
  text = replaced(text, "value: 10 us", "value: 10");  // a bare number where a unit belongs
  text = replaced(text, "half_size:", "half_sise:");   // unknown, and the right one is missing
  const std::vector<Problem> problems = problems_of(text);
  std::set<std::string> fields;
  for (const Problem& p : problems) {
    EXPECT_EQ(p.kind, ErrorKind::kInput) << p.message;
    EXPECT_EQ(p.where.file, "c.yaml");
    fields.insert(p.where.field);
  }
  EXPECT_EQ(fields, (std::set<std::string>{"matmul.bf16.value", "host.graph_launch.value", "collective.half_sise",
                                           "collective.half_size"}));
}

TEST(Calibration, ADeviceIsNamedUpToTheEndOfItsNumber) {
  std::vector<Calibration> known(3);
  known[0].devices = {"H20", "A100"};
  known[1].devices = {"H200", "GH200"};
  known[2].devices = {"H20"};
  const auto named_by = [&](std::string_view device) {
    std::vector<std::size_t> by;
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (is_for(known[i], device)) by.push_back(i);
    }
    return by;
  };
  using Numbers = std::vector<std::size_t>;
  EXPECT_EQ(named_by("H200-SXM-141GB"), Numbers{1});
  EXPECT_EQ(named_by("H20-96GB"), (Numbers{0, 2}));
  EXPECT_EQ(named_by("B200"), Numbers{});
  EXPECT_TRUE(is_first_for(known[0], "h20-96GB"));
  EXPECT_FALSE(is_first_for(known[0], "A100-SXM-80GB"));
}

TEST(Calibration, RefusesAFileOfAnotherSchema) {
  EXPECT_EQ(
      problems_of(replaced(calibration_text("h100-default"), "stepcast/calibration/1", "stepcast/cluster/1")).size(),
      1U);
}

}  // namespace
}  // namespace stepcast::sim
