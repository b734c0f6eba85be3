// The parts a decoder is put together from, as lowering and accounting tell them apart.
//
// Sizes count elements, one-dimensional, over the whole model (no sharding). Sources: the model classes of Hugging Face
// transformers named beside each part; DeepSeek-V2 (arXiv 2405.04434), DeepSeek-V3 (2412.19437) and its sparse
// attention (V3.2), Gated DeltaNet (2412.06464), Mamba-2 (2405.21060).
#pragma once

#include <cstdint>

namespace stepcast::models {

enum class NormKind : std::uint8_t { kRmsNorm, kLayerNorm };
// Where a block's norm stands: on its input, or on its output before the residual sum (OLMo 2).
enum class NormPlacement : std::uint8_t { kBefore, kAfter };
enum class PositionKind : std::uint8_t { kRotary, kLearned, kAlibi, kNone };
enum class Activation : std::uint8_t { kSilu, kGelu, kGeluTanh, kRelu, kSquaredRelu };
// Norm of queries and keys: one weight of head_dim shared by the heads (Qwen3), or one over all heads (OLMo 2).
enum class QkNorm : std::uint8_t { kNone, kPerHead, kFullWidth };

// What mixes the tokens of a layer.
enum class Mixer : std::uint8_t {
  kAttention,        // causal, over the whole sequence
  kWindowAttention,  // causal, over the last `window` tokens
  kGatedDeltaNet,    // linear attention of Qwen3-Next
  kMamba2,           // state space of Nemotron-H
  kNone,
};
enum class FeedForward : std::uint8_t { kMlp, kExperts, kNone };

// A layer is a mixer and a feed-forward block, each with its norm and residual sum; Nemotron-H's layers are one of
// both.
struct LayerKind {
  Mixer mixer = Mixer::kAttention;
  FeedForward feed_forward = FeedForward::kMlp;
  bool rotary = true;  // false: a layer without positions in a model that has them (SmolLM3)
  bool operator==(const LayerKind&) const = default;
};

// Multi-head latent attention (DeepSeek): queries, keys and values pass through low ranks, each with an RMSNorm. All
// heads share one rotary key of rope_dim.
struct LatentAttention {
  std::int64_t q_rank = 0;  // 0: queries are projected directly (V2-Lite)
  std::int64_t kv_rank = 0;
  std::int64_t nope_dim = 0;  // of a query or key head, without positions
  std::int64_t rope_dim = 0;  // of a query or key head, rotary
  std::int64_t v_dim = 0;     // of a value head
  std::int64_t qk_dim() const { return nope_dim + rope_dim; }
};

// DeepSeek sparse attention: small heads score all earlier tokens and attention sees the best top_k of them.
struct SparseIndexer {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t top_k = 0;
};

// Qwen3NextGatedDeltaNet: projects q, k, v, an output gate z and two scalars a value head (beta, decay), convolves q, k
// and v over time, and keeps a key_dim x value_dim state for each value head.
struct GatedDeltaNet {
  std::int64_t key_heads = 0;
  std::int64_t value_heads = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t conv_kernel = 0;
  std::int64_t key_width() const { return key_heads * key_dim; }
  std::int64_t value_width() const { return value_heads * value_dim; }
  std::int64_t conv_width() const { return 2 * key_width() + value_width(); }
};

// NemotronHMamba2Mixer: projects a gate z, x, B and C of each group and a step size a head, convolves x, B and C over
// time, and keeps a head_dim x state matrix for each head.
struct Mamba2 {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t groups = 0;
  std::int64_t state = 0;
  std::int64_t conv_kernel = 0;
  std::int64_t chunk = 0;  // tokens the scan takes at once
  bool conv_bias = true;
  bool projection_bias = false;
  std::int64_t width() const { return heads * head_dim; }
  std::int64_t conv_width() const { return width() + 2 * groups * state; }
  std::int64_t in_width() const { return width() + conv_width() + heads; }
};

enum class RouterScore : std::uint8_t { kSoftmax, kSigmoid };

// A router picks top_k of the experts for each token; each expert is an MLP of the model's form and width `ffn`.
struct MixtureOfExperts {
  std::int64_t experts = 0;
  std::int64_t top_k = 0;
  std::int64_t ffn = 0;
  std::int64_t shared_ffn = 0;  // width of all shared experts together, seen by every token; 0: none
  bool shared_gate = false;     // the shared experts' output times a sigmoid of one projection (Qwen3-Next)
  bool expert_bias = false;     // on every projection of an expert (gpt-oss)
  bool router_bias = false;     // on the router's logits
  bool selection_bias = false;  // one number an expert, added for the choice only (balancing without a loss)
  RouterScore score = RouterScore::kSoftmax;
  bool normalised = true;        // the chosen weights are made to sum to one
  double scale = 1.0;            // and then multiplied by this
  std::int64_t groups = 1;       // experts form groups,
  std::int64_t groups_used = 1;  // and a token chooses within this many of them
};

}  // namespace stepcast::models
