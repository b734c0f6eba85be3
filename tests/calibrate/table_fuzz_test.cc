// Every text is a table or an Error; what is read back is what was written.
#include <gtest/gtest.h>

#include "base/random.h"
#include "calibrate/published_row.h"
#include "calibrate/row_scenario.h"
#include "config/search.h"
#include "tests/fuzz/mutate.h"
#include "tests/random_cases.h"

namespace stepcast::calibrate {
namespace {

constexpr std::uint64_t kSeed = 20'261'130;

std::string in_quotes(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

// A field of up to seven characters, most of them those that need care.
std::string random_field(const RandomStream& stream, std::uint64_t& next) {
  constexpr std::string_view kAlphabet = "a1,\"\n ";
  std::string value;
  const std::uint64_t length = stream.integer_at(next++, 8);
  for (std::uint64_t i = 0; i < length; ++i) {
    const auto pick = static_cast<std::size_t>(stream.integer_at(next++, kAlphabet.size() + 1));
    value += pick == kAlphabet.size() ? std::string("\xC3\xA9") : std::string(1, kAlphabet[pick]);
  }
  return value;
}

TEST(TableFuzz, ReadsBackWhatIsWritten) {
  for (std::uint64_t i = 0; i < testing::random_cases(2000); ++i) {
    const RandomStream stream(kSeed + i, "table");
    std::uint64_t next = 0;
    std::vector<std::vector<std::string>> rows;
    std::string text = "a,b,c\n";
    for (int r = 0; r < 4; ++r) {
      rows.emplace_back();
      for (int c = 0; c < 3; ++c) {
        rows.back().push_back(random_field(stream, next));
        text += (c == 0 ? "" : ",") + in_quotes(rows.back().back());
      }
      text += "\n";
    }
    const Table table = parse_table(text, "runs.csv");
    ASSERT_EQ(table.rows.size(), rows.size()) << "case " << i;
    for (std::size_t r = 0; r < rows.size(); ++r) ASSERT_EQ(table.rows[r].fields, rows[r]) << "case " << i;
  }
}

// The header and the first rows of the shipped table.
std::string corpus() {
  const std::string all =
      config::read_file(std::string(STEPCAST_SOURCE_DIR) + "/scenarios/measured/published_runs_dense.csv");
  std::size_t end = 0;
  for (int line = 0; line < 6; ++line) end = all.find('\n', end) + 1;
  return all.substr(0, end);
}

TEST(TableFuzz, AnswersEveryMutationWithScenariosOrAnError) {
  const fuzz::Mutator mutator(kSeed, {corpus()}, {"yes", "no", "\"\"", "GB200", "ZeRO-1", "1048577", "full-some:"});
  std::uint64_t scenarios = 0;
  std::uint64_t errors = 0;
  for (std::uint64_t i = 0; i < testing::random_cases(4000); ++i) {
    try {
      const Table table = parse_table(mutator.text_at(i), "m.csv");
      for (const MeasuredRun& run : measured_runs(table)) {
        const RowScenario scenario = scenario_of(run.row);
        EXPECT_NE(scenario.settings.empty(), scenario.skipped.empty()) << "case " << i << " " << scenario.skipped;
        ++scenarios;
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput) << "case " << i;
      ++errors;
    }
  }
  // Both happen often: neither path is vacuous.
  EXPECT_GT(scenarios, testing::random_cases(4000) / 10);
  EXPECT_GT(errors, testing::random_cases(4000) / 10);
}

}  // namespace
}  // namespace stepcast::calibrate
