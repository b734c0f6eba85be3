// The parallel plan of a row: degrees, pipeline layout, what communication is hidden, what is recomputed.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "calibrate/row_draft.h"
#include "config/text.h"

namespace stepcast::calibrate {
namespace {

constexpr std::int64_t kMostStages = 4096;

std::string list_text(const std::vector<std::int64_t>& counts) {
  std::vector<std::string> words;
  for (const std::int64_t count : counts) words.push_back(std::to_string(count));
  return "[" + config::join(words) + "]";
}

// nanotron deals its blocks out by cost, a decoder layer 4 h^2 + 3 h ffn, the head vocab h, the embedding nothing: a
// block goes to the first stage whose part of the whole it does not exceed (nanotron, models/base.py, build_model, and
// get_block_compute_costs of its Llama).
std::vector<std::int64_t> layers_by_cost(const PublishedRow& row) {
  const double hidden = static_cast<double>(row.hidden);
  const double layer = 4 * hidden * hidden + 3 * hidden * static_cast<double>(row.ffn);
  const double all = layer * static_cast<double>(row.layers) + hidden * static_cast<double>(row.vocab);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(row.pp), 0);
  std::size_t stage = 0;
  for (std::int64_t i = 1; i <= row.layers; ++i) {
    const double behind = layer * static_cast<double>(i) * static_cast<double>(row.pp);
    while (stage + 1 < counts.size() && behind > all * static_cast<double>(stage + 1)) ++stage;
    ++counts[stage];
  }
  return counts;
}

// The numbers of "7 layers on 11 stages and 1 on the last" at `text`; nothing where it reads otherwise.
std::optional<std::array<std::int64_t, 3>> layout_numbers(std::string_view text) {
  constexpr std::array<std::string_view, 3> kBehind = {" layers on ", " stages and ", " on the last"};
  std::array<std::int64_t, 3> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), numbers[i]);
    if (error != std::errc() || numbers[i] < 0 || numbers[i] > kMostStages) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.starts_with(kBehind[i])) return std::nullopt;
    text.remove_prefix(kBehind[i].size());
  }
  return numbers;
}

// Layers of each stage where the notes state them; empty where they do not.
std::vector<std::int64_t> noted_layout(std::string_view notes) {
  constexpr std::string_view kWords = "pipeline layout ";
  for (std::size_t at = notes.find(kWords); at != std::string_view::npos; at = notes.find(kWords, at + 1)) {
    const auto numbers = layout_numbers(notes.substr(at + kWords.size()));
    if (!numbers) continue;
    std::vector<std::int64_t> counts(static_cast<std::size_t>((*numbers)[1]), (*numbers)[0]);
    counts.push_back((*numbers)[2]);
    return counts;
  }
  return {};
}

void take_layout(RowDraft& draft) {
  const PublishedRow& row = draft.row;
  if (row.pp == 1) return;
  const std::vector<std::int64_t> noted = noted_layout(row.notes);
  if (!noted.empty()) return draft.set("plan.layout", list_text(noted));
  if (draft.stack.stack == Stack::kNanotron && row.pp <= kMostStages) {
    draft.set("plan.layout", list_text(layers_by_cost(row)));
    draft.assume("layers are dealt out to pipeline stages by cost, the head's included, as nanotron does");
  } else if (row.layers % (row.pp * row.vp) != 0) {
    draft.assume("embedding and loss take a layer's place in the pipeline");
  }
}

// Whether the row's tensor-parallel communication runs beside its matmuls.
bool hides_tensor_parallel(RowDraft& draft) {
  const PublishedRow& row = draft.row;
  if (row.tp == 1 || !row.sequence_parallel || row.flagged("no comm overlap")) return false;
  if (draft.framework != "megatron-core" && draft.framework != "plain") {
    if (row.flagged("async")) draft.assume("asynchronous tensor-parallel communication is taken as exposed");
    return false;
  }
  for (const char* const word : {"TP comm overlap", "TP userbuffer overlap", "TP overlap", "AsyncTP"}) {
    if (row.flagged(word)) return true;
  }
  const bool by_recipe = draft.is_nvidia() && !row.source.starts_with("MLPerf") && !row.precision.starts_with("nvfp4");
  if (by_recipe) draft.assume("tensor-parallel communication runs beside matmuls, as NVIDIA's recipes have it");
  return by_recipe;
}

void take_overlap(RowDraft& draft) {
  if (hides_tensor_parallel(draft)) draft.set("plan.overlap.tp_comm", "true");
  if (draft.is_nvidia() && draft.zero == 1 && draft.replicas() > 1) {
    draft.set("plan.overlap.param_gather", "true");
    draft.assume("gradients are reduced and parameters gathered beside other work, as NVIDIA's recipes have it");
  }
  if (draft.zero < 3 && draft.row.flagged("overlap_comm")) draft.set("plan.overlap.grad_reduce", "true");
  if (draft.row.flagged("NCCL_NVLS off")) draft.set("stack.env.NCCL_NVLS_ENABLE", "\"0\"");
}

void take_context(RowDraft& draft) {
  const PublishedRow& row = draft.row;
  if (row.cp == 1) return;
  draft.set("plan.cp", row.cp);
  if (row.flagged("CP a2a")) return draft.set("plan.cp_comm_type", "a2a");
  draft.assume("context parallelism by the framework's default, p2p of Megatron-Core");
}

// Kernels that the flags name.
void take_kernels(RowDraft& draft) {
  if (draft.row.flagged("FA3")) draft.set("stack.attention", "flash3");
  if (draft.row.flagged("Liger fused CE")) draft.set("training.lm_head_loss", "fused");
}

}  // namespace

void take_plan(RowDraft& draft) {
  const PublishedRow& row = draft.row;
  draft.set("plan.tp", row.tp);
  draft.set("plan.pp", row.pp);
  draft.set("plan.dp", row.dp);
  if (row.vp > 1) draft.set("plan.vp", row.vp);
  if (row.tp > 1) draft.set("plan.sequence_parallel", row.sequence_parallel ? "true" : "false");
  take_context(draft);
  take_layout(draft);
  take_overlap(draft);
  take_kernels(draft);
}

}  // namespace stepcast::calibrate
