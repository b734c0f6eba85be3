// A GPT-style decoder written inline in a scenario, and what is refused of it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/rules.h"
#include "plan/scenario_reader.h"
#include "tests/plan/scenario_text.h"

namespace stepcast::plan {
namespace {

constexpr const char* kGpt = R"(
model:
  num_hidden_layers: 4
  hidden_size: 32
  intermediate_size: 128
  num_attention_heads: 8
  vocab_size: 64
  max_position_embeddings: 20
  hidden_act: gelu_pytorch_tanh
  normalization: LayerNorm
  position_embedding_type: learned_absolute
  add_bias_linear: true
cluster: local-cpu
gpus: 1
framework: plain
training: {sequence_length: 16, global_batch_size: 8, dropout: 0.1}
stack: {attention: unfused}
)";

TEST(GptScenario, IsReadIntoTheShape) {
  const Scenario s = read_text(kGpt).scenario;
  EXPECT_EQ(s.model.norm, models::NormKind::kLayerNorm);
  EXPECT_EQ(s.model.activation, models::Activation::kGeluTanh);
  EXPECT_FALSE(s.model.gated_mlp);
  EXPECT_TRUE(s.model.norm_bias);
  EXPECT_EQ(s.model.positions, models::PositionKind::kLearned);
  EXPECT_TRUE(s.model.qkv_bias && s.model.attention_output_bias && s.model.mlp_bias);
  EXPECT_EQ(s.training.dropout, 0.1);
  EXPECT_EQ(s.attention, AttentionKind::kUnfused);
}

TEST(GptScenario, TakesEveryWordOfItsKeys) {
  const auto model = [](const char* setting) { return read_text(kGpt, {setting}).scenario.model; };
  EXPECT_EQ(model("model.hidden_act=relu2").activation, models::Activation::kSquaredRelu);
  EXPECT_EQ(model("model.hidden_act=gelu_new").activation, models::Activation::kGeluTanh);
  EXPECT_TRUE(model("model.hidden_act=silu").gated_mlp);
  EXPECT_EQ(model("model.normalization=RMSNorm").norm, models::NormKind::kRmsNorm);
  EXPECT_EQ(model("model.position_embedding_type=alibi").positions, models::PositionKind::kAlibi);
  EXPECT_EQ(model("model.position_embedding_type=rope").positions, models::PositionKind::kRotary);
  EXPECT_EQ(model("model.position_embedding_type=none").positions, models::PositionKind::kNone);
}

TEST(GptScenario, TakesMegatronsOlderWays) {
  const Scenario s =
      read_text(kGpt, {"training.precision={compute: bf16, grads: bf16}", "plan.overlap.tp_input_grad=false",
                       "stack={attention: unfused, gradient_accumulation: separate}"})
          .scenario;
  EXPECT_EQ(s.training.gradients, program::DType::kBf16);
  EXPECT_TRUE(s.training.master_weights);
  EXPECT_EQ(s.accumulation, GradientAccumulation::kSeparate);
  EXPECT_FALSE(s.plan.overlap_tp_input_grad);
}

// Gradients narrower than what computes them, and a reduction in another type than theirs.
TEST(GptScenario, RefusesMixedGradientTypes) {
  EXPECT_EQ(exit_code_of(kGpt, {"training.precision={compute: fp32, grads: bf16}"}), 4);
  EXPECT_EQ(exit_code_of(kGpt, {"training.precision={compute: bf16, grads: bf16, grad_reduce: fp32}"}), 4);
  EXPECT_EQ(exit_code_of(kGpt, {"training.precision={compute: bf16, grads: fp32, grad_reduce: bf16}"}), 4);
}

// A table of learned positions ends somewhere: no framework can train beyond it. Rotary positions are only warned of.
TEST(GptScenario, NeedsAPositionForEveryToken) {
  EXPECT_EQ(exit_code_of(kGpt, {"model.max_position_embeddings=16"}), 0);
  EXPECT_EQ(exit_code_of(kGpt, {"model.max_position_embeddings=15"}), 3);
  EXPECT_EQ(exit_code_of(kGpt, {"model.max_position_embeddings=15", "model.position_embedding_type=rope"}), 0);
}

// Unfused scores of 65,536 heads x 524,288 keys are 2^35 elements a token: 2^19 tokens of them are beyond 2^48.
TEST(GptScenario, BoundsTheScoresThatStandInMemory) {
  const std::vector<std::string> large = {"model.hidden_size=131072",
                                          "model.num_attention_heads=65536",
                                          "model.head_dim=2",
                                          "model.max_position_embeddings=1048576",
                                          "training.sequence_length=524288",
                                          "model.num_hidden_layers=1"};
  std::size_t found = 0;
  for (const Problem& p : problems_of(kGpt, large)) found += p.where.field == "plan.micro_batch_size" ? 1 : 0;
  EXPECT_EQ(found, 1u);
  // A fused kernel keeps none of them.
  std::string fused = kGpt;
  fused.erase(fused.find("stack:"));
  found = 0;
  for (const Problem& p : problems_of(fused, large)) found += p.where.field == "plan.micro_batch_size" ? 1 : 0;
  EXPECT_EQ(found, 0u);
}

// A Llama stays one unless it says otherwise.
TEST(GptScenario, DefaultsAreTheLlamas) {
  const Scenario s = read_text(R"(
model: llama-3.1-8b
cluster: hgx-h100
gpus: 8
training: {sequence_length: 8192, global_batch_size: 8}
)")
                         .scenario;
  EXPECT_EQ(s.model.norm, models::NormKind::kRmsNorm);
  EXPECT_TRUE(s.model.gated_mlp);
  EXPECT_EQ(s.model.positions, models::PositionKind::kRotary);
  EXPECT_FALSE(s.model.qkv_bias || s.model.attention_output_bias || s.model.mlp_bias);
  EXPECT_EQ(s.training.dropout, 0);
  EXPECT_EQ(s.attention, AttentionKind::kFused);
}

}  // namespace
}  // namespace stepcast::plan
