// Schema stepcast/models/1.
#include "report/json.h"
#include "report/models_output.h"

namespace stepcast::report {
namespace {

Json experts_json(const models::Architecture& a) {
  if (!a.experts) return nullptr;
  const models::MixtureOfExperts& e = *a.experts;
  return {{"experts", e.experts}, {"top_k", e.top_k}, {"ffn", e.ffn}, {"shared_ffn", e.shared_ffn}};
}

Json latent_json(const models::Architecture& a) {
  if (!a.latent) return nullptr;
  const models::LatentAttention& m = *a.latent;
  return {{"q_rank", m.q_rank},
          {"kv_rank", m.kv_rank},
          {"nope_dim", m.nope_dim},
          {"rope_dim", m.rope_dim},
          {"v_dim", m.v_dim}};
}

Json parameters_json(const ModelEntry& entry) {
  const models::ParameterCount& n = entry.parameters;
  return {{"total", n.total},
          {"active", n.active},
          {"active_without_input_table", n.active_without_input(entry.shape.tied_embeddings)},
          {"matmul", n.matmul},
          {"embedding", n.embedding},
          {"positions", n.positions},
          {"mixers", n.mixers},
          {"feed_forward", n.feed_forward},
          {"experts", n.experts},
          {"norms", n.norms},
          {"head", n.head},
          {"mtp", n.mtp}};
}

Json kinds_json(const models::Architecture& a) {
  Json kinds = Json::array();
  for (const auto& [kind, count] : a.kind_counts()) {
    kinds.push_back(
        {{"mixer", to_string(kind.mixer)}, {"feed_forward", to_string(kind.feed_forward)}, {"layers", count}});
  }
  return kinds;
}

Json json_of(const ModelEntry& entry) {
  const models::Architecture& a = entry.shape;
  Json flops = Json::array();
  for (const ModelFlops& f : entry.flops) {
    flops.push_back({{"sequence", f.sequence}, {"full", f.per_token.full}, {"causal", f.per_token.causal}});
  }
  return {{"name", entry.name},
          {"family", a.family},
          {"file", entry.file},
          {"layers", a.layers},
          {"layer_kinds", kinds_json(a)},
          {"hidden", a.hidden},
          {"heads", a.heads},
          {"kv_heads", a.kv_heads},
          {"head_dim", a.head_dim},
          {"ffn", a.ffn},
          {"vocab", a.vocab},
          {"tied_embeddings", a.tied_embeddings},
          {"norm", to_string(a.norm)},
          {"positions", to_string(a.positions)},
          {"activation", to_string(a.activation)},
          {"gated_mlp", a.gated_mlp},
          {"window", a.window},
          {"experts", experts_json(a)},
          {"latent_attention", latent_json(a)},
          {"mtp_layers", a.mtp_layers},
          {"parameters", parameters_json(entry)},
          {"flops_per_token", flops},
          {"not_lowered", entry.not_lowered},
          {"ignored_keys", entry.ignored_keys}};
}

}  // namespace

std::string models_json(const ModelList& list) {
  Json entries = Json::array();
  for (const ModelEntry& entry : list.entries) entries.push_back(json_of(entry));
  Json unreadable = Json::array();
  for (const UnreadableModel& file : list.unreadable) {
    unreadable.push_back({{"name", file.name}, {"problem", file.problem}});
  }
  const Json json = {{"schema", "stepcast/models/1"}, {"models", entries}, {"unreadable", unreadable}};
  return to_text(json);
}

}  // namespace stepcast::report
