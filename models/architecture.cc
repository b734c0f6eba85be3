// The rules a shape obeys. Field names of problems are the keys of transformers' most common spelling.
#include "models/architecture.h"

#include <algorithm>
#include <cmath>

#include "models/parameters.h"

namespace stepcast::models {
namespace {

using Problems = std::vector<ShapeProblem>;

struct Size {
  const char* field;
  std::int64_t value;
};

void check_range(const std::vector<Size>& sizes, std::int64_t most, const char* most_text, Problems& problems) {
  for (const auto& [field, value] : sizes) {
    if (value < 1 || value > most) {
      problems.push_back({field, "is " + std::to_string(value) + ", not between 1 and " + most_text, ""});
    }
  }
}

void check_zero_or_more(const Size& size, std::int64_t most, Problems& problems) {
  if (size.value >= 0 && size.value <= most) return;
  problems.push_back(
      {size.field, "is " + std::to_string(size.value) + ", not between 0 and " + std::to_string(most), ""});
}

void check_sizes(const Architecture& a, Problems& problems) {
  check_range({{"num_hidden_layers", a.layers},
               {"hidden_size", a.hidden},
               {"intermediate_size", a.ffn},
               {"num_attention_heads", a.heads},
               {"num_key_value_heads", a.kv_heads},
               {"head_dim", a.head_dim},
               {"vocab_size", a.vocab},
               {"max_position_embeddings", a.max_positions}},
              kMaxSize, "2^31", problems);
  check_zero_or_more({"num_nextn_predict_layers", a.mtp_layers}, kMaxMixedLayers, problems);
}

void check_components(const Architecture& a, Problems& problems) {
  constexpr const char* kMost = "2^20";
  if (const auto& m = a.latent) {
    check_zero_or_more({"q_lora_rank", m->q_rank}, kMaxComponentSize, problems);
    check_range({{"kv_lora_rank", m->kv_rank},
                 {"qk_nope_head_dim", m->nope_dim},
                 {"qk_rope_head_dim", m->rope_dim},
                 {"v_head_dim", m->v_dim}},
                kMaxComponentSize, kMost, problems);
  }
  if (const auto& i = a.indexer) {
    check_range({{"index_n_heads", i->heads}, {"index_head_dim", i->head_dim}, {"index_topk", i->top_k}},
                kMaxComponentSize, kMost, problems);
  }
  if (const auto& d = a.delta) {
    check_range({{"linear_num_key_heads", d->key_heads},
                 {"linear_num_value_heads", d->value_heads},
                 {"linear_key_head_dim", d->key_dim},
                 {"linear_value_head_dim", d->value_dim},
                 {"linear_conv_kernel_dim", d->conv_kernel}},
                kMaxComponentSize, kMost, problems);
  }
  if (const auto& m = a.mamba) {
    check_range({{"mamba_num_heads", m->heads},
                 {"mamba_head_dim", m->head_dim},
                 {"n_groups", m->groups},
                 {"ssm_state_size", m->state},
                 {"conv_kernel", m->conv_kernel},
                 {"chunk_size", m->chunk}},
                kMaxComponentSize, kMost, problems);
  }
  if (const auto& e = a.experts) {
    check_range({{"num_experts", e->experts},
                 {"num_experts_per_tok", e->top_k},
                 {"moe_intermediate_size", e->ffn},
                 {"n_group", e->groups},
                 {"topk_group", e->groups_used}},
                kMaxComponentSize, kMost, problems);
    check_zero_or_more({"shared_expert_intermediate_size", e->shared_ffn}, kMaxComponentSize, problems);
  }
}

void check_heads(const Architecture& a, Problems& problems) {
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
  if (a.latent && a.latent->rope_dim % 2 != 0) {
    problems.push_back({"qk_rope_head_dim", "is odd; rotary positions turn pairs of elements", "use an even size"});
  }
  if (a.indexer && (!a.latent || a.latent->q_rank == 0)) {
    problems.push_back({"index_n_heads", "the indexer reads the queries' low rank, and there is none",
                        "state q_lora_rank and kv_lora_rank"});
  }
  if (a.delta && a.delta->value_heads % a.delta->key_heads != 0) {
    problems.push_back({"linear_num_key_heads", "does not divide linear_num_value_heads", ""});
  }
  if (a.mamba && a.mamba->heads % a.mamba->groups != 0) {
    problems.push_back({"n_groups", "does not divide mamba_num_heads", ""});
  }
}

void check_experts(const MixtureOfExperts& e, Problems& problems) {
  if (e.top_k > e.experts) {
    problems.push_back({"num_experts_per_tok",
                        std::to_string(e.top_k) + " experts a token of " + std::to_string(e.experts) + " experts", ""});
  }
  if (e.experts % e.groups != 0 || e.groups_used > e.groups) {
    problems.push_back({"n_group",
                        std::to_string(e.groups_used) + " groups used of " + std::to_string(e.groups) + " with " +
                            std::to_string(e.experts) + " experts in all",
                        "n_group divides the experts and is at least topk_group"});
  }
}

// Every kind a layer has is described.
void check_kinds(const Architecture& a, Problems& problems) {
  const auto states = static_cast<std::int64_t>(a.kinds.size());
  if (states != 1 && states < a.layers) {
    problems.push_back(
        {"num_hidden_layers",
         std::to_string(a.layers) + " layers, and what each is made of is stated for " + std::to_string(states),
         "at most " + std::to_string(states) + " layers"});
    return;
  }
  for (const LayerKind& kind : a.kinds) {
    const bool described = (kind.mixer != Mixer::kGatedDeltaNet || a.delta) &&
                           (kind.mixer != Mixer::kMamba2 || a.mamba) &&
                           (kind.mixer != Mixer::kWindowAttention || a.window > 0) &&
                           (kind.feed_forward != FeedForward::kExperts || a.experts);
    if (described) continue;
    problems.push_back({"", "a layer has a mixer, window or experts that no key describes", ""});
    return;
  }
}

void check_relations(const Architecture& a, Problems& problems) {
  check_heads(a, problems);
  if (a.experts) check_experts(*a.experts, problems);
  if (a.padded_vocab < a.vocab || a.padded_vocab > 2 * kMaxSize) {
    problems.push_back(
        {"vocab_size",
         "padded vocabulary " + std::to_string(a.padded_vocab) + " is not between the vocabulary and 2^32", ""});
  }
  const std::size_t before = problems.size();
  check_kinds(a, problems);
  if (problems.size() == before && total_parameters(a) + mtp_parameters(a) > kMaxParameters) {
    problems.push_back({"", "the shape has more than 2^50 parameters", "check the number of digits of each size"});
  }
}

}  // namespace

std::vector<ShapeProblem> problems_of(const Architecture& a) {
  Problems problems;
  check_sizes(a, problems);
  check_components(a, problems);
  check_zero_or_more({"sliding_window", a.window}, kMaxSize, problems);
  // Relations divide by sizes, so they are judged only once the sizes are sane.
  if (problems.empty()) check_relations(a, problems);
  if (!(std::isfinite(a.norm_eps) && a.norm_eps > 0.0 && a.norm_eps < 1.0)) {
    problems.push_back({"rms_norm_eps", "is not a number above 0 and below 1", ""});
  }
  if (a.positions == PositionKind::kRotary && !(std::isfinite(a.rope_theta) && a.rope_theta >= 1.0)) {
    problems.push_back({"rope_theta", "is not a number of at least 1", ""});
  }
  if (!(a.rotary_fraction > 0.0 && a.rotary_fraction <= 1.0)) {
    problems.push_back({"partial_rotary_factor", "is not a number above 0 and at most 1", ""});
  }
  return problems;
}

const LayerKind& Architecture::kind_of(std::int64_t layer) const {
  return kinds.size() == 1 ? kinds.front() : kinds.at(static_cast<std::size_t>(layer));
}

std::vector<std::pair<LayerKind, std::int64_t>> Architecture::kind_counts() const {
  if (kinds.size() == 1) return {{kinds.front(), layers}};
  std::vector<std::pair<LayerKind, std::int64_t>> counts;
  for (std::int64_t i = 0; i < layers; ++i) {
    const LayerKind& kind = kind_of(i);
    const auto known = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == kind; });
    if (known == counts.end()) {
      counts.emplace_back(kind, 1);
    } else {
      ++known->second;
    }
  }
  return counts;
}

std::string_view to_string(NormKind norm) { return norm == NormKind::kRmsNorm ? "rms_norm" : "layer_norm"; }

std::string_view to_string(PositionKind positions) {
  switch (positions) {
    case PositionKind::kRotary:
      return "rotary";
    case PositionKind::kLearned:
      return "learned";
    case PositionKind::kAlibi:
      return "alibi";
    case PositionKind::kNone:
      break;
  }
  return "none";
}

std::string_view to_string(Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return "silu";
    case Activation::kGelu:
      return "gelu";
    case Activation::kGeluTanh:
      return "gelu_tanh";
    case Activation::kRelu:
      return "relu";
    case Activation::kSquaredRelu:
      break;
  }
  return "squared_relu";
}

std::string_view to_string(Mixer mixer) {
  switch (mixer) {
    case Mixer::kAttention:
      return "attention";
    case Mixer::kWindowAttention:
      return "window_attention";
    case Mixer::kGatedDeltaNet:
      return "gated_delta_net";
    case Mixer::kMamba2:
      return "mamba2";
    case Mixer::kNone:
      break;
  }
  return "none";
}

std::string_view to_string(FeedForward feed_forward) {
  switch (feed_forward) {
    case FeedForward::kMlp:
      return "mlp";
    case FeedForward::kExperts:
      return "experts";
    case FeedForward::kNone:
      break;
  }
  return "none";
}

}  // namespace stepcast::models
