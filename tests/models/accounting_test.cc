// Parameters of families without a preset, and FLOPs per token, against published and hand-derived values.
#include <gtest/gtest.h>

#include "tests/models/model_files.h"

namespace stepcast::models {
namespace {

Architecture parsed(const std::string& text) { return parse_hf_config(text, "m.json"); }

Architecture mistral_7b() {
  return parsed(R"({"model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000, "sliding_window": 4096,
    "max_position_embeddings": 32768, "rms_norm_eps": 1e-05})");
}

// Totals of HF safetensors metadata: mistral-7b-v0.1, gemma-2b, gemma-7b, bloom (176B), mpt-7b.
TEST(CountParameters, MeetsPublishedTotalsOfFamiliesWithoutAPreset) {
  EXPECT_EQ(count_parameters(mistral_7b()).total, 7241732096);
  const std::string gemma = R"({"model_type": "gemma", "head_dim": 256, "vocab_size": 256000, "hidden_act": "gelu", )";
  EXPECT_EQ(count_parameters(parsed(gemma + R"("hidden_size": 2048, "intermediate_size": 16384,
    "num_hidden_layers": 18, "num_attention_heads": 8, "num_key_value_heads": 1})"))
                .total,
            2506172416);
  EXPECT_EQ(count_parameters(parsed(gemma + R"("hidden_size": 3072, "intermediate_size": 24576,
    "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 16})"))
                .total,
            8537680896);
  EXPECT_EQ(count_parameters(parsed(R"({"model_type": "bloom", "n_layer": 70, "num_attention_heads": 112,
    "hidden_size": 14336, "vocab_size": 250880})"))
                .total,
            176247271424);
  EXPECT_EQ(count_parameters(parsed(R"({"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32,
    "expansion_ratio": 4, "max_seq_len": 2048, "vocab_size": 50432, "no_bias": true,
    "attn_config": {"alibi": true, "attn_impl": "torch"}})"))
                .total,
            6649286656);
}

// TFLOP per step of 12 x 2048 tokens as printed by AI-Hypercomputer/maxtext pull request 644, four or five digits.
TEST(MaxtextFlopsPerToken, ReproducesThePublishedStepTable) {
  const auto step = [](const Architecture& a) { return maxtext_flops_per_token(a, 2048) * 12 * 2048 / 1e12; };
  EXPECT_NEAR(step(testing::preset("llama-2-7b")) / 1053.4, 1.0, 0.0005);
  EXPECT_NEAR(step(testing::preset("llama-2-13b")) / 2018.7, 1.0, 0.0005);
  EXPECT_NEAR(step(testing::preset("llama-2-70b")) / 10528.0, 1.0, 0.0005);
  EXPECT_NEAR(step(mistral_7b()) / 1127.6, 1.0, 0.0005);
}

// pytorch/torchtitan issue 452: Llama 3 8B at 8,192 tokens, the input table left out, norm weights counted.
TEST(MaxtextFlopsPerToken, IsWhatTorchtitanCounts) {
  EXPECT_EQ(maxtext_flops_per_token(testing::preset("llama-3.1-8b"), 8192), 57914449920.0);
}

// NVIDIA/NeMo-Framework-Launcher pull request 347: tokens per second and GPU, and the TFLOP/s printed beside them. The
// tokens are rounded, 1 of 697 is 1.1 TFLOP/s; full attention, the head counted.
TEST(TrainingFlopsPerToken, TurnsPublishedThroughputIntoPublishedTflops) {
  const struct {
    const char* model;
    std::int64_t sequence;
    double tokens_per_s;
    double tflops;
  } rows[] = {{"llama-2-70b", 4096, 1659, 737},
              {"llama-2-13b", 4096, 8344, 727},
              {"llama-2-7b", 4096, 16154, 744},
              {"gpt3-175b", 2048, 697, 750}};
  for (const auto& row : rows) {
    const double flops = training_flops_per_token(testing::preset(row.model), row.sequence).full;
    EXPECT_NEAR(flops * row.tokens_per_s * 1e-12, row.tflops, 0.55) << row.model;
  }
}

// Megatron-Bridge's performance summary (26.06 and later) counts 32.6 GFLOP a token for GPT-OSS 120B at 4,096 tokens,
// causal; it leaves the layers with windows out, which are 0.3 % of ours. By hand: 6 * matmul parameters; half of the
// 36 layers see 4,096 keys, the others 128.
TEST(TrainingFlopsPerToken, CountsWindowsAndActiveExpertsOfGptOss) {
  const Architecture a = testing::preset("gpt-oss-120b");
  // Attention: q and o 2880 * 4096 each, k and v 2880 * 512 each. Router 2880 * 128, four experts of 3 * 2880 * 2880.
  const double layer = 2.0 * 2880 * 4096 + 2.0 * 2880 * 512 + 2880.0 * 128 + 4.0 * 3 * 2880 * 2880;
  const double matmul = 36 * layer + 201088.0 * 2880;
  const double per_key = 12.0 * 64 * 64;
  EXPECT_EQ(training_flops_per_token(a, 4096).full, 6 * matmul + 18 * per_key * (4096 + 128));
  const double windows = 18 * per_key * 128 * (1 - 128.0 / 8192);
  EXPECT_EQ(training_flops_per_token(a, 4096).causal, 6 * matmul + 18 * per_key * 2048 + windows);
  EXPECT_NEAR((training_flops_per_token(a, 4096).causal - windows) * 1e-9, 32.6, 0.05);
}

// Below the window a token sees what a token without one sees.
TEST(TrainingFlopsPerToken, TakesAWindowLongerThanTheSequenceForNone) {
  Architecture windowed = mistral_7b();
  Architecture plain = windowed;
  plain.kinds = {LayerKind{}};
  EXPECT_EQ(training_flops_per_token(windowed, 4096).full, training_flops_per_token(plain, 4096).full);
  EXPECT_EQ(training_flops_per_token(windowed, 4096).causal, training_flops_per_token(plain, 4096).causal);
  EXPECT_LT(training_flops_per_token(windowed, 8192).full, training_flops_per_token(plain, 8192).full);
  // 32 layers, 32 heads of 128, 4,096 of 8,192 keys: three quarters of a window on average.
  const double causal = training_flops_per_token(windowed, 8192).causal - 6.0 * 7110393856.0;
  EXPECT_EQ(causal, 12.0 * 32 * 4096 * 4096 * 0.75);
}

// DeepSeek-V3: 128 heads score 192 and weigh 128 elements a key: 6 * 128 * 320 FLOPs a key and layer, 61 layers. V3.2
// looks at 2,048 of them, and its 64 index heads of 128 at all.
TEST(TrainingFlopsPerToken, CountsLatentAndSparseAttention) {
  const Architecture v3 = testing::preset("deepseek-v3");
  const Architecture v32 = testing::preset("deepseek-v3.2");
  const auto attention = [](const Architecture& a, std::int64_t s) {
    return training_flops_per_token(a, s).full - 6.0 * static_cast<double>(count_parameters(a).matmul);
  };
  EXPECT_EQ(attention(v3, 8192), 61.0 * 6 * 128 * 320 * 8192);
  EXPECT_EQ(attention(v32, 8192), 61.0 * (6.0 * 128 * 320 * 2048 + 6.0 * 64 * 128 * 8192));
}

// A layer of each kind that replaces attention, forward and backward: 3 * (8 * 32 * 128 * 128 + 2 * 4 * 8192) for
// Qwen3-Next's gated delta net, 3 * (7 * 8192 * 128 + 2 * 4 * 10240) for Nemotron-H 8B's Mamba-2; of any sequence.
TEST(TrainingFlopsPerToken, CountsWhatReplacesAttention) {
  Architecture qwen = testing::preset("qwen3-next-80b-a3b");
  ASSERT_EQ(qwen.delta->conv_width(), 2 * 16 * 128 + 32 * 128);
  Architecture nemotron = testing::preset("nemotron-h-8b");
  ASSERT_EQ(nemotron.mamba->conv_width(), 128 * 64 + 2 * 8 * 128);
  const auto beyond_matmul = [](const Architecture& a) {
    return training_flops_per_token(a, 4096).causal - 6.0 * static_cast<double>(count_parameters(a).matmul);
  };
  // 36 and 12 layers with 16 heads of 256; 24 and 4 layers with 32 heads of 128; attention causal.
  EXPECT_EQ(beyond_matmul(qwen), 36.0 * 3 * (8.0 * 32 * 128 * 128 + 2.0 * 4 * 8192) + 12 * 6.0 * 4096 * 4096);
  EXPECT_EQ(beyond_matmul(nemotron), 24.0 * 3 * (7.0 * 8192 * 128 + 2.0 * 4 * 10240) + 4 * 6.0 * 4096 * 4096);
}

// hidden 8, 2 heads of 4, 1 kv head, vocab 10, two layers; LayerNorm with bias, two matrices of width 12 with biases,
// all attention biases, 16 learned positions, q and k normed per head.
// Layer: q and o 64 each, k and v 32 each: 192; biases 8 + 4 + 4 + 8; q and k norm 8; MLP 192 + 12 + 8; norms 32.
TEST(CountParameters, AddsUpAHandSizedGpt) {
  Architecture a{.name = "gpt", .layers = 2, .hidden = 8, .ffn = 12, .heads = 2, .kv_heads = 1, .head_dim = 4};
  a.vocab = a.padded_vocab = 10;
  a.max_positions = 16;
  a.tied_embeddings = true;
  a.norm = NormKind::kLayerNorm;
  a.norm_bias = true;
  a.positions = PositionKind::kLearned;
  a.gated_mlp = false;
  a.qkv_bias = a.attention_output_bias = a.mlp_bias = true;
  a.qk_norm = QkNorm::kPerHead;
  const ParameterCount n = count_parameters(a);
  EXPECT_EQ(n.mixers, 2 * (192 + 24 + 8));
  EXPECT_EQ(n.feed_forward, 2 * (192 + 20));
  EXPECT_EQ(n.norms, 2 * 32 + 16);
  EXPECT_EQ(n.positions, 16 * 8);
  EXPECT_EQ(n.total, 448 + 424 + 80 + 128 + 80);
  EXPECT_EQ(n.matmul, 2 * (192 + 192) + 80);
}

// As above without biases, norms and positions, each layer with 4 gated experts of width 3 (72 each), 2 a token, a
// router of 32 and a shared expert of width 5 (120): active are two experts a layer less.
TEST(CountParameters, SetsActiveExpertsApart) {
  Architecture a{.name = "moe", .layers = 2, .hidden = 8, .ffn = 12, .heads = 2, .kv_heads = 1, .head_dim = 4};
  a.vocab = a.padded_vocab = 10;
  a.max_positions = 16;
  a.kinds = {LayerKind{.feed_forward = FeedForward::kExperts}};
  a.experts = MixtureOfExperts{.experts = 4, .top_k = 2, .ffn = 3, .shared_ffn = 5};
  const ParameterCount n = count_parameters(a);
  EXPECT_EQ(n.experts, 2 * 4 * 72);
  EXPECT_EQ(n.feed_forward, 2 * (32 + 120));
  EXPECT_EQ(n.total - n.active, 2 * 2 * 72);
  EXPECT_EQ(n.matmul, 2 * (192 + 32 + 120 + 2 * 72) + 80);
}

}  // namespace
}  // namespace stepcast::models
