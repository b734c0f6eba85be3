// What is trained: the shape of a dense decoder and its exact parameter and FLOP accounting.
//
// A decoder layer is norm, causal grouped-query attention, norm, MLP, both residual. The Llama kind has RMSNorm, rotary
// positions, SwiGLU and no biases; the GPT kind LayerNorm, learned positions or ALiBi, two MLP matrices with an
// activation between, and biases on all projections but the head. Sources: HF LlamaConfig; parameter totals of HF
// safetensors metadata; FLOP convention of arXiv 2104.04473 and PaLM appendix B (6 per matmul parameter and token,
// attention 12 L a d s per token, half of it when causal).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepcast::models {

enum class NormKind : std::uint8_t { kRms, kLayer };  // kLayer: with weight and bias
enum class MlpKind : std::uint8_t { kSwiGlu, kGelu, kSquaredRelu };
enum class PositionKind : std::uint8_t { kRotary, kLearned, kAlibi, kNone };

struct Architecture {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;  // width of gate and up, each; of up where there is no gate
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab = 0;         // as in the config file
  std::int64_t padded_vocab = 0;  // rows of embedding and head as trained, >= vocab
  std::int64_t max_positions = 0;
  bool tied_embeddings = false;
  double norm_eps = 1e-5;
  double rope_theta = 10000.0;
  NormKind norm = NormKind::kRms;
  MlpKind mlp = MlpKind::kSwiGlu;
  PositionKind positions = PositionKind::kRotary;
  bool linear_biases = false;  // on qkv, o, up and down; never on the head

  std::int64_t q_width() const { return heads * head_dim; }
  std::int64_t kv_width() const { return kv_heads * head_dim; }
  std::int64_t qkv_width() const { return q_width() + 2 * kv_width(); }
  std::int64_t mlp_in_width() const { return mlp == MlpKind::kSwiGlu ? 2 * ffn : ffn; }
};

// The largest model described: 2^50 parameters (a thousand times the largest trained), so that bytes and FLOPs of a
// step stay exact in 64-bit integers and doubles. No single size exceeds 2^31.
inline constexpr std::int64_t kMaxSize = std::int64_t{1} << 31;
inline constexpr std::int64_t kMaxParameters = std::int64_t{1} << 50;

// What is wrong with the shape, in terms of the members (empty: nothing). Field names the HF config key of the value.
struct ShapeProblem {
  std::string field;
  std::string message;
  std::string help;  // what would work; may be empty
};
std::vector<ShapeProblem> problems_of(const Architecture& a);

// Parameters, counted with the config's own vocabulary (not the padded one); a tied table counts once.
struct ParameterCount {
  std::int64_t per_layer = 0;
  std::int64_t embedding = 0;  // input table
  std::int64_t positions = 0;  // table of learned positions
  std::int64_t head = 0;       // output projection; 0 when tied
  std::int64_t final_norm = 0;
  std::int64_t total = 0;
  std::int64_t matmul = 0;  // parameters used by matmuls, head included (also when tied), input table not
};
// The sizes must be within kMaxSize and the total within kMaxParameters (CHECK), so that nothing overflows.
ParameterCount count_parameters(const Architecture& a);

// FLOPs per token of forward and backward: 6 * matmul parameters + attention at sequence length `sequence` (tokens).
// full: 12 * L * a * d * s; causal: half of that.
struct FlopsPerToken {
  double full = 0;
  double causal = 0;
};
FlopsPerToken training_flops_per_token(const Architecture& a, std::int64_t sequence);

// The convention above counts norm weights out of the matmuls; MaxText counts every parameter but the input table:
// 6 * parameters + 12 L a d s per token, never halved (AI-Hypercomputer/maxtext pull request 644). A tied table is the
// head's, so it counts; learned positions are an input table too. The two differ by norms and biases only, far below
// 0.1 %.
double maxtext_flops_per_token(const Architecture& a, std::int64_t sequence);

// `vocab` rounded up to a multiple of `multiple`, both at least 1. Megatron-Core's multiple is 128 * tp, others use 1.
std::int64_t padded_vocab(std::int64_t vocab, std::int64_t multiple);

}  // namespace stepcast::models
