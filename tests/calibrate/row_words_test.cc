// What single words of a row change, why a row is no scenario, and which group it is of.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "calibrate/published_stack.h"
#include "calibrate/row_scenario.h"
#include "tests/calibrate/published_rows.h"

namespace stepcast::calibrate {
namespace {

// A shipped row with one change.
template <class Change>
RowScenario changed(const std::string& id, const Change& change) {
  PublishedRow row = shipped_row(id);
  change(row);
  return scenario_of(row);
}

template <class Change>
Fields changed_fields(const std::string& id, const Change& change) {
  const RowScenario scenario = changed(id, change);
  EXPECT_EQ(scenario.skipped, "") << id;
  return fields_of(scenario);
}

std::string skip_of(const RowScenario& scenario) {
  EXPECT_TRUE(scenario.settings.empty());
  return scenario.skipped;
}

TEST(RowWords, SayWhyThereIsNoScenario) {
  EXPECT_EQ(skip_of(changed("dgxc-001", [](PublishedRow& r) { r.experts = 8; })),
            "mixture of 8 experts: not simulated yet");
  EXPECT_EQ(skip_of(changed("dgxc-001", [](PublishedRow& r) { r.unusable = "no measured step time"; })),
            "no measured step time");
  EXPECT_NE(skip_of(changed("dgxc-001", [](PublishedRow& r) { r.source = "My lab"; })).find("source 'My lab'"),
            std::string::npos);
  EXPECT_NE(skip_of(changed("dgxc-001", [](PublishedRow& r) { r.model = "palm"; })).find("model 'palm'"),
            std::string::npos);
  EXPECT_NE(skip_of(changed("dgxc-001", [](PublishedRow& r) { r.gpu = "TPUv4"; })).find("accelerator 'TPUv4'"),
            std::string::npos);
  EXPECT_NE(skip_of(changed("dgxc-001", [](PublishedRow& r) { r.gpus_per_node = 16; })).find("16 GPUs a node"),
            std::string::npos);
  EXPECT_NE(skip_of(changed("dgxc-001", [](PublishedRow& r) { r.precision = "int4"; })).find("precision 'int4'"),
            std::string::npos);
  EXPECT_NE(skip_of(changed("dgxc-001", [](PublishedRow& r) { r.zero = "LocalSGD"; })).find("sharding 'LocalSGD'"),
            std::string::npos);
  EXPECT_NE(skip_of(changed("dgxc-001", [](PublishedRow& r) { r.recompute = "selective:moe"; })).find("recompute"),
            std::string::npos);
}

// A lab's own table states the framework; its words are read the same way.
TEST(RowWords, TakeAStatedFramework) {
  const Fields fields = changed_fields("dgxc-001", [](PublishedRow& r) {
    r.source = "My lab";
    r.framework = "torchtitan";
    r.zero = "FSDP2";
    r.cp = 1;
    r.dp = 8;
  });
  EXPECT_EQ(fields.at("framework"), "torchtitan");
  EXPECT_EQ(fields.at("plan.zero"), "3");
}

TEST(RowWords, ChooseThePrecision) {
  const auto recipe = [](const char* id, const char* words) {
    const Fields fields = changed_fields(id, [words](PublishedRow& r) { r.precision = words; });
    const auto found = fields.find("training.precision.fp8_recipe");
    return fields.at("training.precision.compute") + (found == fields.end() ? "" : " " + found->second);
  };
  EXPECT_EQ(recipe("dgxc-001", "bf16 (pure)"), "bf16");
  EXPECT_EQ(recipe("dgxc-001", "fp8 (delayed scaling)"), "fp8 delayed");
  EXPECT_EQ(recipe("dgxc-001", "fp8 (per-tensor current scaling)"), "fp8 tensorwise");
  EXPECT_EQ(recipe("dgxc-001", "fp8"), "fp8 delayed");
  EXPECT_EQ(recipe("mbridge-015", "fp8"), "fp8 tensorwise");
  EXPECT_EQ(recipe("mbridge-015", "mxfp8"), "mxfp8");
  EXPECT_EQ(recipe("mbridge-015", "nvfp4"), "nvfp4");
  EXPECT_EQ(recipe("titan-004", "float8 rowwise, bf16 all-gather"), "fp8 tensorwise");
}

// Megatron-Bridge hides tensor-parallel communication by recipe, but with nvfp4; MLPerf where its flags say so.
TEST(RowWords, ChooseWhatIsHidden) {
  const auto hides = [](const Fields& fields) { return fields.contains("plan.overlap.tp_comm"); };
  EXPECT_TRUE(hides(changed_fields("mbridge-015", [](PublishedRow&) {})));
  EXPECT_FALSE(hides(changed_fields("mbridge-015", [](PublishedRow& r) { r.precision = "nvfp4"; })));
  EXPECT_FALSE(hides(changed_fields("mbridge-015", [](PublishedRow& r) { r.sequence_parallel = false; })));
  EXPECT_FALSE(hides(changed_fields("mlperf-002", [](PublishedRow& r) { r.flags = ""; })));
  EXPECT_FALSE(hides(changed_fields("kwai-013", [](PublishedRow& r) { r.flags = "no comm overlap (TP overlap)"; })));
}

TEST(RowWords, ChooseThePipelineLayout) {
  // 78 layers over 12 stages, by the source's own words: 11 * 7 + 1.
  EXPECT_EQ(fields_of(scenario_of(shipped_row("bloom-060"))).at("plan.layout"), "[7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 1]");
  // nanotron's 1.34B: a layer costs 4 * 2048^2 + 3 * 2048 * 8192 = 67.1 M, the head 131072 * 2048 = 268.4 M, four
  // layers. Of 20 layers' worth two stages get 10 each: 10 layers, and 6 with the head.
  const Fields two = changed_fields("usp-001", [](PublishedRow& r) {
    r.pp = 2;
    r.dp = 4;
  });
  EXPECT_EQ(two.at("plan.layout"), "[10, 6]");
  // Four stages of 5: layers 1 to 5, 6 to 10, 11 to 15, and the last with the head.
  const Fields four = changed_fields("usp-001", [](PublishedRow& r) {
    r.pp = 4;
    r.dp = 2;
  });
  EXPECT_EQ(four.at("plan.layout"), "[5, 5, 5, 1]");
}

TEST(RowWords, ChooseShardGroups) {
  const auto shards = [](const char* id, const char* words) {
    const Fields fields = changed_fields(id, [words](PublishedRow& r) { r.zero = words; });
    return fields.contains("plan.dp_shard") ? fields.at("plan.dp_shard") : "all";
  };
  EXPECT_EQ(shards("intern-032", "ZeRO-1 within 8 GPUs (hierarchical)"), "8");
  EXPECT_EQ(shards("intern-032", "ZeRO-1 over all DP"), "all");
  EXPECT_EQ(shards("dgxc-191", "JAX FSDP=256 x DP=2 (HSDP)"), "256");
  EXPECT_EQ(shards("dgxc-191", "JAX FSDP=512 x DP=1 (HSDP)"), "all");
  EXPECT_EQ(shards("fms-001", "HSDP (shard in node, replicate across)"), "8");
  const Fields kept =
      changed_fields("mpt-001", [](PublishedRow& r) { r.zero = "PyTorch FSDP SHARD_GRAD_OP (ZeRO-2)"; });
  EXPECT_EQ(kept.at("plan.zero"), "3");
  EXPECT_EQ(kept.at("plan.fsdp.reshard_after_forward"), "false");
}

// The same table with every measured column doubled makes the same scenarios.
TEST(RowWords, SeeNothingThatWasMeasured) {
  const std::string file = std::string(STEPCAST_SOURCE_DIR) + "/scenarios/measured/published_runs_dense.csv";
  Table table = parse_table(config::read_file(file), file);
  for (const char* const column : {"step_time_s", "derived_step_time_s", "tokens_per_s_per_gpu", "tflops_per_gpu",
                                   "mfu", "memory_gb_per_gpu", "uniform_model_tflops_causal", "uniform_mfu_bf16peak"}) {
    const auto index = table.find(column);
    ASSERT_TRUE(index) << column;
    for (Table::Row& row : table.rows) {
      std::string& field = row.fields[*index];
      if (!field.empty()) field = std::to_string(2 * std::stod(field));
    }
  }
  const std::vector<MeasuredRun> changed_runs = measured_runs(table);
  ASSERT_EQ(changed_runs.size(), shipped_runs().size());
  for (std::size_t i = 0; i < changed_runs.size(); ++i) {
    EXPECT_NE(changed_runs[i].measured.step_time_s, shipped_runs()[i].measured.step_time_s);
    EXPECT_EQ(fields_of(scenario_of(changed_runs[i].row)), fields_of(scenario_of(shipped_runs()[i].row)));
  }
}

// Every assumption is said once.
TEST(RowWords, StateEveryAssumptionOnce) {
  for (const MeasuredRun& run : shipped_runs()) {
    const RowScenario scenario = scenario_of(run.row);
    const std::set<std::string> once(scenario.assumptions.begin(), scenario.assumptions.end());
    EXPECT_EQ(once.size(), scenario.assumptions.size()) << run.row.id;
  }
}

// Rows of each group, as counted in the table by source and accelerator; eleven rows are excluded by it.
TEST(RowWords, DivideTheShippedTableIntoGroups) {
  std::map<std::string, int> counts;
  int skipped = 0;
  for (const MeasuredRun& run : shipped_runs()) {
    ++counts[group_of(run.row)];
    if (!scenario_of(run.row).skipped.empty()) ++skipped;
  }
  const std::map<std::string, int> expected = {{"BLOOM", 55},         {"FMS", 2},
                                               {"InternEvo", 32},     {"JAX/MaxText", 10},
                                               {"Kwai", 9},           {"Megatron A100", 15},
                                               {"MosaicML A100", 50}, {"MosaicML H100", 40},
                                               {"SimuMax", 21},       {"NVIDIA dense on Blackwell", 82},
                                               {"nanotron", 95},      {"NVIDIA dense on H100", 124},
                                               {"torchtitan", 15},    {"torchao", 4},
                                               {"ms-swift", 3},       {"ml-engineering", 10}};
  EXPECT_EQ(counts, expected);
  EXPECT_EQ(skipped, 11);
}

}  // namespace
}  // namespace stepcast::calibrate
