// Defaults as in transformers' configuration_*.py of each type; a type whose class gives num_key_value_heads a number
// of its own must state it, and so must one whose number of layers or heads is a default.
#include "models/families.h"

#include <algorithm>
#include <array>
#include <utility>

namespace stepcast::models {
namespace {

constexpr Alias kGptNames[] = {
    {"num_hidden_layers", "n_layer"},           {"hidden_size", "n_embd"},
    {"intermediate_size", "n_inner"},           {"num_attention_heads", "n_head"},
    {"max_position_embeddings", "n_positions"}, {"rms_norm_eps", "layer_norm_epsilon"},
    {"hidden_act", "activation_function"},
};
constexpr Alias kMetaNames[] = {
    {"num_hidden_layers", "n_layers"},     {"hidden_size", "dim"},       {"num_attention_heads", "n_heads"},
    {"num_key_value_heads", "n_kv_heads"}, {"rms_norm_eps", "norm_eps"}, {"max_position_embeddings", "max_seq_len"},
};
constexpr Alias kNormNames[] = {{"rms_norm_eps", "norm_epsilon"}, {"rms_norm_eps", "norm_eps"}};
constexpr Alias kNemotronHNames[] = {{"rms_norm_eps", "layer_norm_epsilon"},
                                     {"rms_norm_eps", "norm_eps"},
                                     {"head_dim", "attention_head_dim"},
                                     {"hidden_act", "mlp_hidden_act"}};
constexpr Alias kExpertNames[] = {{"num_experts", "num_local_experts"}, {"num_experts_per_tok", "experts_per_token"}};
constexpr Alias kRoutedNames[] = {{"num_experts", "n_routed_experts"}};
constexpr Alias kBloomNames[] = {{"num_hidden_layers", "n_layer"},          {"hidden_size", "n_embed"},
                                 {"num_attention_heads", "n_head"},         {"num_attention_heads", "num_heads"},
                                 {"max_position_embeddings", "seq_length"}, {"rms_norm_eps", "layer_norm_epsilon"}};
constexpr Alias kMptNames[] = {{"num_hidden_layers", "n_layers"},
                               {"hidden_size", "d_model"},
                               {"num_attention_heads", "n_heads"},
                               {"max_position_embeddings", "max_seq_len"},
                               {"rms_norm_eps", "layer_norm_epsilon"}};

constexpr std::array kFamilies = {
    Family{.model_type = "llama", .norm_eps = 1e-6, .states_kv_heads = false, .read = read_llama},
    Family{.model_type = "mistral", .max_positions = 131072, .norm_eps = 1e-6, .windows = true, .read = read_mistral},
    Family{.model_type = "mixtral",
           .aliases = kExpertNames,
           .max_positions = 131072,
           .rope_theta = 1e6,
           .windows = true,
           .read = read_mixtral},
    Family{.model_type = "qwen2", .max_positions = 32768, .norm_eps = 1e-6, .windows = true, .read = read_qwen2},
    Family{.model_type = "qwen3",
           .max_positions = 32768,
           .norm_eps = 1e-6,
           .head_dim = 128,
           .windows = true,
           .read = read_qwen3},
    Family{
        .model_type = "qwen3_moe", .max_positions = 32768, .norm_eps = 1e-6, .windows = true, .read = read_qwen3_moe},
    Family{.model_type = "qwen3_next",
           .max_positions = 32768,
           .norm_eps = 1e-6,
           .rotary_fraction = 0.25,
           .head_dim = 256,
           .read = read_qwen3_next},
    Family{.model_type = "olmo2", .states_kv_heads = false, .read = read_olmo2},
    Family{.model_type = "smollm3",
           .max_positions = 32768,
           .norm_eps = 1e-6,
           .rope_theta = 2e6,
           .tied = true,
           .read = read_smollm3},
    Family{.model_type = "gemma",
           .max_positions = 8192,
           .norm_eps = 1e-6,
           .tied = true,
           .activation = "gelu_pytorch_tanh",
           .head_dim = 256,
           .read = read_gemma},
    Family{.model_type = "gpt2",
           .aliases = kGptNames,
           .max_positions = 1024,
           .tied = true,
           .activation = "gelu_new",
           .ffn_multiple = 4,
           .states_kv_heads = false,
           .attention_bias = true,
           .read = read_gpt2},
    Family{.model_type = "bloom",
           .aliases = kBloomNames,
           .tied = true,
           .activation = "gelu_pytorch_tanh",
           .ffn_multiple = 4,
           .states_kv_heads = false,
           .attention_bias = true,
           .read = read_bloom},
    Family{.model_type = "mpt",
           .aliases = kMptNames,
           .tied = true,
           .activation = "gelu",
           .ffn_multiple = 4,
           .states_kv_heads = false,
           .read = read_mpt},
    Family{.model_type = "starcoder2",
           .aliases = kNormNames,
           .max_positions = 4096,
           .tied = true,
           .activation = "gelu_pytorch_tanh",
           .windows = true,
           .read = read_starcoder2},
    Family{.model_type = "nemotron",
           .aliases = kNormNames,
           .max_positions = 4096,
           .rotary_fraction = 0.5,
           .activation = "relu2",
           .states_kv_heads = false,
           .read = read_nemotron},
    Family{.model_type = "nemotron_h",
           .aliases = kNemotronHNames,
           .max_positions = 4096,
           .activation = "relu2",
           .read = read_nemotron_h},
    Family{.model_type = "gpt_oss",
           .aliases = kExpertNames,
           .max_positions = 131072,
           .rope_theta = 150000.0,
           .head_dim = 64,
           .attention_bias = true,
           .windows = true,
           .read = read_gpt_oss},
    Family{.model_type = "glm4_moe",
           .aliases = kRoutedNames,
           .max_positions = 131072,
           .rotary_fraction = 0.5,
           .head_dim = 128,
           .read = read_glm4_moe},
    Family{.model_type = "deepseek_v2",
           .aliases = kRoutedNames,
           .norm_eps = 1e-6,
           .latent = true,
           .read = read_deepseek_v2},
    Family{.model_type = "deepseek_v3",
           .aliases = kRoutedNames,
           .max_positions = 4096,
           .norm_eps = 1e-6,
           .latent = true,
           .read = read_deepseek_v3},
    Family{.model_type = "deepseek_v32",
           .aliases = kRoutedNames,
           .max_positions = 4096,
           .norm_eps = 1e-6,
           .latent = true,
           .read = read_deepseek_v32},
    Family{.model_type = "kimi_k2",
           .aliases = kRoutedNames,
           .max_positions = 4096,
           .norm_eps = 1e-6,
           .latent = true,
           .read = read_deepseek_v3},
};

// ModelArgs of Meta's llama repository.
constexpr Family kMeta = {
    .model_type = "llama", .aliases = kMetaNames, .computes_ffn = true, .states_kv_heads = false, .read = read_meta};

}  // namespace

const Family* find_family(std::string_view model_type) {
  const auto found = std::find_if(kFamilies.begin(), kFamilies.end(),
                                  [&](const Family& family) { return family.model_type == model_type; });
  return found == kFamilies.end() ? nullptr : &*found;
}

const Family& meta_family() { return kMeta; }

std::string family_names() {
  std::string names;
  for (const Family& family : kFamilies) names += (names.empty() ? "" : ", ") + std::string(family.model_type);
  return names;
}

void set_kinds(Fields& fields, Architecture& a, const std::function<LayerKind(std::int64_t)>& kind_of) {
  if (a.layers < 1) return;
  if (a.layers > kMaxMixedLayers) {
    fields.refuse("num_hidden_layers", ErrorKind::kInput,
                  std::to_string(a.layers) + " layers that may differ; at most " + std::to_string(kMaxMixedLayers));
    return;
  }
  std::vector<LayerKind> kinds;
  for (std::int64_t i = 0; i < a.layers; ++i) kinds.push_back(kind_of(i));
  const bool alike = std::equal(kinds.begin() + 1, kinds.end(), kinds.begin());
  if (alike) kinds.resize(1);
  a.kinds = std::move(kinds);
}

bool read_layer_types(Fields& fields, Architecture& a) {
  const auto types = fields.texts("layer_types");
  if (!types) return false;
  if (static_cast<std::int64_t>(types->size()) != a.layers) {
    fields.refuse("layer_types", ErrorKind::kInput,
                  std::to_string(types->size()) + " entries for " + std::to_string(a.layers) + " layers");
    return true;
  }
  constexpr std::pair<std::string_view, Mixer> kWords[] = {{"full_attention", Mixer::kAttention},
                                                           {"sliding_attention", Mixer::kWindowAttention},
                                                           {"linear_attention", Mixer::kGatedDeltaNet}};
  for (const std::string& type : *types) {
    const auto known =
        std::any_of(std::begin(kWords), std::end(kWords), [&](const auto& w) { return w.first == type; });
    if (known) continue;
    fields.refuse("layer_types", ErrorKind::kUnsupported, "layers of type " + printable(Json(type)),
                  {"supported: full_attention, sliding_attention, linear_attention"});
    return true;
  }
  const Architecture before = a;
  set_kinds(fields, a, [&](std::int64_t i) {
    LayerKind kind = before.kind_of(i);
    const std::string& type = types->at(static_cast<std::size_t>(i));
    kind.mixer =
        std::find_if(std::begin(kWords), std::end(kWords), [&](const auto& w) { return w.first == type; })->second;
    return kind;
  });
  return true;
}

}  // namespace stepcast::models
