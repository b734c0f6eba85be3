// How a row's states are sharded, and the framework it is lowered as for it.
#include <algorithm>
#include <array>
#include <charconv>

#include "calibrate/row_draft.h"
#include "config/text.h"

namespace stepcast::calibrate {
namespace {

struct ShardingWords {
  std::string_view begins;
  int zero;
};

// In this order: a longer beginning before a shorter one.
constexpr std::array<ShardingWords, 13> kShardings = {{{"distributed optimizer", 1},
                                                       {"DeepSpeed ZeRO-1", 1},
                                                       {"ZeRO-0", 0},
                                                       {"ZeRO-1", 1},
                                                       {"ZeRO-2", 2},
                                                       {"ZeRO-3", 3},
                                                       {"DDP", 0},
                                                       {"none", 0},
                                                       {"PyTorch FSDP", 3},
                                                       {"Megatron-FSDP", 3},
                                                       {"JAX FSDP", 3},
                                                       {"HSDP", 3},
                                                       {"FSDP", 3}}};

bool has(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

// The number behind `word` in `text`; 0 where there is none.
std::int64_t number_behind(const std::string& text, std::string_view word) {
  const std::size_t at = text.find(word);
  std::int64_t value = 0;
  if (at != std::string::npos) std::from_chars(text.data() + at + word.size(), text.data() + text.size(), value);
  return value;
}

// Groups of shards smaller than all replicas.
void set_shard_group(RowDraft& draft, std::int64_t size) {
  if (size <= 0 || size >= draft.replicas()) return;
  draft.set("plan.dp_shard", size);
}

void set_groups(RowDraft& draft) {
  const std::string& words = draft.row.zero;
  if (has(words, "within 8 GPUs")) set_shard_group(draft, 8);
  if (has(words, "HSDP (shard in node")) set_shard_group(draft, draft.row.gpus_per_node);
  if (has(words, "JAX FSDP=")) set_shard_group(draft, number_behind(words, "JAX FSDP="));
  if (has(words, "SHARD_GRAD_OP")) draft.set("plan.fsdp.reshard_after_forward", "false");
  if (has(words, "DDP-impl local")) draft.set("plan.overlap.grad_reduce", "false");
  if (has(words, "optimizer CPU offload")) {
    draft.assume("the optimizer's step on the host is left out: small beside sequences of 64k tokens and more");
  }
  if (has(words, "ZeRO-1 over all DP")) draft.assume("updated parameters are all-gathered, not broadcast one by one");
  if (draft.row.flagged("cpu_offloading_num_layers") || draft.row.noted("activation CPU offload was used")) {
    draft.assume("activations offloaded to the host cost no time, and stay on the device");
  }
}

// What of Megatron's own a ZeRO-3 plan keeps as `plain`.
void as_megatron_fsdp(RowDraft& draft) {
  draft.framework = "plain";
  draft.assume("Megatron-FSDP is lowered as plain ZeRO-3: fp32 shards, gathered and reduced in bf16");
  draft.set("training.precision.params", "fp32");
  draft.set("training.precision.grad_reduce", "bf16");
  draft.set("stack.attention", "cudnn");
  draft.set("model.vocab_pad_to", 128 * draft.row.tp);
}

void as_plain_torchtitan(RowDraft& draft) {
  draft.framework = "plain";
  draft.assume("float8 and AsyncTP are lowered as Transformer Engine has them, the rest as torchtitan's");
  draft.set("training.precision.params", "fp32");
  draft.set("training.lm_head_loss", "unfused");
  draft.set("stack.attention", "sdpa_flash");
}

}  // namespace

void take_sharding(RowDraft& draft) {
  const std::string& words = draft.row.zero;
  if (words.empty() && draft.stack.stack == Stack::kStated) return;
  const auto known = std::find_if(kShardings.begin(), kShardings.end(),
                                  [&words](const ShardingWords& w) { return words.starts_with(w.begins); });
  if (known == kShardings.end()) {
    return draft.skip("sharding '" + config::printable(words) + "': not understood");
  }
  draft.zero = known->zero;
  draft.set("plan.zero", std::int64_t{known->zero});
  set_groups(draft);
}

void take_framework(RowDraft& draft) {
  const PublishedRow& row = draft.row;
  draft.framework = draft.stack.stack == Stack::kStated ? row.framework : std::string(draft.stack.framework);
  const bool float8 = row.precision.starts_with("float8") || row.precision.starts_with("fp8");
  if (draft.framework == "megatron-core" && draft.zero == 3) {
    as_megatron_fsdp(draft);
  } else if (draft.framework == "torchtitan" && (float8 || row.flagged("AsyncTP"))) {
    as_plain_torchtitan(draft);
  }
  draft.set("framework", draft.framework);
}

}  // namespace stepcast::calibrate
