// Rows of the shipped table as scenarios. That nothing looks at the time measured is in the types: a PublishedRow has
// none.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "calibrate/row_scenario.h"
#include "config/search.h"

namespace stepcast::calibrate {
namespace {

std::vector<MeasuredRun> shipped() {
  const std::string file = std::string(STEPCAST_SOURCE_DIR) + "/scenarios/measured/published_runs_dense.csv";
  return measured_runs(parse_table(config::read_file(file), file));
}

std::map<std::string, std::string> settings_of(const std::string& id) {
  std::map<std::string, std::string> settings;
  for (const MeasuredRun& run : shipped()) {
    if (run.row.id != id) continue;
    for (const config::Setting& s : scenario_of(run.row).settings) settings[s.field] = s.value;
  }
  return settings;
}

// Every row has settings or a reason, and at least 85 % have settings.
TEST(RowScenario, MakesScenariosOfMostRows) {
  std::size_t made = 0;
  const std::vector<MeasuredRun> runs = shipped();
  for (const MeasuredRun& run : runs) {
    const RowScenario scenario = scenario_of(run.row);
    EXPECT_NE(scenario.settings.empty(), scenario.skipped.empty()) << run.row.id;
    made += scenario.skipped.empty() ? 1 : 0;
  }
  EXPECT_GE(20 * made, 17 * runs.size()) << made << " of " << runs.size();
}

// The row: 32 A100-SXM-80GB, sequence 2,048, global batch 512, micro batch 16, tp 1, pp 1, no sp, full recompute, fp16.
TEST(RowScenario, TakesARowOfMegatronAsItStands) {
  std::map<std::string, std::string> s = settings_of("sc21-001");
  EXPECT_EQ(s["gpus"], "32");
  EXPECT_EQ(s["training.sequence_length"], "2048");
  EXPECT_EQ(s["training.global_batch_size"], "512");
  EXPECT_EQ(s["plan.micro_batch_size"], "16");
  EXPECT_EQ(s["plan.tp"], "1");
  EXPECT_EQ(s["plan.pp"], "1");
  EXPECT_EQ(s["model.num_hidden_layers"], "24");
  EXPECT_EQ(s["model.hidden_size"], "2304");
}

}  // namespace
}  // namespace stepcast::calibrate
