// What each family's reader makes of its keys: aliases, defaults, kinds of layers, and the variants it refuses.
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/models/model_files.h"

namespace stepcast::models {
namespace {

using testing::expect_problem;
using testing::problems_in;

// A preset's text with `from` replaced by `to`.
std::string edited(const std::string& preset, const std::string& from, const std::string& to) {
  std::string text = testing::preset_text(preset);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::int64_t layers_with(const Architecture& a, Mixer mixer) {
  std::int64_t count = 0;
  for (const auto& [kind, layers] : a.kind_counts()) count += kind.mixer == mixer ? layers : 0;
  return count;
}

std::int64_t layers_with(const Architecture& a, FeedForward feed_forward) {
  std::int64_t count = 0;
  for (const auto& [kind, layers] : a.kind_counts()) count += kind.feed_forward == feed_forward ? layers : 0;
  return count;
}

TEST(Gpt2, ReadsItsOwnNames) {
  const Architecture a = testing::preset("gpt3-175b");
  EXPECT_EQ(a.layers, 96);
  EXPECT_EQ(a.hidden, 12288);
  EXPECT_EQ(a.ffn, 49152);
  EXPECT_EQ(a.heads, 96);
  EXPECT_EQ(a.kv_heads, 96);
  EXPECT_EQ(a.max_positions, 2048);
  EXPECT_EQ(a.norm, NormKind::kLayerNorm);
  EXPECT_EQ(a.positions, PositionKind::kLearned);
  EXPECT_EQ(a.activation, Activation::kGeluTanh);
  EXPECT_FALSE(a.gated_mlp);
  EXPECT_TRUE(a.norm_bias && a.mlp_bias && a.qkv_bias && a.attention_output_bias && a.tied_embeddings);
}

TEST(Gpt2, TakesFourTimesTheWidthForAMissingInnerWidth) {
  EXPECT_EQ(parse_hf_config(edited("gpt3-175b", "\"n_inner\": 49152", "\"n_inner\": null"), "m.json").ffn, 49152);
}

TEST(Gpt2, PointsAtTheNameTheFileUses) {
  expect_problem("{\n\"model_type\": \"gpt2\",\n\"n_embd\": 64,\n\"n_layer\": 0,\n\"n_head\": 4, \"vocab_size\": 100}",
                 ErrorKind::kInput, 4, "n_layer", "is 0");
  expect_problem(
      "{\n\"model_type\": \"gpt2\",\n\"n_embd\": 64,\n\"hidden_size\": 32,\n\"n_layer\": 2, \"n_head\": 4, "
      "\"vocab_size\": 100}",
      ErrorKind::kInput, 3, "n_embd", "differs from hidden_size");
}

// Inner widths of Llama 2 7B and 70B, Llama 3 8B and 405B from Meta's params.json: 2/3 of 4 dim, times the multiplier,
// up to the multiple: 10922.7 to 43 * 256; 1.3 * 21845 to 7 * 4096; 1.3 * 10922 to 14 * 1024; 1.2 * 43690 to 13 * 4096.
TEST(MetaParams, ComputesTheInnerWidth) {
  const auto ffn = [](const std::string& keys) {
    return parse_hf_config("{\"n_layers\": 4, \"vocab_size\": 32000, " + keys + "}", "llama/params.json").ffn;
  };
  EXPECT_EQ(ffn(R"("dim": 4096, "n_heads": 32, "multiple_of": 256)"), 11008);
  EXPECT_EQ(ffn(R"("dim": 8192, "n_heads": 64, "n_kv_heads": 8, "multiple_of": 4096, "ffn_dim_multiplier": 1.3)"),
            28672);
  EXPECT_EQ(ffn(R"("dim": 4096, "n_heads": 32, "n_kv_heads": 8, "multiple_of": 1024, "ffn_dim_multiplier": 1.3)"),
            14336);
  EXPECT_EQ(ffn(R"("dim": 16384, "n_heads": 128, "n_kv_heads": 8, "multiple_of": 4096, "ffn_dim_multiplier": 1.2)"),
            53248);
}

TEST(MetaParams, EqualsTheHuggingFaceFileOfTheSameModel) {
  const Architecture meta = parse_hf_config(R"({"dim": 8192, "n_layers": 80, "n_heads": 64, "n_kv_heads": 8,
    "multiple_of": 4096, "ffn_dim_multiplier": 1.3, "norm_eps": 1e-05, "vocab_size": 32000})",
                                            "llama-2-70b/params.json");
  EXPECT_EQ(meta.name, "llama-2-70b");
  EXPECT_EQ(meta.norm_eps, 1e-5);
  EXPECT_EQ(count_parameters(meta).total, 68976648192);
}

TEST(MetaParams, WantsTheVocabularyWritten) {
  expect_problem("{\"dim\": 4096, \"n_layers\": 32, \"n_heads\": 32,\n\"vocab_size\": -1}", ErrorKind::kInput, 2,
                 "vocab_size", "tokenizer");
}

TEST(Qwen, HasBiasesOrNormsOfQueriesAndKeys) {
  const Architecture qwen2 = testing::preset("qwen2.5-7b");
  EXPECT_TRUE(qwen2.qkv_bias);
  EXPECT_FALSE(qwen2.attention_output_bias);
  EXPECT_EQ(qwen2.qk_norm, QkNorm::kNone);
  const Architecture qwen3 = testing::preset("qwen3-8b");
  EXPECT_FALSE(qwen3.qkv_bias);
  EXPECT_EQ(qwen3.qk_norm, QkNorm::kPerHead);
}

// A window is on only with use_sliding_window, and then from layer max_window_layers on: 8 of 28.
TEST(Qwen, LeavesItsWindowOffUnlessSaidOtherwise) {
  EXPECT_EQ(layers_with(testing::preset("qwen2.5-7b"), Mixer::kWindowAttention), 0);
  const Architecture a =
      parse_hf_config(edited("qwen2.5-7b", "\"use_sliding_window\": false",
                             "\"use_sliding_window\": true, \"sliding_window\": 1024, \"max_window_layers\": 20"),
                      "m.json");
  EXPECT_EQ(layers_with(a, Mixer::kWindowAttention), 8);
  EXPECT_EQ(a.window, 1024);
}

TEST(Olmo2, NormsBehindTheBlocks) {
  const Architecture a = testing::preset("olmo-2-7b");
  EXPECT_EQ(a.norm_placement, NormPlacement::kAfter);
  EXPECT_EQ(a.qk_norm, QkNorm::kFullWidth);
}

TEST(SmolLm3, LeavesEveryFourthLayerWithoutPositions) {
  const Architecture a = testing::preset("smollm3-3b");
  for (const std::int64_t layer : {0, 1, 2}) EXPECT_TRUE(a.kind_of(layer).rotary) << layer;
  EXPECT_FALSE(a.kind_of(3).rotary);
  ASSERT_EQ(a.kind_counts().size(), 2u);
  EXPECT_EQ(a.kind_counts()[1].second, 9);
}

TEST(Bloom, PlacesByAlibiAndNormsTheEmbedding) {
  const Architecture a = parse_hf_config(
      R"({"model_type": "bloom", "n_layer": 2, "n_head": 4, "n_embed": 64, "vocab_size": 100})", "m.json");
  EXPECT_EQ(a.positions, PositionKind::kAlibi);
  EXPECT_TRUE(a.embedding_norm);
  EXPECT_EQ(a.ffn, 256);
}

TEST(Mpt, ReadsPositionsFromItsAttentionConfig) {
  const auto positions = [](const std::string& more) {
    return parse_hf_config(
               "{\"model_type\": \"mpt\", \"n_layers\": 2, \"n_heads\": 4, \"d_model\": 64, \"vocab_size\": "
               "100" +
                   more + "}",
               "m.json")
        .positions;
  };
  EXPECT_EQ(positions(""), PositionKind::kAlibi);
  EXPECT_EQ(positions(", \"attn_config\": {\"alibi\": false}"), PositionKind::kLearned);
  EXPECT_EQ(positions(", \"attn_config\": {\"alibi\": false}, \"learned_pos_emb\": false"), PositionKind::kNone);
}

TEST(Mistral, HasAWindowUnlessNull) {
  const std::string keys = R"({"model_type": "mistral", "hidden_size": 64, "intermediate_size": 96,
    "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 100)";
  EXPECT_EQ(parse_hf_config(keys + "}", "m.json").window, 4096);
  EXPECT_EQ(parse_hf_config(keys + R"(, "sliding_window": 16})", "m.json").window, 16);
  const Architecture a = parse_hf_config(keys + R"(, "sliding_window": null})", "m.json");
  EXPECT_EQ(a.window, 0);
  EXPECT_EQ(layers_with(a, Mixer::kAttention), 4);
}

TEST(GptOss, AlternatesWindows) {
  const Architecture a = testing::preset("gpt-oss-20b");
  EXPECT_EQ(layers_with(a, Mixer::kWindowAttention), 12);
  EXPECT_EQ(a.kind_of(0).mixer, Mixer::kWindowAttention);
  EXPECT_EQ(a.kind_of(1).mixer, Mixer::kAttention);
  EXPECT_EQ(a.window, 128);
  EXPECT_EQ(layers_with(a, FeedForward::kExperts), 24);
  EXPECT_TRUE(a.attention_sinks && a.experts->expert_bias && a.experts->router_bias);
}

TEST(GptOss, WantsATypeForEachLayer) {
  const std::string text = testing::preset_text("gpt-oss-20b");
  std::string fewer = text;
  fewer.replace(fewer.find("\"num_hidden_layers\": 24"), 23, "\"num_hidden_layers\": 25");
  ASSERT_EQ(problems_in(fewer).size(), 1u);
  EXPECT_EQ(problems_in(fewer)[0].where.field, "layer_types");
  const auto odd = problems_in(edited("gpt-oss-20b", "\"full_attention\"", "\"chunked_attention\""));
  ASSERT_EQ(odd.size(), 1u);
  EXPECT_EQ(odd[0].kind, ErrorKind::kUnsupported);
}

TEST(DeepSeek, ReadsRanksRoutersAndFirstDenseLayers) {
  const Architecture v3 = testing::preset("deepseek-v3");
  EXPECT_EQ(v3.latent->q_rank, 1536);
  EXPECT_EQ(v3.latent->qk_dim(), 192);
  EXPECT_EQ(layers_with(v3, FeedForward::kMlp), 3);
  EXPECT_EQ(v3.kind_of(2).feed_forward, FeedForward::kMlp);
  EXPECT_EQ(v3.kind_of(3).feed_forward, FeedForward::kExperts);
  EXPECT_EQ(v3.mtp_layers, 1);
  EXPECT_EQ(v3.experts->score, RouterScore::kSigmoid);
  EXPECT_TRUE(v3.experts->selection_bias);
  EXPECT_EQ(v3.experts->groups_used, 4);
  EXPECT_EQ(v3.experts->scale, 2.5);
  const Architecture lite = testing::preset("deepseek-v2-lite");
  EXPECT_EQ(lite.latent->q_rank, 0);
  EXPECT_EQ(lite.experts->shared_ffn, 2 * 1408);
  EXPECT_FALSE(lite.experts->selection_bias);
  EXPECT_EQ(testing::preset("deepseek-v3.2").indexer->top_k, 2048);
}

TEST(DeepSeek, TellsANullRankFromAMissingOne) {
  const auto problems = problems_in(edited("deepseek-v2-lite", "\"q_lora_rank\": null,", ""));
  ASSERT_EQ(problems.size(), 1u) << to_text(problems);
  EXPECT_EQ(problems[0].where.field, "q_lora_rank");
}

TEST(DeepSeek, RefusesRoutersThatAreNotDescribed) {
  const auto problems = problems_in(edited("deepseek-v3", "\"sigmoid\"", "\"tanh\""));
  ASSERT_EQ(problems.size(), 1u) << to_text(problems);
  EXPECT_EQ(problems[0].kind, ErrorKind::kUnsupported);
  EXPECT_EQ(problems[0].where.field, "scoring_func");
}

TEST(QwenMoe, LeavesListedLayersDense) {
  const Architecture a =
      parse_hf_config(edited("qwen3-30b-a3b", "\"mlp_only_layers\": []", "\"mlp_only_layers\": [0, 5]"), "m.json");
  EXPECT_EQ(layers_with(a, FeedForward::kMlp), 2);
  EXPECT_EQ(a.kind_of(5).feed_forward, FeedForward::kMlp);
  EXPECT_EQ(layers_with(testing::preset("qwen3-30b-a3b"), FeedForward::kMlp), 0);
}

TEST(QwenNext, AttendsOnEveryFourthLayer) {
  const Architecture a = testing::preset("qwen3-next-80b-a3b");
  EXPECT_EQ(layers_with(a, Mixer::kGatedDeltaNet), 36);
  EXPECT_EQ(layers_with(a, Mixer::kAttention), 12);
  EXPECT_EQ(a.kind_of(3).mixer, Mixer::kAttention);
  EXPECT_EQ(layers_with(a, FeedForward::kExperts), 48);
  EXPECT_EQ(a.rotary_fraction, 0.25);
  EXPECT_TRUE(a.attention_output_gate && a.experts->shared_gate);
}

TEST(NemotronH, FollowsItsPattern) {
  const Architecture a = testing::preset("nemotron-h-8b");
  EXPECT_EQ(layers_with(a, Mixer::kMamba2), 24);
  EXPECT_EQ(layers_with(a, Mixer::kAttention), 4);
  EXPECT_EQ(layers_with(a, FeedForward::kMlp), 24);
  EXPECT_EQ(a.kind_of(7).mixer, Mixer::kAttention);
  EXPECT_EQ(a.positions, PositionKind::kNone);
  EXPECT_EQ(a.activation, Activation::kSquaredRelu);
  const auto experts = problems_in(edited("nemotron-h-8b", "M-M-M-M*", "MEM-M-M*"));
  ASSERT_EQ(experts.size(), 1u);
  EXPECT_EQ(experts[0].kind, ErrorKind::kUnsupported);
  const auto shorter = problems_in(edited("nemotron-h-8b", "M-M-M-M*", "M-M-M*"));
  ASSERT_EQ(shorter.size(), 1u);
  EXPECT_EQ(shorter[0].where.field, "hybrid_override_pattern");
}

// Every key of every preset is either read or one of those that move no work.
TEST(Presets, IgnoreOnlyKeysWithoutInfluence) {
  const std::vector<std::string> harmless = {"architectures",        "torch_dtype", "rope_scaling", "aux_loss_alpha",
                                             "router_aux_loss_coef", "seq_aux",     "swiglu_limit", "expand"};
  for (const std::string& name : testing::preset_names()) {
    std::vector<std::string> ignored;
    parse_hf_config(testing::preset_text(name), name + ".json", &ignored);
    for (const std::string& key : ignored) {
      EXPECT_NE(std::find(harmless.begin(), harmless.end(), key), harmless.end()) << name << ": " << key;
    }
  }
}

}  // namespace
}  // namespace stepcast::models
