// Parameter counts of every preset against params_truth.csv: published totals with a tolerance per row (0: exact, HF
// safetensors metadata), and the counts of an independent closed form, to the digit. Its `source` and `note` columns
// say where each row is from.
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "tests/models/model_files.h"

namespace stepcast::models {
namespace {

struct Truth {
  std::string name;
  std::int64_t total = 0;  // of the closed form, like the four below
  std::int64_t active = 0;
  std::int64_t active_without_input = 0;
  std::int64_t without_tables = 0;  // neither input table nor head
  std::int64_t mtp = 0;
  std::int64_t published_total = 0;
  std::int64_t published_active = 0;  // 0: none
  bool exact = false;
  double tolerance_pct = 0;
};

// The first eleven columns hold no quotes.
std::vector<Truth> read_truths() {
  std::istringstream lines(testing::file_text(std::string(STEPCAST_SOURCE_DIR) + "/tests/models/params_truth.csv"));
  std::vector<Truth> truths;
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line.rfind("name,computed_total,computed_active_all,", 0), 0u);
  while (std::getline(lines, line)) {
    std::istringstream cells(line);
    std::vector<std::string> c(11);
    for (std::string& cell : c) std::getline(cells, cell, ',');
    const auto whole = [&](std::size_t i) { return std::strtoll(c[i].c_str(), nullptr, 10); };
    truths.push_back({c[0], whole(1), whole(2), whole(3), whole(4), whole(5), whole(6), whole(7),
                      c[8].rfind("exact", 0) == 0, std::strtod(c[10].c_str(), nullptr)});
  }
  return truths;
}

TEST(ParamsTruth, HasARowForEveryPreset) {
  std::vector<std::string> names;
  for (const Truth& truth : read_truths()) names.push_back(truth.name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, testing::preset_names());
}

TEST(ParamsTruth, PublishedTotalsAreMet) {
  int exact = 0;
  for (const Truth& truth : read_truths()) {
    const std::int64_t total = count_parameters(testing::preset(truth.name)).total;
    if (truth.exact) {
      EXPECT_EQ(total, truth.published_total) << truth.name;
      ++exact;
    }
    const double error_pct = 100.0 * (static_cast<double>(total) / static_cast<double>(truth.published_total) - 1.0);
    EXPECT_LE(std::abs(error_pct), truth.tolerance_pct) << truth.name;
  }
  EXPECT_EQ(exact, 24);
}

TEST(ParamsTruth, TheClosedFormIsMetToTheDigit) {
  for (const Truth& truth : read_truths()) {
    const Architecture a = testing::preset(truth.name);
    const ParameterCount n = count_parameters(a);
    EXPECT_EQ(n.total, truth.total) << truth.name;
    EXPECT_EQ(n.active, truth.active) << truth.name;
    EXPECT_EQ(n.active_without_input(a.tied_embeddings), truth.active_without_input) << truth.name;
    EXPECT_EQ(n.total - n.embedding - n.head, truth.without_tables) << truth.name;
    EXPECT_EQ(n.mtp, truth.mtp) << truth.name;
    EXPECT_EQ(n.embedding + n.positions + n.mixers + n.feed_forward + n.experts + n.norms + n.head, n.total)
        << truth.name;
    EXPECT_EQ(n.active == n.total, !a.experts) << truth.name;
  }
}

// Model cards round or cut active parameters to two or three digits and disagree on whether the input table counts:
// one of the two must be within one unit of the last digit printed, or 1 %.
TEST(ParamsTruth, PublishedActiveParametersAreMetInOneOfTwoConventions) {
  int rows = 0;
  for (const Truth& truth : read_truths()) {
    if (truth.published_active == 0) continue;
    ++rows;
    std::int64_t unit = 1;
    while (truth.published_active % (unit * 10) == 0 && unit < 1000000000) unit *= 10;
    const Architecture a = testing::preset(truth.name);
    const ParameterCount n = count_parameters(a);
    const auto published = static_cast<double>(truth.published_active);
    const auto error = [&](std::int64_t count) { return std::abs(static_cast<double>(count) - published); };
    EXPECT_LE(std::min(error(n.active), error(n.active_without_input(a.tied_embeddings))),
              std::max(static_cast<double>(unit), 0.01 * published))
        << truth.name;
  }
  EXPECT_EQ(rows, 15);
}

}  // namespace
}  // namespace stepcast::models
