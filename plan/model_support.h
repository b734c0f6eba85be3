// Which shapes the lowering knows: everything else a model may be is refused by name, never lowered as something else.
//
// A new kind of layer is lowered first and then loses its line here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "models/architecture.h"
#include "plan/scenario.h"

namespace stepcast::plan {

// What of a model is described and counted but not lowered yet, such as "mixture of experts (256, 8 a token)". Empty
// for dense decoders of the Llama and of the GPT kind. `sequence` (tokens) decides whether an attention window acts;
// without one it is taken to.
std::vector<std::string> unsupported_parts(const models::Architecture& model,
                                           std::optional<std::int64_t> sequence = std::nullopt);

// The refusal (kUnsupported) at `where`: what is not lowered and what would work; nothing for a supported model.
std::optional<Problem> refusal_of(const models::Architecture& model, std::int64_t sequence, const Location& where);

// Settings that are not lowered yet together with parts of the model, as problems (kUnsupported) at their fields.
std::vector<Problem> unsupported_settings(const Scenario& s);

}  // namespace stepcast::plan
