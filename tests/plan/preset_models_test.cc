// Every model of scenarios/models: lowered with exactly the parameters that models/ counts, or refused (exit code 4)
// with the parts that are not lowered yet.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "config/document.h"
#include "models/architecture.h"
#include "plan/lowering.h"
#include "plan/model_support.h"
#include "tests/models/model_files.h"
#include "tests/plan/scenario_text.h"

namespace stepcast::plan {
namespace {

// What the refusal of a model names first at 4096 tokens; models that are not listed are lowered.
const std::map<std::string, std::string>& refused() {
  static const std::map<std::string, std::string> table = {
      {"deepseek-v2", "mixture of experts (160, 6 a token)"},
      {"deepseek-v2-lite", "mixture of experts (64, 6 a token)"},
      {"deepseek-v3", "mixture of experts (256, 8 a token)"},
      {"deepseek-v3.2", "mixture of experts (256, 8 a token)"},
      {"glm-4.5", "mixture of experts (160, 8 a token)"},
      {"glm-4.5-air", "mixture of experts (128, 8 a token)"},
      {"gpt-oss-120b", "mixture of experts (128, 4 a token)"},
      {"gpt-oss-20b", "mixture of experts (32, 4 a token)"},
      {"kimi-k2", "mixture of experts (384, 8 a token)"},
      {"kimi-k2.6-text", "mixture of experts (384, 8 a token)"},
      {"mixtral-8x22b", "mixture of experts (8, 2 a token)"},
      {"mixtral-8x7b", "mixture of experts (8, 2 a token)"},
      {"nemotron-h-56b", "Mamba-2 layers"},
      {"nemotron-h-8b", "Mamba-2 layers"},
      {"qwen3-235b-a22b", "mixture of experts (128, 8 a token)"},
      {"qwen3-30b-a3b", "mixture of experts (128, 8 a token)"},
      {"qwen3-next-80b-a3b", "mixture of experts (512, 10 a token)"},
  };
  return table;
}

// One rank, one sequence: every parameter of the model is in its Program once.
std::string scenario_of(const std::string& name, std::int64_t sequence) {
  return "framework: plain\ncluster: local-cpu\ngpus: 1\nmodel: " + name +
         "\ntraining: {sequence_length: " + std::to_string(sequence) + ", global_batch_size: 1, precision: fp32}\n";
}

std::int64_t sequence_of(const models::Architecture& a) { return std::min<std::int64_t>(4096, a.max_positions); }

class PresetModels : public ::testing::TestWithParam<std::string> {};

TEST_P(PresetModels, AreLoweredWholeOrRefusedByName) {
  const models::Architecture a = models::testing::preset(GetParam());
  const std::string text = scenario_of(GetParam(), sequence_of(a));
  const auto row = refused().find(GetParam());
  if (row != refused().end()) {
    EXPECT_EQ(exit_code_of(text), 4);
    EXPECT_NE(to_text(problems_of(text)).find(row->second), std::string::npos) << to_text(problems_of(text));
    return;
  }
  const ReadScenario read = read_text(text);
  ASSERT_TRUE(read.violations.empty()) << to_text(read.violations);
  const program::Program p = lower(read.scenario);
  std::int64_t elements = 0;
  for (const program::Parameter& parameter : p.parameters) elements += parameter.rows * parameter.cols;
  EXPECT_EQ(elements, models::count_parameters(a).total);
}

INSTANTIATE_TEST_SUITE_P(All, PresetModels, ::testing::ValuesIn(models::testing::preset_names()),
                         [](const auto& param) {
                           std::string name = param.param;
                           for (char& c : name) {
                             if (c == '-' || c == '.') c = '_';
                           }
                           return name;
                         });

// StarCoder2's window of 4096 hides keys from 4097 tokens on.
TEST(PresetModelTable, AWindowIsRefusedWhereItActs) {
  EXPECT_EQ(exit_code_of(scenario_of("starcoder2-3b", 4096)), 0);
  EXPECT_EQ(exit_code_of(scenario_of("starcoder2-3b", 8192)), 4);
}

TEST(PresetModelTable, TheTableNamesModelsThatExist) {
  const std::vector<std::string> names = models::testing::preset_names();
  for (const auto& [name, part] : refused()) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
}

}  // namespace
}  // namespace stepcast::plan
