// Families whose layers are attention and one MLP.
#include <algorithm>
#include <cmath>
#include <string>

#include "models/families.h"

namespace stepcast::models {
namespace {

void set_all_kinds(Architecture& a, LayerKind kind) { a.kinds = {kind}; }

// The window of a family that has one on every layer unless it is null.
void read_window_everywhere(Fields& fields, Architecture& a) {
  const auto window = fields.integer("sliding_window");
  if (!window) return;
  a.window = *window;
  set_all_kinds(a, {.mixer = Mixer::kWindowAttention});
}

// Qwen states a window that is off unless use_sliding_window says otherwise, and then acts from a layer on.
void read_qwen_window(Fields& fields, Architecture& a) {
  const auto window = fields.integer("sliding_window");
  const std::int64_t first = fields.integer("max_window_layers").value_or(28);
  const bool used = fields.boolean("use_sliding_window", false);
  if (used) a.window = window.value_or(4096);
  if (read_layer_types(fields, a) || !used) return;
  set_kinds(fields, a, [&](std::int64_t i) {
    return LayerKind{.mixer = i >= first ? Mixer::kWindowAttention : Mixer::kAttention};
  });
}

void use_layer_norm(Architecture& a) {
  a.norm = NormKind::kLayerNorm;
  a.norm_bias = true;
}

// Two matrices with biases behind LayerNorms with biases.
void use_gpt_blocks(Architecture& a) {
  use_layer_norm(a);
  a.gated_mlp = false;
  a.mlp_bias = true;
}

}  // namespace

void read_llama(Fields& /*fields*/, Architecture& /*a*/) {}

// The inner width is 2/3 of 4 dim, times a multiplier, up to a multiple.
void read_meta(Fields& fields, Architecture& a) {
  if (fields.find("moe_args") != nullptr) {
    fields.refuse("moe_args", ErrorKind::kUnsupported, "experts in a params.json", {"use the model's config.json"});
  }
  const std::int64_t multiple = fields.integer("multiple_of").value_or(256);
  const double multiplier = fields.number("ffn_dim_multiplier").value_or(1.0);
  if (multiple < 1 || multiple > kMaxSize) {
    fields.refuse("multiple_of", ErrorKind::kInput, "is not between 1 and 2^31");
    return;
  }
  if (!(multiplier > 0.0 && multiplier <= 1024.0)) {
    fields.refuse("ffn_dim_multiplier", ErrorKind::kInput, "is not a number above 0 and at most 1024");
    return;
  }
  if (a.vocab == -1) {
    fields.refuse("vocab_size", ErrorKind::kInput, "is -1: the tokenizer decides",
                  {"write 32000 for Llama 1 and 2, 32016 for Code Llama 7B and 13B"});
  }
  if (a.hidden < 1 || a.hidden > kMaxSize) return;         // a problem already
  const std::int64_t two_thirds = 2 * (4 * a.hidden) / 3;  // whole, as the published code has it
  const auto scaled = static_cast<std::int64_t>(multiplier * static_cast<double>(two_thirds));
  a.ffn = (scaled + multiple - 1) / multiple * multiple;
}

// MistralConfig has a window of 4096 unless the file says null.
void read_mistral(Fields& fields, Architecture& a) {
  read_window_everywhere(fields, a);
  if (a.window != 0 || fields.has("sliding_window") || fields.is_null("sliding_window")) return;
  a.window = 4096;
  set_all_kinds(a, {.mixer = Mixer::kWindowAttention});
}

void read_qwen2(Fields& fields, Architecture& a) {
  a.qkv_bias = true;  // without a key for it
  a.attention_output_bias = false;
  read_qwen_window(fields, a);
}

void read_qwen3(Fields& fields, Architecture& a) {
  a.qk_norm = QkNorm::kPerHead;
  read_qwen_window(fields, a);
}

void read_olmo2(Fields& /*fields*/, Architecture& a) {
  a.qk_norm = QkNorm::kFullWidth;
  a.norm_placement = NormPlacement::kAfter;
}

void read_nemotron(Fields& /*fields*/, Architecture& a) {
  use_layer_norm(a);
  a.gated_mlp = false;
}

void read_gpt2(Fields& /*fields*/, Architecture& a) {
  use_gpt_blocks(a);
  a.positions = PositionKind::kLearned;
}

void read_starcoder2(Fields& fields, Architecture& a) {
  use_gpt_blocks(a);
  const bool bias = fields.boolean("use_bias", true);
  a.qkv_bias = a.attention_output_bias = a.mlp_bias = bias;
  const std::string norm = fields.text("norm_type").value_or("layer_norm");
  if (norm != "layer_norm") {
    fields.refuse("norm_type", ErrorKind::kUnsupported, "norm " + printable(Json(norm)), {"supported: layer_norm"});
  }
  const std::string mlp = fields.text("mlp_type").value_or("default");
  if (mlp != "default") {
    fields.refuse("mlp_type", ErrorKind::kUnsupported, "MLP " + printable(Json(mlp)), {"supported: default"});
  }
  read_window_everywhere(fields, a);
}

// no_rope_layers holds 1 for a layer with positions; without it every n-th layer has none.
void read_smollm3(Fields& fields, Architecture& a) {
  const std::int64_t interval = fields.integer("no_rope_layer_interval").value_or(4);
  const auto listed = fields.integers("no_rope_layers");
  if (listed && static_cast<std::int64_t>(listed->size()) != a.layers) {
    fields.refuse("no_rope_layers", ErrorKind::kInput,
                  std::to_string(listed->size()) + " entries for " + std::to_string(a.layers) + " layers");
    return;
  }
  if (interval < 1) {
    fields.refuse("no_rope_layer_interval", ErrorKind::kInput, "is not at least 1");
    return;
  }
  set_kinds(fields, a, [&](std::int64_t i) {
    const bool rotary = listed ? listed->at(static_cast<std::size_t>(i)) != 0 : (i + 1) % interval != 0;
    return LayerKind{.rotary = rotary};
  });
}

// Whatever hidden_act says, the activation is the tanh form of GELU (transformers' GemmaConfig).
void read_gemma(Fields& fields, Architecture& a) {
  a.activation = Activation::kGeluTanh;
  const std::string activation = fields.text("hidden_activation").value_or("gelu_pytorch_tanh");
  if (activation != "gelu_pytorch_tanh") {
    fields.refuse("hidden_activation", ErrorKind::kUnsupported, "activation " + printable(Json(activation)),
                  {"supported: gelu_pytorch_tanh"});
  }
  a.embedding_scale = std::sqrt(static_cast<double>(std::max<std::int64_t>(a.hidden, 1)));
}

void read_bloom(Fields& fields, Architecture& a) {
  use_gpt_blocks(a);
  a.positions = PositionKind::kAlibi;
  a.embedding_norm = true;
  if (fields.boolean("apply_residual_connection_post_layernorm", false)) {
    fields.refuse("apply_residual_connection_post_layernorm", ErrorKind::kUnsupported, "residuals behind the norms",
                  {"supported: false"});
  }
}

namespace {

// MptAttentionConfig: positions by ALiBi unless attn_config says otherwise.
bool mpt_alibi(Fields& fields, Architecture& a) {
  const Json* attention = fields.find("attn_config");
  if (attention == nullptr) return true;
  if (!attention->is_object()) {
    fields.refuse("attn_config", ErrorKind::kInput, "expected an object, found " + printable(*attention));
    return true;
  }
  for (const char* const key : {"qk_ln", "prefix_lm", "rope"}) {
    if (attention->value(key, Json(false)) != Json(true)) continue;
    fields.refuse("attn_config", ErrorKind::kUnsupported, std::string(key) + " in attn_config", {"supported: false"});
  }
  const Json heads = attention->value("kv_n_heads", Json());
  if (heads.is_number_integer()) a.kv_heads = heads.get<std::int64_t>();
  return attention->value("alibi", Json(true)) != Json(false);
}

}  // namespace

void read_mpt(Fields& fields, Architecture& a) {
  const bool bias = !fields.boolean("no_bias", true);
  a.norm = NormKind::kLayerNorm;
  a.norm_bias = bias;
  a.gated_mlp = false;
  a.qkv_bias = a.attention_output_bias = a.mlp_bias = bias;
  const std::int64_t expansion = fields.integer("expansion_ratio").value_or(4);
  if (expansion < 1 || expansion > 1024) {
    fields.refuse("expansion_ratio", ErrorKind::kInput, "is not between 1 and 1024");
  } else if (a.hidden >= 1 && a.hidden <= kMaxSize) {
    a.ffn = expansion * a.hidden;
  }
  const bool alibi = mpt_alibi(fields, a);
  const bool learned = fields.boolean("learned_pos_emb", true);
  a.positions = PositionKind::kNone;
  if (learned) a.positions = PositionKind::kLearned;
  if (alibi) a.positions = PositionKind::kAlibi;
}

}  // namespace stepcast::models
