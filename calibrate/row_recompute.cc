// What a row recomputes, in the source's words.
#include "calibrate/row_draft.h"
#include "config/text.h"

namespace stepcast::calibrate {
namespace {

bool contains(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

// The modules of "selective: ..." or "selective (...)" in the scenario's words; empty: not understood.
std::string selective_modules(const std::string& words) {
  const bool bare = words == "selective";
  if (bare || contains(words, "core_attn") || contains(words, "core attention")) return "[core_attn]";
  if (contains(words, "norm + MLP activation")) return "[layernorm, mlp_act]";
  if (words == "selective:mlp") return "[mlp]";
  if (words == "selective:layernorm") return "[layernorm]";
  return "";
}

// torch's selective checkpointing by operator keeps every second matmul's output.
bool is_by_operator(const std::string& words) { return contains(words, "SAC"); }

void take_blocks(RowDraft& draft) {
  const std::string count = draft.row.recompute.substr(std::string("full-some:").size());
  const auto layers = config::parse_integer(count.substr(0, count.find(' ')));
  if (!layers || *layers < 1)
    return draft.skip("recompute '" + config::printable(draft.row.recompute) + "': not understood");
  draft.set("plan.recompute.granularity", "full");
  draft.set("plan.recompute.method", "block");
  draft.set("plan.recompute.num_layers", *layers);
}

}  // namespace

void take_recompute(RowDraft& draft) {
  const std::string& words = draft.row.recompute;
  if (contains(words, "not stated") || words.empty()) draft.assume("nothing is recomputed; the source does not say");
  if (words.empty() || words.starts_with("none")) return;
  if (words.starts_with("full-some:")) return take_blocks(draft);
  if (words.starts_with("full")) return draft.set("plan.recompute.granularity", "full");
  if (is_by_operator(words)) {
    draft.assume("recompute by operator is taken as that of every second layer: as many matmuls");
    draft.set("plan.recompute.mode", "selective");
    return draft.set("plan.recompute.policy", "every 2");
  }
  const std::string modules = words.starts_with("selective") ? selective_modules(words) : "";
  if (modules.empty()) return draft.skip("recompute '" + config::printable(words) + "': not understood");
  draft.set("plan.recompute.granularity", "selective");
  draft.set("plan.recompute.modules", modules);
}

}  // namespace stepcast::calibrate
