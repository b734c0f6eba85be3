// Number formats of a scenario: what is read, what devices and frameworks refuse.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/rules.h"
#include "tests/plan/scenario_text.h"

namespace stepcast::plan {
namespace {

constexpr const char* kPrecisionBase = R"(
framework: megatron-core
model: llama-3.1-8b
cluster: hgx-h100
gpus: 8
training: {sequence_length: 4096, global_batch_size: 16}
plan: {tp: 2}
)";

Training training(const std::vector<std::string>& settings) {
  return read_text(kPrecisionBase, settings).scenario.training;
}

TEST(Precision, ReadsTheWordsOfTheFormat) {
  using program::DType;
  EXPECT_EQ(training({}).recipe, MatmulRecipe::kNone);
  const Training fp8 = training({"training.precision=fp8"});
  EXPECT_EQ(fp8.recipe, MatmulRecipe::kDelayed);  // Megatron-LM's default of --fp8-recipe
  EXPECT_EQ(fp8.compute, DType::kBf16);
  EXPECT_EQ(fp8.gradients, DType::kF32);
  EXPECT_TRUE(fp8.master_weights);
  EXPECT_FALSE(fp8.first_last_layers_bf16);
  EXPECT_EQ(training({"training.precision=fp8", "framework=plain"}).recipe, MatmulRecipe::kTensorwise);
  EXPECT_EQ(training({"training.precision={compute: fp8, fp8_recipe: blockwise}"}).recipe, MatmulRecipe::kBlockwise);
  EXPECT_EQ(training({"training.precision={compute: fp8, fp8_recipe: mxfp8}"}).recipe, MatmulRecipe::kMxfp8);
  EXPECT_EQ(training({"training.precision=mxfp8"}).recipe, MatmulRecipe::kMxfp8);
  EXPECT_EQ(training({"training.precision=fp4"}).recipe, MatmulRecipe::kNvfp4);
  EXPECT_EQ(training({"training.precision=nvfp4"}).recipe, MatmulRecipe::kNvfp4);
  EXPECT_TRUE(training({"training.precision={compute: fp8, first_last_layers_bf16: true}"}).first_last_layers_bf16);
  const Training half = training({"training.precision=fp16"});
  EXPECT_EQ(half.compute, DType::kF16);
  EXPECT_EQ(half.gradients, DType::kF16);  // Megatron-LM accumulates in fp32 with --bf16 only
  EXPECT_EQ(training({"training.precision=fp16", "framework=plain"}).gradients, DType::kF32);
}

TEST(Precision, RecordsTheRecipeWithItsOrigin) {
  const ReadScenario read = read_text(kPrecisionBase, {"training.precision=fp8"});
  const ConfigValue* const recipe = find_value(read, "training.precision.fp8_recipe");
  ASSERT_NE(recipe, nullptr);
  EXPECT_EQ(recipe->value, "delayed");
  EXPECT_EQ(recipe->origin, "megatron-core default");
  EXPECT_EQ(find_value(read_text(kPrecisionBase), "training.precision.fp8_recipe"), nullptr);
}

struct Refused {
  std::vector<std::string> settings;
  int exit_code;
  const char* field;
  const char* text;
};

TEST(Precision, SaysWhatDoesNotGo) {
  const std::vector<Refused> cases = {
      {{"training.precision=fp8", "cluster=hgx-a100-80"}, 3, "training.precision.compute", "has no fp8 tensor cores"},
      {{"training.precision=nvfp4"}, 3, "training.precision.compute", "H100-SXM-80GB (sm90) has no tensor cores"},
      {{"training.precision=mxfp8"}, 3, "training.precision.fp8_recipe", "read mxfp8"},
      {{"training.precision={compute: fp8, fp8_recipe: blockwise}", "cluster=mi300x-8"},
       3,
       "training.precision.fp8_recipe",
       "read blockwise"},
      {{"training.precision=fp8", "framework=torchtitan"}, 4, "training.precision.compute", "are not simulated"},
      {{"training.precision=fp8", "framework=nanotron"}, 4, "training.precision.compute", "are not simulated"},
      {{"training.precision=fp8", "cluster=local-cpu", "gpus=2"}, 4, "training.precision.compute", "no CPU kernels"},
      {{"training.precision.fp8_recipe=delayed"}, 3, "training.precision.fp8_recipe", "with compute: bf16"},
      {{"training.precision={compute: fp4, fp8_recipe: delayed}", "cluster=hgx-b200"},
       3,
       "training.precision.fp8_recipe",
       "with compute: fp4"},
      {{"training.precision.first_last_layers_bf16=true"},
       3,
       "training.precision.first_last_layers_bf16",
       "no fp8 or fp4"},
      {{"training.precision=fp8", "training.sequence_length=4100"}, 3, "training.sequence_length", "are 4100"},
      {{"training.precision=fp8", "plan.recompute=selective[layernorm]"}, 3, "plan.recompute", "delayed scaling"},
      {{"training.precision=fp16", "framework=torchtitan"}, 3, "training.precision.compute", "bf16 or fp32"},
      {{"training.precision={compute: bf16, grads: fp16}"}, 4, "training.precision.grads", "gradients in fp16"}};
  for (const Refused& c : cases) {
    const std::vector<Problem> problems = problems_of(kPrecisionBase, c.settings);
    EXPECT_EQ(exit_code_of(kPrecisionBase, c.settings), c.exit_code) << c.settings[0] << to_text(problems);
    bool found = false;
    for (const Problem& p : problems) found |= p.where.field == c.field && p.message.find(c.text) != std::string::npos;
    EXPECT_TRUE(found) << c.text << " in " << to_text(problems);
  }
}

TEST(Precision, AcceptsWhatDevicesRead) {
  const std::vector<std::vector<std::string>> cases = {
      {"training.precision={compute: fp8, fp8_recipe: tensorwise}", "plan.recompute=selective[layernorm]"},
      {"training.precision=fp8", "cluster=mi300x-8"},
      {"training.precision=fp8", "framework=plain", "plan.zero=3"},
      {"training.precision=nvfp4", "cluster=hgx-b200"},
      {"training.precision=mxfp8", "cluster=gb200", "gpus=4"},
      {"training.precision={compute: fp8, fp8_recipe: blockwise}", "cluster=hgx-b200"},
      {"training.precision=fp16", "cluster=hgx-a100-80"}};
  for (const std::vector<std::string>& settings : cases) {
    EXPECT_EQ(to_text(problems_of(kPrecisionBase, settings)), "") << settings[0];
  }
}

}  // namespace
}  // namespace stepcast::plan
