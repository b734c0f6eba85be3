// Parameter and FLOP accounting against published totals and hand-derived values.
#include "models/architecture.h"

#include <gtest/gtest.h>

#include <tuple>

#include "base/check.h"
#include "tests/models/model_files.h"

namespace stepcast::models {
namespace {

// hidden 8, 2 heads of 4, 1 kv head, ffn 12, vocab 10, 3 layers.
// Layer: q 8*8, k and v 2*8*4, o 8*8, gate, up and down 3*8*12: 64+64+64+288 = 480; norms 16.
// Tables 80 each; final norm 8.
Architecture small() {
  return {.name = "small",
          .layers = 3,
          .hidden = 8,
          .ffn = 12,
          .heads = 2,
          .kv_heads = 1,
          .head_dim = 4,
          .vocab = 10,
          .padded_vocab = 10,
          .max_positions = 32};
}

TEST(CountParameters, AddsUpAHandSizedModel) {
  const ParameterCount n = count_parameters(small());
  EXPECT_EQ(n.mixers, 3 * 192);
  EXPECT_EQ(n.feed_forward, 3 * 288);
  EXPECT_EQ(n.norms, 3 * 16 + 8);
  EXPECT_EQ(n.embedding, 80);
  EXPECT_EQ(n.head, 80);
  EXPECT_EQ(n.active, n.total);
  EXPECT_EQ(n.total, 3 * 496 + 80 + 80 + 8);
  EXPECT_EQ(n.matmul, 3 * 480 + 80);
}

// A layer of GPT-3's kind: ffn 4h, as many key-value heads as heads, biases. qkv 3h^2 + 3h, o h^2 + h, up 4h^2 + 4h,
// down 4h^2 + h, two layer norms 4h: 12h^2 + 13h (Narayanan et al. 2021, arXiv:2104.04473, equation 2). Plus the table
// of V rows, that of P positions and the final norm 2h; the head is tied.
Architecture gpt3(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return {.name = "gpt",
          .layers = layers,
          .hidden = hidden,
          .ffn = 4 * hidden,
          .heads = heads,
          .kv_heads = heads,
          .head_dim = hidden / heads,
          .vocab = 51200,
          .padded_vocab = 51200,
          .max_positions = 2048,
          .tied_embeddings = true,
          .norm = NormKind::kLayerNorm,
          .norm_bias = true,
          .positions = PositionKind::kLearned,
          .qkv_bias = true,
          .attention_output_bias = true,
          .gated_mlp = false,
          .activation = Activation::kGeluTanh,
          .mlp_bias = true};
}

TEST(CountParameters, GivesGptLayersTheirClosedForm) {
  for (const auto& [layers, h, heads] : {std::tuple{96L, 12288L, 96L}, std::tuple{24L, 2304L, 24L}}) {
    const ParameterCount n = count_parameters(gpt3(layers, h, heads));
    EXPECT_EQ(n.mixers, layers * (4 * h * h + 4 * h));
    EXPECT_EQ(n.feed_forward, layers * (8 * h * h + 5 * h));
    EXPECT_EQ(n.positions, 2048 * h);
    EXPECT_EQ(n.norms, layers * 4 * h + 2 * h);
    EXPECT_EQ(n.total, layers * (12 * h * h + 13 * h) + (51200 + 2048) * h + 2 * h);
    EXPECT_EQ(n.matmul, layers * 12 * h * h + 51200 * h);
  }
}

// GPT-2's smallest model has 12 layers of 768, 50257 tokens, 1024 positions, a tied head: 124,439,808 parameters as
// transformers' GPT2LMHeadModel counts them.
TEST(CountParameters, EqualsTheTotalOfGpt2) {
  Architecture a = gpt3(12, 768, 12);
  a.vocab = a.padded_vocab = 50257;
  a.max_positions = 1024;
  EXPECT_EQ(count_parameters(a).total, 124439808);
}

// ALiBi and no positions have no parameters; a squared ReLU has those of GELU; without biases a layer norm keeps its
// own.
TEST(CountParameters, LeavesOutWhatAShapeLacks) {
  Architecture a = gpt3(1, 64, 4);
  a.activation = Activation::kSquaredRelu;
  a.positions = PositionKind::kAlibi;
  const std::int64_t outside = 51200 * 64 + 2 * 64;  // table and final norm
  EXPECT_EQ(count_parameters(a).total, 12 * 64 * 64 + 13 * 64 + outside);
  EXPECT_EQ(count_parameters(a).positions, 0);
  a.qkv_bias = a.attention_output_bias = a.mlp_bias = false;
  EXPECT_EQ(count_parameters(a).total, 12 * 64 * 64 + 4 * 64 + outside);
}

// Rotary positions turn pairs of channels; others take an odd head.
TEST(Problems, OddHeadsNeedOtherThanRotaryPositions) {
  Architecture a = gpt3(1, 12, 4);
  EXPECT_TRUE(problems_of(a).empty());
  a.positions = PositionKind::kRotary;
  EXPECT_EQ(problems_of(a).size(), 1u);
}

TEST(CountParameters, CountsATiedTableOnceButItsMatmulStill) {
  Architecture a = small();
  a.tied_embeddings = true;
  const ParameterCount n = count_parameters(a);
  EXPECT_EQ(n.head, 0);
  EXPECT_EQ(n.total, 3 * 496 + 80 + 8);
  EXPECT_EQ(n.matmul, 3 * 480 + 80);
}

TEST(CountParameters, IgnoresPaddingOfTheVocabulary) {
  Architecture a = small();
  a.padded_vocab = 128;
  EXPECT_EQ(count_parameters(a).total, count_parameters(small()).total);
}

TEST(CountParameters, RefusesShapesThatWouldOverflow) {
  Architecture a = small();
  a.hidden = kMaxSize;
  a.ffn = kMaxSize;  // 3 * 2^62 per layer
  EXPECT_THROW(count_parameters(a), InternalError);
  a = small();
  a.layers = 0;
  EXPECT_THROW(count_parameters(a), InternalError);
}

// Llama 3.1 8B at 8192 tokens. Matmul parameters per layer 4096*6144 + 4096*4096 + 3*4096*14336 = 218,103,808; times 32
// plus the head 128256*4096 is 7,504,658,432; times 6 is 45,027,950,592. Attention 12*32*32*128*8192 = 12,884,901,888.
TEST(TrainingFlopsPerToken, GivesBothAttentionConventions) {
  const FlopsPerToken flops = training_flops_per_token(testing::preset("llama-3.1-8b"), 8192);
  EXPECT_EQ(flops.full, 45027950592.0 + 12884901888.0);
  EXPECT_EQ(flops.causal, 45027950592.0 + 6442450944.0);
}

// The two conventions differ by 6 FLOPs per norm weight: 3 layers of 16 and the final 8.
TEST(MaxtextFlopsPerToken, DiffersFromOursByTheNormWeights) {
  Architecture a = small();
  EXPECT_EQ(maxtext_flops_per_token(a, 32) - training_flops_per_token(a, 32).full, 6.0 * (3 * 16 + 8));
  a.tied_embeddings = true;
  EXPECT_EQ(maxtext_flops_per_token(a, 32) - training_flops_per_token(a, 32).full, 6.0 * (3 * 16 + 8));
}

// 128 * tp for tp 4 is 512; 32000 = 62.5 * 512, 128256 = 250.5 * 512.
TEST(PaddedVocab, RoundsUpToTheMultiple) {
  EXPECT_EQ(padded_vocab(32000, 512), 63 * 512);
  EXPECT_EQ(padded_vocab(128256, 512), 251 * 512);
  EXPECT_EQ(padded_vocab(128256, 128), 128256);
  EXPECT_EQ(padded_vocab(7, 1), 7);
  EXPECT_THROW(padded_vocab(0, 1), InternalError);
  EXPECT_THROW(padded_vocab(5, 0), InternalError);
}

TEST(ProblemsOf, AcceptsEveryPreset) {
  for (const std::string& name : testing::preset_names()) {
    EXPECT_TRUE(problems_of(testing::preset(name)).empty()) << name;
  }
}

TEST(ProblemsOf, NamesEverySizeOutOfRange) {
  Architecture a = small();
  a.layers = 0;
  a.ffn = -3;
  a.vocab = kMaxSize + 1;
  const std::vector<ShapeProblem> problems = problems_of(a);
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_EQ(problems[0].field, "num_hidden_layers");
  EXPECT_EQ(problems[1].field, "intermediate_size");
  EXPECT_EQ(problems[2].field, "vocab_size");
}

TEST(ProblemsOf, JudgesRelationsBetweenSizes) {
  Architecture a = small();
  a.heads = 5;
  a.kv_heads = 2;
  a.head_dim = 3;
  a.padded_vocab = 9;
  const std::vector<ShapeProblem> problems = problems_of(a);
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_EQ(problems[0].field, "num_key_value_heads");
  EXPECT_EQ(problems[1].field, "head_dim");
  EXPECT_EQ(problems[2].field, "vocab_size");
}

TEST(ProblemsOf, JudgesComponents) {
  Architecture a = small();
  a.experts = MixtureOfExperts{.experts = 4, .top_k = 5, .ffn = 8, .groups = 3};
  a.mamba = Mamba2{.heads = 6, .head_dim = 4, .groups = 4, .state = 8, .conv_kernel = 4, .chunk = 16};
  const std::vector<ShapeProblem> problems = problems_of(a);
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_EQ(problems[0].field, "n_groups");
  EXPECT_EQ(problems[1].field, "num_experts_per_tok");
  EXPECT_EQ(problems[2].field, "n_group");
  a.experts->ffn = kMaxComponentSize + 1;
  ASSERT_EQ(problems_of(a).size(), 1u);
  EXPECT_EQ(problems_of(a)[0].field, "moe_intermediate_size");
}

TEST(ProblemsOf, WantsEveryLayerDescribed) {
  Architecture a = small();
  a.kinds = {LayerKind{}, LayerKind{}};
  ASSERT_EQ(problems_of(a).size(), 1u);
  EXPECT_EQ(problems_of(a)[0].field, "num_hidden_layers");
  for (const LayerKind kind : {LayerKind{.mixer = Mixer::kWindowAttention}, LayerKind{.mixer = Mixer::kGatedDeltaNet},
                               LayerKind{.mixer = Mixer::kMamba2}, LayerKind{.feed_forward = FeedForward::kExperts}}) {
    a.kinds = {kind};
    EXPECT_EQ(problems_of(a).size(), 1u);
  }
}

// 2^16 prediction layers with a projection of 2 * 2^40 weights each are more than 2^50 parameters.
TEST(ProblemsOf, CountsPredictionLayersToo) {
  Architecture a = small();
  a.hidden = 1 << 20;
  EXPECT_TRUE(problems_of(a).empty());
  a.mtp_layers = 1 << 16;
  EXPECT_EQ(problems_of(a).size(), 1u);
}

TEST(KindCounts, CountsTheLayersOfEachKind) {
  Architecture a = small();
  a.kinds = {LayerKind{}, LayerKind{.rotary = false}, LayerKind{}, LayerKind{.rotary = false}};
  const auto counts = a.kind_counts();
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[0].second, 2);
  EXPECT_EQ(counts[1].second, 1);
  EXPECT_FALSE(a.kind_of(1).rotary);
}

}  // namespace
}  // namespace stepcast::models
