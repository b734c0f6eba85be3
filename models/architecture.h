// What is trained: the shape of a decoder of transformer blocks, and its exact parameter and FLOP accounting.
//
// A default Architecture is a Llama-type decoder: RMSNorm, causal grouped-query attention with rotary positions,
// RMSNorm, SwiGLU MLP, both residual, no biases. Everything else is a member that says so.
// Sources: HF model classes; parameter totals of HF safetensors metadata; FLOP convention of arXiv 2104.04473 and PaLM
// appendix B (6 per matmul parameter and token, attention 12 L a d s per token, half of it when causal).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/components.h"

namespace stepcast::models {

struct Architecture {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;  // inner width of a dense MLP; of gate and up, each, when gated
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;       // as many as heads: multi-head attention; fewer: grouped; 1: multi-query
  std::int64_t head_dim = 0;       // unused by latent attention
  std::int64_t vocab = 0;          // as in the config file
  std::int64_t padded_vocab = 0;   // rows of embedding and head as trained, >= vocab
  std::int64_t max_positions = 0;  // rows of the position table where positions are learned
  bool tied_embeddings = false;
  double norm_eps = 1e-5;
  double rope_theta = 10000.0;

  std::string family = "llama";                  // model_type of its config file
  std::vector<LayerKind> kinds = {LayerKind{}};  // one for all layers, or one for each

  NormKind norm = NormKind::kRmsNorm;
  NormPlacement norm_placement = NormPlacement::kBefore;
  bool norm_bias = false;       // a LayerNorm may have one
  bool embedding_norm = false;  // a norm of the embedding's output (BLOOM)
  PositionKind positions = PositionKind::kRotary;
  double rotary_fraction = 1.0;  // of head_dim
  double embedding_scale = 1.0;  // the embedding's output times this (Gemma: the root of hidden)

  bool qkv_bias = false;
  bool attention_output_bias = false;
  QkNorm qk_norm = QkNorm::kNone;
  bool attention_sinks = false;        // a learned logit per head beside the scores (gpt-oss)
  bool attention_output_gate = false;  // attention's output times a sigmoid of its own projection (Qwen3-Next)
  std::int64_t window = 0;             // tokens a kWindowAttention layer sees, its own included

  bool gated_mlp = true;  // three matrices, activation(gate) * up; else two
  Activation activation = Activation::kSilu;
  bool mlp_bias = false;
  double dropout = 0.0;  // the largest probability the config file states; a training recipe may say otherwise

  std::optional<LatentAttention> latent = std::nullopt;  // every attention layer is of this kind then
  std::optional<SparseIndexer> indexer = std::nullopt;
  std::optional<GatedDeltaNet> delta = std::nullopt;
  std::optional<Mamba2> mamba = std::nullopt;
  std::optional<MixtureOfExperts> experts = std::nullopt;
  std::int64_t mtp_layers = 0;  // multi-token prediction layers beyond `layers`; in no total but their own

  std::int64_t q_width() const { return heads * head_dim; }
  std::int64_t kv_width() const { return kv_heads * head_dim; }
  std::int64_t qkv_width() const { return q_width() + 2 * kv_width(); }
  std::int64_t mlp_in_width() const { return gated_mlp ? 2 * ffn : ffn; }

  // Elements of a head that rotary positions turn; odd ones are left out (transformers' int(head_dim * fraction)).
  std::int64_t rotary_width() const {
    return static_cast<std::int64_t>(static_cast<double>(head_dim) * rotary_fraction) / 2 * 2;
  }

  // Kind of layer `layer`, from 0.
  const LayerKind& kind_of(std::int64_t layer) const;
  // Each kind there is with its number of layers, in order of first appearance.
  std::vector<std::pair<LayerKind, std::int64_t>> kind_counts() const;
};

// The largest model described: 2^50 parameters (a thousand times the largest trained), so that bytes and FLOPs of a
// step stay exact in 64-bit integers and doubles. No single size exceeds 2^31, none of a component 2^20.
inline constexpr std::int64_t kMaxSize = std::int64_t{1} << 31;
inline constexpr std::int64_t kMaxComponentSize = std::int64_t{1} << 20;
inline constexpr std::int64_t kMaxParameters = std::int64_t{1} << 50;
// Layers of a model whose layers differ.
inline constexpr std::int64_t kMaxMixedLayers = 65536;

// What is wrong with the shape, in terms of the members (empty: nothing). Field names the HF config key of the value.
struct ShapeProblem {
  std::string field;
  std::string message;
  std::string help;  // what would work; may be empty
};
std::vector<ShapeProblem> problems_of(const Architecture& a);

// Parameters, counted with the config's own vocabulary (not the padded one); a tied table counts once. The parts of
// `total` are embedding, positions, mixers, feed_forward, experts, norms and head.
struct ParameterCount {
  std::int64_t embedding = 0;     // input table
  std::int64_t positions = 0;     // learned positions
  std::int64_t mixers = 0;        // attention and what replaces it, with the norms inside
  std::int64_t feed_forward = 0;  // dense MLPs, routers, shared experts
  std::int64_t experts = 0;       // routed ones
  std::int64_t norms = 0;         // around the blocks, of the embedding, the final one
  std::int64_t head = 0;          // output projection; 0 when tied
  std::int64_t total = 0;
  std::int64_t active = 0;  // of `total`, used for one token: top_k of the experts
  std::int64_t matmul = 0;  // active parameters used by matmuls, head included (also when tied), input table not
  std::int64_t mtp = 0;     // multi-token prediction layers with their projections and norms, not in `total`

  // Active parameters less an input table of its own: as gpt-oss and DeepSeek count what is active.
  std::int64_t active_without_input(bool tied) const { return active - (tied ? 0 : embedding); }
};
// The sizes must be those problems_of() accepts and the total within kMaxParameters (CHECK): nothing overflows.
ParameterCount count_parameters(const Architecture& a);

// FLOPs per token of forward and backward: 6 * matmul parameters + attention at sequence length `sequence` (tokens).
// full: 6 a (d_qk + d_v) k for each attention layer, k = min(sequence, window) keys seen; causal: half of that without
// a window, with one k (1 - k / 2 sequence) keys on average. What replaces attention costs the same in both, and so do
// the experts of a token.
struct FlopsPerToken {
  double full = 0;
  double causal = 0;
};
FlopsPerToken training_flops_per_token(const Architecture& a, std::int64_t sequence);

// The convention above counts norm weights out of the matmuls; MaxText counts every active parameter but the input
// table: 6 * parameters + 12 L a d s per token, never halved (AI-Hypercomputer/maxtext pull request 644). A tied table
// is the head's, so it counts; learned positions are an input table too. The two differ by norms and biases only, far
// below 0.1 %.
double maxtext_flops_per_token(const Architecture& a, std::int64_t sequence);

// `vocab` rounded up to a multiple of `multiple`, both at least 1. Megatron-Core's multiple is 128 * tp, others use 1.
std::int64_t padded_vocab(std::int64_t vocab, std::int64_t multiple);

// "rms_norm", "layer_norm"; "rotary", "learned", "alibi", "none"; "silu", "gelu", "gelu_tanh", "relu",
// "squared_relu"; "attention", "window_attention", "gated_delta_net", "mamba2", "none"; "mlp", "experts", "none".
std::string_view to_string(NormKind norm);
std::string_view to_string(PositionKind positions);
std::string_view to_string(Activation activation);
std::string_view to_string(Mixer mixer);
std::string_view to_string(FeedForward feed_forward);

}  // namespace stepcast::models
