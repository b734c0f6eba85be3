// Parameters in billions in the table, to the digit for one model.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/quantity.h"
#include "report/models_output.h"
#include "report/text.h"

namespace stepcast::report {
namespace {

using Row = std::vector<std::string>;

// By column: words, the others are numbers.
std::vector<bool> model_word_columns() {
  return {true, true, false, false, false, false, true, false, true, false, true};
}

std::string billions(std::int64_t count) { return significant(static_cast<double>(count) * 1e-9, 4); }

std::string heads_text(const models::Architecture& a) {
  return a.latent ? fmt::format("{} mla", a.heads) : fmt::format("{}/{}", a.heads, a.kv_heads);
}

std::string experts_text(const models::Architecture& a) {
  if (!a.experts) return "-";
  return fmt::format("{} of {} x {}", a.experts->top_k, a.experts->experts, a.experts->ffn);
}

bool has_dense_mlp(const models::Architecture& a) {
  return std::any_of(a.kinds.begin(), a.kinds.end(),
                     [](const models::LayerKind& kind) { return kind.feed_forward == models::FeedForward::kMlp; });
}

Row row_of(const ModelEntry& entry) {
  const models::Architecture& a = entry.shape;
  return {entry.name,
          a.family,
          billions(entry.parameters.total),
          billions(entry.parameters.active),
          std::to_string(a.layers),
          std::to_string(a.hidden),
          heads_text(a),
          has_dense_mlp(a) ? std::to_string(a.ffn) : "-",
          experts_text(a),
          std::to_string(a.vocab),
          entry.not_lowered.empty() ? "yes" : "-"};
}

class Screen {
 public:
  void heading(const std::string& text) { text_ += "\n" + text + "\n"; }
  void line(const std::string& label, const std::string& value) {
    text_ += wrapped(fmt::format("  {:<18}", label), kIndent, value);
  }
  void number(const std::string& label, std::int64_t value) {
    if (value != 0) text_ += fmt::format("  {:<18}{:>22}\n", label, format_count(value));
  }
  std::string& text() { return text_; }

 private:
  static constexpr std::size_t kIndent = 20;
  std::string text_;
};

std::string layers_text(const models::Architecture& a) {
  std::vector<std::string> parts;
  for (const auto& [kind, count] : a.kind_counts()) {
    std::vector<std::string> blocks;
    if (kind.mixer != models::Mixer::kNone) blocks.emplace_back(to_string(kind.mixer));
    if (kind.feed_forward != models::FeedForward::kNone) blocks.emplace_back(to_string(kind.feed_forward));
    parts.push_back(std::to_string(count) + " x " + joined(blocks, " + ") + (kind.rotary ? "" : " without positions"));
  }
  return fmt::format("{}: {}", a.layers, joined(parts, ", "));
}

std::string attention_text(const models::Architecture& a) {
  std::string text = fmt::format("{} heads", a.heads);
  if (a.latent) {
    const models::LatentAttention& m = *a.latent;
    text += m.q_rank == 0 ? ", queries direct" : fmt::format(", queries through rank {}", m.q_rank);
    text += fmt::format(", keys and values through rank {}; a head of {} + {} rotary, values of {}", m.kv_rank,
                        m.nope_dim, m.rope_dim, m.v_dim);
  } else {
    text += fmt::format(" of {}, {} for keys and values", a.head_dim, a.kv_heads);
  }
  if (a.indexer) text += fmt::format(", the best {} keys", a.indexer->top_k);
  if (a.window != 0) text += fmt::format(", window {}", a.window);
  if (a.qkv_bias) text += a.attention_output_bias ? ", biases" : ", biases on q, k and v";
  if (a.qk_norm != models::QkNorm::kNone) text += ", q and k normed";
  if (a.attention_sinks) text += ", sinks";
  if (a.attention_output_gate) text += ", output gate";
  return text;
}

std::string mlp_text(const models::Architecture& a) {
  const char* form = a.gated_mlp ? "three matrices, gated" : "two matrices";
  return fmt::format("{} wide, {}, {}{}", a.ffn, form, to_string(a.activation), a.mlp_bias ? ", biases" : "");
}

std::string expert_layer_text(const models::Architecture& a) {
  std::string text = experts_text(a) + " wide";
  if (a.experts->shared_ffn > 0) text += fmt::format(", shared {} wide", a.experts->shared_ffn);
  if (!has_dense_mlp(a)) text += fmt::format(", {}", to_string(a.activation));
  return text;
}

void add_shape(Screen& screen, const models::Architecture& a) {
  screen.heading("shape");
  screen.line("layers", layers_text(a));
  screen.line("hidden", std::to_string(a.hidden));
  screen.line("attention", attention_text(a));
  if (const auto& d = a.delta) {
    screen.line("gated delta net", fmt::format("{} key heads of {}, {} value heads of {}", d->key_heads, d->key_dim,
                                               d->value_heads, d->value_dim));
  }
  if (const auto& m = a.mamba) {
    screen.line("mamba2",
                fmt::format("{} heads of {}, state {}, {} groups", m->heads, m->head_dim, m->state, m->groups));
  }
  if (has_dense_mlp(a)) screen.line("mlp", mlp_text(a));
  if (a.experts) screen.line("experts", expert_layer_text(a));
  const bool after = a.norm_placement == models::NormPlacement::kAfter;
  screen.line("norm", fmt::format("{}{}{}", to_string(a.norm), a.norm_bias ? " with bias" : "",
                                  after ? " behind the blocks" : ""));
  screen.line("positions", fmt::format("{}, up to {}", to_string(a.positions), a.max_positions));
  screen.line("vocabulary", fmt::format("{}, head {}", a.vocab, a.tied_embeddings ? "tied" : "untied"));
  if (a.mtp_layers > 0) screen.line("prediction layers", std::to_string(a.mtp_layers));
}

void add_parameters(Screen& screen, const ModelEntry& entry) {
  const models::ParameterCount& n = entry.parameters;
  screen.heading("parameters");
  screen.number("input table", n.embedding);
  screen.number("position table", n.positions);
  screen.number("attention", n.mixers);
  screen.number("mlp, router", n.feed_forward);
  screen.number("routed experts", n.experts);
  screen.number("norms", n.norms);
  screen.number("head", n.head);
  screen.number("total", n.total);
  if (n.active != n.total) {
    screen.number("active", n.active);
    screen.number("  less input table", n.active_without_input(entry.shape.tied_embeddings));
  }
  screen.number("prediction layers", n.mtp);
}

void add_flops(Screen& screen, const ModelEntry& entry) {
  screen.heading("GFLOP per token, forward and backward, with full and causal attention");
  for (const ModelFlops& f : entry.flops) {
    screen.text() += fmt::format("  {:<18}{:>10}{:>12}\n", fmt::format("{} tokens", f.sequence),
                                 significant(f.per_token.full * 1e-9, 4), significant(f.per_token.causal * 1e-9, 4));
  }
}

}  // namespace

std::string models_table(const ModelList& list) {
  std::vector<Row> rows = {
      {"model", "type", "total", "active", "layers", "hidden", "heads", "ffn", "experts", "vocab", "simulated"}};
  for (const ModelEntry& entry : list.entries) rows.push_back(row_of(entry));
  std::string text = aligned_rows(rows, model_word_columns());
  for (const UnreadableModel& file : list.unreadable) {
    text += wrapped(file.name + " is unreadable:", 2, file.problem);
  }
  text += '\n';
  for (const ModelEntry& entry : list.entries) {
    if (!entry.file.ends_with("(built in)")) text += wrapped("", 0, entry.name + " is read from " + entry.file);
  }
  text += wrapped("", 0,
                  "total, active: parameters in billions, prediction layers not counted; active are those one token "
                  "uses, tables included. heads: attention/key-value, mla is latent attention. ffn: width of a dense "
                  "MLP. experts: a token's, of how many, width of each.");
  return text + "stepcast models NAME shows one in detail.\n";
}

std::string model_screen(const ModelEntry& entry) {
  Screen screen;
  screen.text() =
      fmt::format("{}: {}, {} B parameters", entry.name, entry.shape.family, billions(entry.parameters.total));
  if (entry.parameters.active != entry.parameters.total) {
    screen.text() += fmt::format(", {} B active", billions(entry.parameters.active));
  }
  screen.text() += "\n" + wrapped("", 0, "file: " + entry.file);
  add_shape(screen, entry.shape);
  add_parameters(screen, entry);
  add_flops(screen, entry);
  screen.heading(entry.not_lowered.empty() ? "simulate and run take it" : "simulate and run do not take it yet");
  for (const std::string& part : entry.not_lowered) screen.text() += wrapped("  ", 2, part);
  if (!entry.ignored_keys.empty()) {
    screen.heading("keys of the file without influence");
    screen.text() += wrapped("  ", 2, joined(entry.ignored_keys, ", "));
  }
  return screen.text();
}

}  // namespace stepcast::report
