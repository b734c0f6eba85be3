// Which shapes the lowering knows: everything else a model may be is refused by name, never lowered as something else.
//
// A new kind of layer is lowered first and then loses its line here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "models/architecture.h"

namespace stepcast::plan {

// What of a model is described and counted but not lowered yet, such as "mixture of experts (256, 8 a token)". Empty
// for a Llama-type decoder: pre-norm RMSNorm, grouped-query attention with rotary positions, SwiGLU, no biases.
std::vector<std::string> unsupported_parts(const models::Architecture& model);

// The refusal (kUnsupported) at `where`: what is not lowered and what would work; nothing for a supported model.
std::optional<Problem> refusal_of(const models::Architecture& model, const Location& where);

}  // namespace stepcast::plan
