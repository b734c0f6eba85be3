// The number formats of a scenario: what is computed in, what matmuls read, what gradients are kept in.
//
// training.precision.compute is bf16, fp32, fp16, fp8 or fp4; mxfp8 and nvfp4 are short for fp8 with that recipe and
// for fp4. Under fp8 and fp4 everything but the operands of the layers' matmuls is bf16.
#include <string>

#include "config/text.h"
#include "plan/frameworks.h"
#include "plan/rules.h"
#include "plan/scenario_draft.h"

namespace stepcast::plan {
namespace {

using program::DType;
using Given = schema::Training::Precision;

DType type_named(const std::string& word) {
  return word == "fp32" ? DType::kF32 : word == "fp16" ? DType::kF16 : DType::kBf16;
}

// fp16 gradients stay fp16 where a framework does not accumulate them in fp32 unasked: Megatron-LM does so for bf16
// only, DeepSpeed for neither.
bool keeps_half_gradients(const FrameworkPreset& preset, const std::string& compute) {
  if (compute == "fp32") return false;
  return preset.half_gradients || (compute == "fp16" && preset.framework == Framework::kMegatronCore);
}

// Accumulated in fp32 or in the type of the computation; what they are reduced in depends on the sharding
// (resolve_plan).
void resolve_gradients(ScenarioDraft& draft, const std::string& compute) {
  const Given& given = draft.message.training().precision();
  const FrameworkPreset& preset = preset_of(draft.read.scenario.framework);
  const std::string grads = given.has_grads()                       ? given.grads()
                            : keeps_half_gradients(preset, compute) ? compute
                                                                    : "fp32";
  const std::string reduce = given.has_grad_reduce() ? given.grad_reduce() : grads;
  draft.read.scenario.training.gradients = type_named(grads);
  if (grads != "fp32" && grads != compute) {
    draft.refuse("training.precision.grads", "gradients in " + grads + " of a computation in " + compute,
                 {"supported: grads: fp32, or compute: " + grads}, ErrorKind::kUnsupported);
  }
  draft.record("training.precision.grads", grads, std::string(preset.name) + " default");
  draft.record("training.precision.grad_reduce", reduce, "derived: as grads");
}

// The recipe that `compute` names or leaves to fp8_recipe; "" for none.
std::string resolve_recipe(ScenarioDraft& draft, const std::string& compute) {
  const Given& given = draft.message.training().precision();
  const bool fp4 = compute == "fp4" || compute == "nvfp4";
  const bool quantises = fp4 || compute == "fp8" || compute == "mxfp8";
  std::string stated = given.has_fp8_recipe() ? given.fp8_recipe() : "";
  if (!quantises || fp4 || compute == "mxfp8") {
    std::string own = !quantises ? "" : fp4 ? "nvfp4" : "mxfp8";
    if (!stated.empty() && stated != own) {
      draft.refuse("training.precision.fp8_recipe", "fp8_recipe " + stated + " with compute: " + compute,
                   {"compute: fp8", "leave out fp8_recipe"});
    }
    return own;
  }
  if (!stated.empty()) return stated;
  const std::string_view first = preset_of(draft.read.scenario.framework).matmul_recipes;
  return first.empty() ? "tensorwise" : std::string(first.substr(0, first.find(' ')));
}

MatmulRecipe recipe_named(const std::string& word) {
  for (const MatmulRecipe recipe : {MatmulRecipe::kDelayed, MatmulRecipe::kTensorwise, MatmulRecipe::kBlockwise,
                                    MatmulRecipe::kMxfp8, MatmulRecipe::kNvfp4}) {
    if (word == to_string(recipe)) return recipe;
  }
  return MatmulRecipe::kNone;
}

}  // namespace

void resolve_precision(ScenarioDraft& draft) {
  const Given& given = draft.message.training().precision();
  Training& training = draft.read.scenario.training;
  const std::string compute = given.has_compute() ? given.compute() : "bf16";
  draft.record("training.precision.compute", compute, "default");
  const std::string recipe = resolve_recipe(draft, compute);
  training.recipe = recipe_named(recipe);
  training.compute = type_named(compute);
  training.master_weights = training.compute != DType::kF32;
  if (training.recipe != MatmulRecipe::kNone) {
    training.first_last_layers_bf16 = given.first_last_layers_bf16();
    draft.record("training.precision.fp8_recipe", recipe,
                 compute == "fp8" ? std::string(preset_of(draft.read.scenario.framework).name) + " default"
                                  : "derived: compute");
    draft.record("training.precision.first_last_layers_bf16", bool_text(training.first_last_layers_bf16), "default");
  } else if (given.first_last_layers_bf16()) {
    draft.refuse("training.precision.first_last_layers_bf16", "there is no fp8 or fp4 to except layers from",
                 {"compute: fp8"});
  }
  resolve_gradients(draft, training.compute == DType::kBf16 ? "bf16" : compute);
}

}  // namespace stepcast::plan
