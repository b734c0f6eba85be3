// The model types that are read, one row each: the names and defaults of their config class in transformers, and a
// function for what differs from a Llama.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "models/architecture.h"
#include "models/config_fields.h"

namespace stepcast::models {

struct Family {
  std::string_view model_type;
  std::span<const Alias> aliases = {};

  // Defaults of the config class, where it has one.
  std::int64_t max_positions = 2048;
  double norm_eps = 1e-5;
  double rope_theta = 10000.0;
  double rotary_fraction = 1.0;
  bool tied = false;
  std::string_view activation = "silu";
  std::int64_t head_dim = 0;      // 0: hidden_size / num_attention_heads
  std::int64_t ffn_multiple = 0;  // intermediate_size as a multiple of hidden_size; 0: must be stated
  bool computes_ffn = false;      // the family's function sets it from other keys
  bool states_kv_heads = true;    // false: as many as attention heads when absent
  bool attention_bias = false;
  bool latent = false;   // the family's function sets head_dim
  bool windows = false;  // reads sliding_window itself; the others refuse one

  // Called last, with everything that all families share read.
  void (*read)(Fields& fields, Architecture& a) = nullptr;
};

// nullptr for a model type that is not read.
const Family* find_family(std::string_view model_type);
// Meta's params.json, which has other names and no model type.
const Family& meta_family();
// "llama, mistral, ...".
std::string family_names();

// What the families' functions share. Each layer's kind follows from its index; the layers' number must be sane, else
// nothing is done, since that is a problem already.
void set_kinds(Fields& fields, Architecture& a, const std::function<LayerKind(std::int64_t)>& kind_of);
// Sets the mixers by layer_types ("full_attention", "sliding_attention", "linear_attention"), if the file has them.
bool read_layer_types(Fields& fields, Architecture& a);

void read_llama(Fields& fields, Architecture& a);
void read_meta(Fields& fields, Architecture& a);
void read_mistral(Fields& fields, Architecture& a);
void read_qwen2(Fields& fields, Architecture& a);
void read_qwen3(Fields& fields, Architecture& a);
void read_olmo2(Fields& fields, Architecture& a);
void read_nemotron(Fields& fields, Architecture& a);
void read_gpt2(Fields& fields, Architecture& a);
void read_starcoder2(Fields& fields, Architecture& a);
void read_smollm3(Fields& fields, Architecture& a);
void read_gemma(Fields& fields, Architecture& a);
void read_bloom(Fields& fields, Architecture& a);
void read_mpt(Fields& fields, Architecture& a);

void read_mixtral(Fields& fields, Architecture& a);
void read_qwen3_moe(Fields& fields, Architecture& a);
void read_gpt_oss(Fields& fields, Architecture& a);
void read_glm4_moe(Fields& fields, Architecture& a);
void read_deepseek_v2(Fields& fields, Architecture& a);
void read_deepseek_v3(Fields& fields, Architecture& a);
void read_deepseek_v32(Fields& fields, Architecture& a);
void read_qwen3_next(Fields& fields, Architecture& a);
void read_nemotron_h(Fields& fields, Architecture& a);

}  // namespace stepcast::models
