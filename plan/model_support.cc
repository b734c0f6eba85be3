// One line for each way in which a model differs from what is lowered.
#include "plan/model_support.h"

#include <algorithm>

namespace stepcast::plan {
namespace {

using models::Architecture;
using models::FeedForward;
using models::LayerKind;
using models::Mixer;
using Parts = std::vector<std::string>;

void refuse(Parts& parts, bool there, std::string what) {
  if (there) parts.push_back(std::move(what));
}

bool has_mixer(const Architecture& a, Mixer mixer) {
  return std::any_of(a.kinds.begin(), a.kinds.end(), [&](const LayerKind& kind) { return kind.mixer == mixer; });
}

// A window of at least the sequence hides no key.
bool window_acts(const Architecture& a, std::optional<std::int64_t> sequence) {
  return has_mixer(a, Mixer::kWindowAttention) && (!sequence || a.window < *sequence);
}

void refuse_layers(const Architecture& a, std::optional<std::int64_t> sequence, Parts& parts) {
  if (a.experts) {
    refuse(parts, true,
           "mixture of experts (" + std::to_string(a.experts->experts) + ", " + std::to_string(a.experts->top_k) +
               " a token)");
  }
  refuse(parts, a.latent.has_value(), "multi-head latent attention");
  refuse(parts, a.indexer.has_value(), "sparse attention with an indexer");
  refuse(parts, window_acts(a, sequence),
         "sliding-window attention of " + std::to_string(a.window) + " tokens in longer sequences");
  refuse(parts, has_mixer(a, Mixer::kGatedDeltaNet), "linear attention (gated delta net)");
  refuse(parts, has_mixer(a, Mixer::kMamba2), "Mamba-2 layers");
  const bool single = std::any_of(a.kinds.begin(), a.kinds.end(), [](const LayerKind& kind) {
    return kind.mixer == Mixer::kNone || kind.feed_forward == FeedForward::kNone;
  });
  refuse(parts, single, "layers of one block");
}

void refuse_attention(const Architecture& a, Parts& parts) {
  refuse(parts, a.attention_sinks, "attention sinks");
  refuse(parts, a.attention_output_gate, "an output gate of attention");
  refuse(parts, a.rotary_width() == 0 && a.positions == models::PositionKind::kRotary && !a.latent,
         "rotary positions of less than a pair of each head");
}

// The activations of each kind of MLP that have kernels.
void refuse_mlp(const Architecture& a, Parts& parts) {
  using models::Activation;
  const bool known = a.gated_mlp ? a.activation == Activation::kSilu
                                 : a.activation == Activation::kGeluTanh || a.activation == Activation::kSquaredRelu;
  const std::string kind = a.gated_mlp ? "a gated MLP" : "an MLP of two matrices";
  refuse(parts, !known, kind + " with activation " + std::string(models::to_string(a.activation)));
}

}  // namespace

std::vector<std::string> unsupported_parts(const Architecture& model, std::optional<std::int64_t> sequence) {
  Parts parts;
  refuse_layers(model, sequence, parts);
  refuse_attention(model, parts);
  refuse_mlp(model, parts);
  const bool layer_norm = model.norm == models::NormKind::kLayerNorm;
  refuse(parts, layer_norm != model.norm_bias, layer_norm ? "LayerNorm without bias" : "RMSNorm with a bias");
  const bool behind = model.norm_placement == models::NormPlacement::kAfter;
  refuse(parts, behind && (model.attention_output_bias || model.mlp_bias), "biases before norms behind the blocks");
  refuse(parts, model.embedding_norm, "a norm of the embedding");
  refuse(parts, model.embedding_scale != 1.0, "a scaled embedding");
  return parts;
}

std::optional<Problem> refusal_of(const Architecture& model, std::int64_t sequence, const Location& where) {
  const Parts parts = unsupported_parts(model, sequence);
  if (parts.empty()) return std::nullopt;
  std::string message = "lowering " + model.name + " (" + model.family + ") with ";
  for (std::size_t i = 0; i < parts.size(); ++i) message += (i == 0 ? "" : ", ") + parts[i];
  return Problem{ErrorKind::kUnsupported,
                 std::move(message),
                 where,
                 {"dense decoders of the Llama and the GPT kind work, such as llama-3.1-8b or gpt3-175b",
                  "stepcast models " + model.name + " shows its parameters and FLOPs"}};
}

std::vector<Problem> unsupported_settings(const Scenario& s) {
  std::vector<Problem> problems;
  const auto refuse_setting = [&](const char* field, std::string message, const char* help) {
    problems.push_back({ErrorKind::kUnsupported, std::move(message), {"", 0, field}, {help}});
  };
  if (s.plan.tp > 1 && s.model.qk_norm == models::QkNorm::kFullWidth) {
    refuse_setting(
        "plan.tp",
        "tp " + std::to_string(s.plan.tp) + " with norms over all heads of queries and keys, which tp splits", "tp 1");
  }
  if (s.training.dropout > 0 && s.model.norm_placement == models::NormPlacement::kAfter) {
    refuse_setting("training.dropout", "dropout with norms behind the blocks", "training.dropout: 0");
  }
  return problems;
}

}  // namespace stepcast::plan
