// Parameter and FLOP accounting of a dense decoder, and the rules its shape obeys.
//
// A layer holds q, k, v and o projections, gate (of SwiGLU), up and down, two norms, and the projections' biases where
// the shape has them. Sources as in the header.
#include "models/architecture.h"

#include <cmath>

#include "base/check.h"

namespace stepcast::models {
namespace {

// Wide enough for products of three sizes below kMaxSize, so that an absurd shape is refused rather than wrapped.
__extension__ using Wide = __int128;

struct LayerParameters {
  Wide matmul = 0;
  Wide vectors = 0;  // norms and biases
};

// A layer norm has a bias beside its weight.
Wide norm_parameters(const Architecture& a) { return (a.norm == NormKind::kLayer ? 2 : 1) * Wide{a.hidden}; }

LayerParameters layer_parameters(const Architecture& a) {
  const Wide hidden = a.hidden;
  const Wide q = Wide{a.heads} * a.head_dim;
  const Wide kv = Wide{a.kv_heads} * a.head_dim;
  const Wide in = (a.mlp == MlpKind::kSwiGlu ? 2 : 1) * Wide{a.ffn};
  const Wide biases = a.linear_biases ? q + 2 * kv + hidden + in + hidden : 0;
  return {.matmul = hidden * (q + 2 * kv) + q * hidden + hidden * (in + Wide{a.ffn}),
          .vectors = 2 * norm_parameters(a) + biases};
}

Wide position_parameters(const Architecture& a) {
  return a.positions == PositionKind::kLearned ? Wide{a.max_positions} * a.hidden : 0;
}

Wide total_parameters(const Architecture& a) {
  const LayerParameters layer = layer_parameters(a);
  const Wide table = Wide{a.vocab} * a.hidden;
  return Wide{a.layers} * (layer.matmul + layer.vectors) + (a.tied_embeddings ? 1 : 2) * table +
         position_parameters(a) + norm_parameters(a);
}

void check_sizes(const Architecture& a, std::vector<ShapeProblem>& problems) {
  const struct {
    const char* field;
    std::int64_t value;
  } sizes[] = {
      {"num_hidden_layers", a.layers},
      {"hidden_size", a.hidden},
      {"intermediate_size", a.ffn},
      {"num_attention_heads", a.heads},
      {"num_key_value_heads", a.kv_heads},
      {"head_dim", a.head_dim},
      {"vocab_size", a.vocab},
      {"max_position_embeddings", a.max_positions},
  };
  for (const auto& [field, value] : sizes) {
    if (value < 1 || value > kMaxSize) {
      problems.push_back({field, "is " + std::to_string(value) + ", not between 1 and 2^31", ""});
    }
  }
}

void check_relations(const Architecture& a, std::vector<ShapeProblem>& problems) {
  if (a.heads % a.kv_heads != 0) {
    problems.push_back({"num_key_value_heads",
                        std::to_string(a.heads) + " attention heads do not divide into " + std::to_string(a.kv_heads) +
                            " key-value heads",
                        "use a divisor of num_attention_heads"});
  }
  if (a.positions == PositionKind::kRotary && a.head_dim % 2 != 0) {
    problems.push_back({"head_dim", "is " + std::to_string(a.head_dim) + "; rotary positions turn pairs of elements",
                        "use an even head_dim"});
  }
  if (a.padded_vocab < a.vocab || a.padded_vocab > 2 * kMaxSize) {
    problems.push_back(
        {"vocab_size",
         "padded vocabulary " + std::to_string(a.padded_vocab) + " is not between the vocabulary and 2^32", ""});
  }
  if (total_parameters(a) > kMaxParameters) {
    problems.push_back({"", "the shape has more than 2^50 parameters", "check the number of digits of each size"});
  }
}

}  // namespace

std::vector<ShapeProblem> problems_of(const Architecture& a) {
  std::vector<ShapeProblem> problems;
  check_sizes(a, problems);
  // Relations divide by sizes, so they are judged only once the sizes are sane.
  if (problems.empty()) check_relations(a, problems);
  if (!(std::isfinite(a.norm_eps) && a.norm_eps > 0.0 && a.norm_eps < 1.0)) {
    problems.push_back({"rms_norm_eps", "is not a number above 0 and below 1", ""});
  }
  if (a.positions == PositionKind::kRotary && !(std::isfinite(a.rope_theta) && a.rope_theta >= 1.0)) {
    problems.push_back({"rope_theta", "is not a number of at least 1", ""});
  }
  return problems;
}

ParameterCount count_parameters(const Architecture& a) {
  for (const std::int64_t size : {a.layers, a.hidden, a.ffn, a.heads, a.kv_heads, a.head_dim, a.vocab}) {
    CHECK(size >= 1 && size <= kMaxSize, a.name, size);
  }
  CHECK(total_parameters(a) <= kMaxParameters, a.name);

  const LayerParameters layer = layer_parameters(a);
  const std::int64_t table = a.vocab * a.hidden;
  ParameterCount n;
  n.per_layer = static_cast<std::int64_t>(layer.matmul + layer.vectors);
  n.embedding = table;
  n.head = a.tied_embeddings ? 0 : table;
  n.positions = static_cast<std::int64_t>(position_parameters(a));
  n.final_norm = static_cast<std::int64_t>(norm_parameters(a));
  n.total = a.layers * n.per_layer + n.embedding + n.positions + n.head + n.final_norm;
  n.matmul = a.layers * static_cast<std::int64_t>(layer.matmul) + table;
  return n;
}

namespace {

// 12 L a d s: QK^T and AV cost 2 * 2 * s * a * d FLOPs per token and layer forward, twice that backward (arXiv
// 2104.04473, appendix; PaLM appendix B).
double attention_flops_per_token(const Architecture& a, std::int64_t sequence) {
  CHECK(sequence >= 1 && sequence <= kMaxSize, sequence);
  return 12.0 * static_cast<double>(a.layers) * static_cast<double>(a.q_width()) * static_cast<double>(sequence);
}

}  // namespace

FlopsPerToken training_flops_per_token(const Architecture& a, std::int64_t sequence) {
  const double matmul = 6.0 * static_cast<double>(count_parameters(a).matmul);
  const double attention = attention_flops_per_token(a, sequence);
  return {.full = matmul + attention, .causal = matmul + attention / 2.0};
}

double maxtext_flops_per_token(const Architecture& a, std::int64_t sequence) {
  const ParameterCount n = count_parameters(a);
  const std::int64_t counted = (a.tied_embeddings ? n.total : n.total - n.embedding) - n.positions;
  return 6.0 * static_cast<double>(counted) + attention_flops_per_token(a, sequence);
}

std::int64_t padded_vocab(std::int64_t vocab, std::int64_t multiple) {
  CHECK(vocab >= 1 && vocab <= kMaxSize && multiple >= 1 && multiple <= kMaxSize, vocab, multiple);
  return (vocab + multiple - 1) / multiple * multiple;
}

}  // namespace stepcast::models
