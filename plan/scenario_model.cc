// The model of a scenario: a Hugging Face config by name or path with overrides, or one written inline.
#include <string>
#include <utility>

#include "base/quantity.h"
#include "config/text.h"
#include "models/hf_config.h"
#include "plan/model_support.h"
#include "plan/scenario_draft.h"

namespace stepcast::plan {
namespace {

using models::Architecture;

constexpr std::int64_t kLlamaMaxPositions = 2048;  // transformers' LlamaConfig

// A path given in a file is relative to it; one from the command line, to the current folder.
std::string beside(const Location& where) { return where.line > 0 ? where.file : ""; }

Architecture from_file(ScenarioDraft& draft) {
  const std::string& name = draft.message.model().config();
  const Location where = draft.locate("model.config");
  const config::FoundFile found =
      config::find_file(config::PresetKind::kModel, name, beside(where), draft.source.search, where);
  std::vector<std::string> ignored;
  Architecture model = models::parse_hf_config(found.text, found.file, &ignored);
  model.name = found.name;
  if (!ignored.empty() && !found.built_in) {
    draft.read.notes.push_back(found.file + ": " + counted(static_cast<std::int64_t>(ignored.size()), "key") +
                               " without influence here: " + config::printable(config::join(ignored), 200));
  }
  return model;
}

// A config by itself: what every Llama config states is required, the rest has LlamaConfig's defaults.
Architecture from_inline(ScenarioDraft& draft) {
  const schema::Model& given = draft.message.model();
  const auto require = [&](bool has, const char* key) {
    const std::string field = std::string("model.") + key;
    if (has || draft.given(field)) return;  // given but unreadable: said already
    draft.problems.add(ErrorKind::kInput, "missing required field", draft.locate(field),
                       {"a model without `config` states its own shape"});
  };
  require(given.has_num_hidden_layers(), "num_hidden_layers");
  require(given.has_hidden_size(), "hidden_size");
  require(given.has_intermediate_size(), "intermediate_size");
  require(given.has_num_attention_heads(), "num_attention_heads");
  require(given.has_vocab_size(), "vocab_size");
  Architecture model;
  model.name = "inline";
  model.kv_heads = given.num_attention_heads();
  model.max_positions = kLlamaMaxPositions;
  return model;
}

// Whether an inline model has all the sizes it must state; what is missing has been said.
bool states_its_shape(const schema::Model& given) {
  return given.has_num_hidden_layers() && given.has_hidden_size() && given.has_intermediate_size() &&
         given.has_num_attention_heads() && given.has_vocab_size();
}

// What makes a decoder one of the GPT kind.
void override_kind(const schema::Model& given, Architecture& model) {
  if (given.has_hidden_act()) {
    model.activation = given.hidden_act() == "silu"    ? models::Activation::kSilu
                       : given.hidden_act() == "relu2" ? models::Activation::kSquaredRelu
                                                       : models::Activation::kGeluTanh;
    model.gated_mlp = model.activation == models::Activation::kSilu;
  }
  if (given.has_normalization()) {
    model.norm_bias = given.normalization() == "LayerNorm";
    model.norm = model.norm_bias ? models::NormKind::kLayerNorm : models::NormKind::kRmsNorm;
  }
  if (given.has_position_embedding_type()) {
    const std::string& type = given.position_embedding_type();
    model.positions = type == "rope"               ? models::PositionKind::kRotary
                      : type == "learned_absolute" ? models::PositionKind::kLearned
                      : type == "alibi"            ? models::PositionKind::kAlibi
                                                   : models::PositionKind::kNone;
  }
  if (given.has_add_bias_linear()) {
    model.qkv_bias = model.attention_output_bias = model.mlp_bias = given.add_bias_linear();
  }
}

void override_shape(const schema::Model& given, Architecture& model) {
  if (given.has_num_hidden_layers()) model.layers = given.num_hidden_layers();
  if (given.has_hidden_size()) model.hidden = given.hidden_size();
  if (given.has_intermediate_size()) model.ffn = given.intermediate_size();
  if (given.has_num_attention_heads()) model.heads = given.num_attention_heads();
  if (given.has_num_key_value_heads()) model.kv_heads = given.num_key_value_heads();
  const bool reshaped = given.has_hidden_size() || given.has_num_attention_heads();
  if (given.has_head_dim()) {
    model.head_dim = given.head_dim();
  } else if (reshaped && model.heads > 0) {
    model.head_dim = model.hidden / model.heads;
  }
  if (given.has_vocab_size()) model.vocab = given.vocab_size();
  if (given.has_max_position_embeddings()) model.max_positions = given.max_position_embeddings();
  if (given.has_tie_word_embeddings()) model.tied_embeddings = given.tie_word_embeddings();
  if (given.has_rms_norm_eps()) model.norm_eps = given.rms_norm_eps();
  if (given.has_rope_theta()) model.rope_theta = given.rope_theta();
  override_kind(given, model);
  model.padded_vocab = model.vocab;
}

// Only where they were given: a Llama's own are its model type's.
void record_kind(ScenarioDraft& draft) {
  const schema::Model& given = draft.message.model();
  if (given.has_hidden_act()) draft.record("model.hidden_act", given.hidden_act(), "");
  if (given.has_normalization()) draft.record("model.normalization", given.normalization(), "");
  if (given.has_position_embedding_type()) {
    draft.record("model.position_embedding_type", given.position_embedding_type(), "");
  }
  if (given.has_add_bias_linear()) draft.record("model.add_bias_linear", bool_text(given.add_bias_linear()), "");
}

void record_shape(ScenarioDraft& draft, const std::string& source) {
  const Architecture& a = draft.read.scenario.model;
  const auto integer = [&](const char* key, std::int64_t value) {
    draft.record(std::string("model.") + key, std::to_string(value), source);
  };
  integer("num_hidden_layers", a.layers);
  integer("hidden_size", a.hidden);
  integer("intermediate_size", a.ffn);
  integer("num_attention_heads", a.heads);
  integer("num_key_value_heads", a.kv_heads);
  integer("head_dim", a.head_dim);
  integer("vocab_size", a.vocab);
  integer("max_position_embeddings", a.max_positions);
  draft.record("model.tie_word_embeddings", bool_text(a.tied_embeddings), source);
  draft.record("model.rms_norm_eps", config::number_text(a.norm_eps), source);
  draft.record("model.rope_theta", config::number_text(a.rope_theta), source);
  record_kind(draft);
}

}  // namespace

void resolve_model(ScenarioDraft& draft) {
  const schema::Model& given = draft.message.model();
  Architecture model = given.has_config() ? from_file(draft) : from_inline(draft);
  if (!given.has_config() && !states_its_shape(given)) return;
  override_shape(given, model);
  const bool split = given.has_head_dim() || model.heads <= 0 || model.hidden % model.heads == 0 ||
                     !(given.has_hidden_size() || given.has_num_attention_heads());
  if (!split) {
    draft.refuse("model.num_attention_heads",
                 "hidden_size " + std::to_string(model.hidden) + " does not divide by num_attention_heads " +
                     std::to_string(model.heads),
                 {"state model.head_dim, or choose heads that divide the hidden size"});
    return;
  }
  for (const models::ShapeProblem& problem : models::problems_of(model)) {
    std::vector<std::string> help;
    if (!problem.help.empty()) help.push_back(problem.help);
    draft.refuse("model." + problem.field, problem.message, std::move(help));
  }
  const Location where = draft.locate(given.has_config() ? "model.config" : "model");
  if (auto refusal = refusal_of(model, draft.message.training().sequence_length(), where)) {
    draft.problems.add(std::move(*refusal));
  }
  draft.read.scenario.model = std::move(model);
  if (given.has_config()) draft.record("model.config", given.config(), "");
  record_shape(draft, given.has_config() ? "model " + config::printable(given.config()) : "default");
}

}  // namespace stepcast::plan
