// Number formats of a row, in the source's words.
#include <algorithm>
#include <array>

#include "calibrate/row_draft.h"
#include "config/text.h"

namespace stepcast::calibrate {
namespace {

struct PrecisionWords {
  std::string_view begins;
  std::string_view compute;
  std::string_view recipe;
};

// In this order: a longer beginning before a shorter one.
constexpr std::array<PrecisionWords, 10> kPrecisions = {{{"bf16", "bf16", ""},
                                                         {"fp16", "fp16", ""},
                                                         {"mxfp8", "mxfp8", ""},
                                                         {"nvfp4", "nvfp4", ""},
                                                         {"fp8 (delayed", "fp8", "delayed"},
                                                         {"fp8 (current", "fp8", "tensorwise"},
                                                         {"fp8 (per-tensor current", "fp8", "tensorwise"},
                                                         {"fp8", "fp8", "?"},
                                                         {"float8 tensorwise", "fp8", "tensorwise"},
                                                         {"float8 rowwise", "fp8", "row"}}};

// Where the source says no more than fp8: Megatron-Bridge's recipes (FP8_CS) scale by the current tensor, the others
// here are of the time of delayed scaling.
std::string recipe_of(RowDraft& draft, const PrecisionWords& words) {
  if (words.recipe == "row") {
    draft.assume("one scale a row is taken as one a tensor");
    return "tensorwise";
  }
  if (words.recipe != "?") return std::string(words.recipe);
  if (draft.row.source.starts_with("NVIDIA Megatron-Bridge")) {
    draft.assume("fp8 scaled by the current tensor, as the recipes named FP8_CS do");
    return "tensorwise";
  }
  draft.assume("fp8 with delayed scaling, Transformer Engine's default");
  return "delayed";
}

// Composer's PURE reduces in bf16, its DEFAULT in fp32; NeMo's recipes reduce in bf16, unless FSDP keeps fp32 shards.
void take_gradients(RowDraft& draft, bool bf16) {
  if (draft.stack.stack == Stack::kMosaic) {
    draft.set("training.precision.grad_reduce", draft.row.flagged("MP mode PURE") ? "bf16" : "fp32");
  }
  if (draft.is_nvidia() && draft.zero != 3) {
    draft.set("training.precision.grads", "bf16");
    draft.assume("gradients are kept and reduced in bf16, as NVIDIA's recipes do");
  }
  if (draft.row.precision.find("fp32 grad accumulation") != std::string::npos && bf16) {
    draft.set("training.precision.grads", "fp32");
  }
}

}  // namespace

void take_precision(RowDraft& draft) {
  const std::string& given = draft.row.precision;
  const auto known = std::find_if(kPrecisions.begin(), kPrecisions.end(),
                                  [&given](const PrecisionWords& words) { return given.starts_with(words.begins); });
  if (known == kPrecisions.end()) {
    return draft.skip("precision '" + config::printable(given) + "': not understood");
  }
  draft.set("training.precision.compute", std::string(known->compute));
  if (!known->recipe.empty()) draft.set("training.precision.fp8_recipe", recipe_of(draft, *known));
  take_gradients(draft, known->compute == "bf16");
}

}  // namespace stepcast::calibrate
