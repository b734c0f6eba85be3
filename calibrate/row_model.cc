// The model of a row: its columns state sizes; whether its MLP is gated, its embedding tied, which norms, positions and
// biases it has is known by the family that its name says.
//
// Sources: the configs that the tables' locators name; NeMo's and Megatron-LM's GPT (GELU, LayerNorm, learned
// positions, biases, tied), Nemotron-3 and -4 (squared ReLU, LayerNorm, no biases), llm-foundry's MPT (GELU, tied),
// BLOOM (GELU, ALiBi, biases, tied), and Llama's kin (SwiGLU, RMSNorm, rotary).
#include <algorithm>
#include <array>
#include <cmath>

#include "calibrate/row_draft.h"
#include "config/text.h"

namespace stepcast::calibrate {
namespace {

enum class Family : std::uint8_t { kLlama, kNanotron, kQwen25, kGpt, kNemotron, kMpt, kBloom };

struct FamilyName {
  std::string_view begins;
  Family family;
};

constexpr std::array<FamilyName, 13> kFamilyNames = {{{"llama", Family::kLlama},
                                                      {"kwai-llama", Family::kLlama},
                                                      {"internlm", Family::kLlama},
                                                      {"nanotron", Family::kNanotron},
                                                      {"qwen2.5", Family::kQwen25},
                                                      {"gpt3", Family::kGpt},
                                                      {"sc21-gpt", Family::kGpt},
                                                      {"kort-gpt", Family::kGpt},
                                                      {"mcore08-gpt", Family::kGpt},
                                                      {"nemotron3-", Family::kNemotron},
                                                      {"nemotron4-", Family::kNemotron},
                                                      {"mpt", Family::kMpt},
                                                      {"bloom", Family::kBloom}}};

void set_gpt_kind(RowDraft& draft, const char* activation, const char* positions, bool biases) {
  draft.set("model.hidden_act", activation);
  draft.set("model.normalization", "LayerNorm");
  draft.set("model.position_embedding_type", positions);
  draft.set("model.add_bias_linear", biases ? "true" : "false");
}

// Llama's decoder with one or two tables: nanotron's sweep has both kinds, told apart by the published total.
bool ties_by_total(const PublishedRow& row) {
  const auto d = [](std::int64_t value) { return static_cast<double>(value); };
  const double kv = d(row.hidden) * d(row.kv_heads) / d(row.heads);
  const double layer = d(row.hidden) * (2 * d(row.hidden) + 2 * kv + 3 * d(row.ffn));
  const double table = d(row.vocab) * d(row.hidden);
  const double tied = d(row.layers) * layer + table;
  const double total = row.params_b * 1e9;
  return row.params_b > 0 && std::abs(total - tied) < std::abs(total - tied - table);
}

bool is_tied(const PublishedRow& row, Family family) {
  if (family == Family::kNanotron) return ties_by_total(row);
  return family == Family::kGpt || family == Family::kMpt || family == Family::kBloom;
}

void set_kind(RowDraft& draft, Family family) {
  switch (family) {
    case Family::kGpt:
      return set_gpt_kind(draft, "gelu_pytorch_tanh", "learned_absolute", true);
    case Family::kNemotron:
      return set_gpt_kind(draft, "relu2", "rope", false);
    case Family::kMpt:
      draft.assume("MPT's norms, which have no bias, are taken with one");
      return set_gpt_kind(draft, "gelu_pytorch_tanh", "learned_absolute", false);
    case Family::kBloom:
      draft.assume("the norm of BLOOM's embedding is left out");
      return set_gpt_kind(draft, "gelu_pytorch_tanh", "alibi", true);
    case Family::kQwen25:
      return draft.set("model.config", "qwen2.5-32b");  // its biases and norms; every size is the row's
    default:
      if (draft.row.model.starts_with("internlm")) draft.assume("InternLM's attention biases are left out");
  }
}

void set_tie(RowDraft& draft, Family family) {
  const bool tied = is_tied(draft.row, family);
  const bool apart = tied && draft.zero == 3 && draft.replicas() > 1;
  if (apart) draft.assume("the tied embedding is sharded as two tables, one of them the head's");
  draft.set("model.tie_word_embeddings", tied && !apart ? "true" : "false");
}

}  // namespace

void take_model(RowDraft& draft) {
  const PublishedRow& row = draft.row;
  const auto known = std::find_if(kFamilyNames.begin(), kFamilyNames.end(),
                                  [&row](const FamilyName& name) { return row.model.starts_with(name.begins); });
  if (known == kFamilyNames.end()) {
    return draft.skip("model '" + config::printable(row.model) +
                      "': its name is of no known family, which says whether its MLP is gated");
  }
  draft.set("model.num_hidden_layers", row.layers);
  draft.set("model.hidden_size", row.hidden);
  draft.set("model.intermediate_size", row.ffn);
  draft.set("model.num_attention_heads", row.heads);
  draft.set("model.num_key_value_heads", row.kv_heads);
  draft.set("model.vocab_size", row.vocab);
  draft.set("model.max_position_embeddings", row.sequence_length);
  set_kind(draft, known->family);
  set_tie(draft, known->family);
}

}  // namespace stepcast::calibrate
