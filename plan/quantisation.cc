// The table of recipes.
#include "plan/quantisation.h"

#include "base/check.h"
#include "plan/stage_parameters.h"

namespace stepcast::plan {

using program::DType;

std::optional<Quantisation> quantisation_of(MatmulRecipe recipe, std::string_view architecture) {
  const bool last_extent_only = architecture == "sm89" || architecture == "sm90";
  switch (recipe) {
    case MatmulRecipe::kNone:
      return std::nullopt;
    case MatmulRecipe::kDelayed:
      return Quantisation{.type = DType::kF8, .transposed = last_extent_only, .delayed = true};
    case MatmulRecipe::kTensorwise:
      return Quantisation{.type = DType::kF8, .transposed = last_extent_only, .measures = true};
    case MatmulRecipe::kBlockwise:
      return Quantisation{.type = DType::kF8Block, .by_direction = true, .transposed = last_extent_only};
    case MatmulRecipe::kMxfp8:
      return Quantisation{.type = DType::kMxF8, .by_direction = true};
    case MatmulRecipe::kNvfp4:
      return Quantisation{.type = DType::kNvF4, .by_direction = true, .transposed = true, .measures = true};
  }
  CHECK(false, static_cast<int>(recipe));
}

bool quantises_layer(const Scenario& s, std::int64_t layer) {
  if (s.training.recipe == MatmulRecipe::kNone) return false;
  const bool outermost = layer == 0 || layer == s.model.layers - 1;
  return !(s.training.first_last_layers_bf16 && outermost);
}

bool keeps_quantised_weights(const Scenario& s) { return sharding_of(s) != Sharding::kParameters; }

}  // namespace stepcast::plan
