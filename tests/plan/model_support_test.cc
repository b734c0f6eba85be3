// What the lowering does not know yet is refused by name, with exit code 4, and never lowered as a Llama.
#include "plan/model_support.h"

#include <gtest/gtest.h>

#include <functional>

#include "plan/lowering.h"
#include "tests/plan/scenario_text.h"
#include "tests/plan/tiny_scenario.h"

namespace stepcast::plan {
namespace {

using models::Architecture;

struct Variant {
  const char* part;  // of the refusal
  std::function<void(Architecture&)> change;
};

const Variant kVariants[] = {
    {"mixture of experts (8, 2 a token)",
     [](Architecture& a) {
       a.experts = models::MixtureOfExperts{.experts = 8, .top_k = 2, .ffn = 16};
       a.kinds = {models::LayerKind{.feed_forward = models::FeedForward::kExperts}};
     }},
    {"latent", [](Architecture& a) { a.latent = models::LatentAttention{}; }},
    {"indexer", [](Architecture& a) { a.indexer = models::SparseIndexer{}; }},
    {"sliding-window",
     [](Architecture& a) { a.kinds = {models::LayerKind{.mixer = models::Mixer::kWindowAttention}}; }},
    {"gated delta net", [](Architecture& a) { a.kinds = {models::LayerKind{.mixer = models::Mixer::kGatedDeltaNet}}; }},
    {"Mamba-2", [](Architecture& a) { a.kinds = {models::LayerKind{.mixer = models::Mixer::kMamba2}}; }},
    {"one block", [](Architecture& a) { a.kinds = {models::LayerKind{.mixer = models::Mixer::kNone}}; }},
    {"sinks", [](Architecture& a) { a.attention_sinks = true; }},
    {"output gate", [](Architecture& a) { a.attention_output_gate = true; }},
    {"less than a pair", [](Architecture& a) { a.rotary_fraction = 0.25; }},  // of a head of 4
    {"LayerNorm without bias", [](Architecture& a) { a.norm = models::NormKind::kLayerNorm; }},
    {"RMSNorm with a bias", [](Architecture& a) { a.norm_bias = true; }},
    {"biases before norms behind the blocks",
     [](Architecture& a) {
       a.norm_placement = models::NormPlacement::kAfter;
       a.mlp_bias = true;
     }},
    {"norm of the embedding", [](Architecture& a) { a.embedding_norm = true; }},
    {"scaled embedding", [](Architecture& a) { a.embedding_scale = 8; }},
    {"two matrices with activation silu", [](Architecture& a) { a.gated_mlp = false; }},
    {"two matrices with activation gelu",
     [](Architecture& a) {
       a.gated_mlp = false;
       a.activation = models::Activation::kGelu;
     }},
    {"a gated MLP with activation gelu_tanh", [](Architecture& a) { a.activation = models::Activation::kGeluTanh; }},
};

TEST(ModelSupport, LowersALlama) {
  const Scenario s = testing::make_scenario(testing::TinyShape{}, testing::TinyPlan{.name = "llama"});
  EXPECT_TRUE(unsupported_parts(s.model).empty());
}

// A window of the sequence's length hides nothing; one token less hides a key.
TEST(ModelSupport, AWindowActsInLongerSequences) {
  Scenario s = testing::make_scenario(testing::TinyShape{}, testing::TinyPlan{.name = "window"});
  s.model.kinds = {models::LayerKind{.mixer = models::Mixer::kWindowAttention}};
  s.model.window = s.training.sequence_length;
  EXPECT_TRUE(unsupported_parts(s.model, s.training.sequence_length).empty());
  EXPECT_EQ(unsupported_parts(s.model).size(), 1u);
  --s.model.window;
  EXPECT_EQ(unsupported_parts(s.model, s.training.sequence_length).size(), 1u);
}

TEST(ModelSupport, RefusesEachVariantByName) {
  for (const Variant& variant : kVariants) {
    Scenario s = testing::make_scenario(testing::TinyShape{}, testing::TinyPlan{.name = "variant"});
    variant.change(s.model);
    try {
      lower(s);
      ADD_FAILURE() << variant.part << " was lowered";
    } catch (const Error& fault) {
      EXPECT_EQ(fault.kind(), ErrorKind::kUnsupported) << variant.part;
      EXPECT_NE(std::string(fault.what()).find(variant.part), std::string::npos) << fault.what();
    }
  }
}

TEST(ModelSupport, RefusesWhatAPlanCannotHaveWithTheModel) {
  const auto fields = [](const testing::TinyPlan& p) {
    std::vector<std::string> names;
    const Scenario s = testing::make_scenario(testing::TinyShape{}, p);
    for (const Problem& problem : unsupported_settings(s)) names.push_back(problem.where.field);
    EXPECT_EQ(names.empty(), [&] {
      try {
        lower(s);
        return true;
      } catch (const Error& fault) {
        return fault.kind() != ErrorKind::kUnsupported;
      }
    }());
    return names;
  };
  using Fields = std::vector<std::string>;
  testing::TinyPlan p{.name = "olmo", .qk_norm = models::QkNorm::kFullWidth};
  EXPECT_EQ(fields(p), Fields{});
  p.tp = 2;
  EXPECT_EQ(fields(p), Fields{"plan.tp"});
  p.qk_norm = models::QkNorm::kPerHead;
  p.norm_placement = models::NormPlacement::kAfter;
  EXPECT_EQ(fields(p), Fields{});
  p.dropout = 0.1;
  EXPECT_EQ(fields(p), Fields{"training.dropout"});
}

// kTiny with its model, on lines 2 and 3, replaced: what, where, what would work.
TEST(ModelSupport, PointsToTheModelOfAScenario) {
  std::string text = kTiny;
  const std::size_t from = text.find("model:");
  text.replace(from, text.find("cluster:") - from, "model: mixtral-8x7b\n");
  const std::vector<Problem> problems = problems_of(text);
  ASSERT_EQ(problems.size(), 1u) << to_text(problems);
  EXPECT_EQ(Error(problems).exit_code(), 4);
  EXPECT_EQ(problems[0].where.line, 2);
  EXPECT_EQ(problems[0].where.field, "model.config");
  EXPECT_NE(problems[0].message.find("mixtral-8x7b (mixtral)"), std::string::npos);
  EXPECT_NE(to_text(problems).find("stepcast models mixtral-8x7b"), std::string::npos);
}

}  // namespace
}  // namespace stepcast::plan
