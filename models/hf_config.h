// Reads the file that describes a model, a Hugging Face config.json or Meta's params.json, into an Architecture.
//
// model_type decides how keys are called, what absent ones mean (as the type's config class in transformers has it) and
// which variants there are; families.h lists the types. A null counts as absent unless a class tells the two apart. A
// params.json has no model_type but dim and n_layers: a Llama, whose embeddings are untied since no key says so.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/architecture.h"

namespace stepcast::models {

// The model is named after the file (llama-3.1-8b.json), or after the folder of a file called config.json or
// params.json. padded_vocab is set to vocab: padding belongs to the plan. Dtypes are ignored: precision belongs to the
// training recipe.
//
// `file_name` is for messages and the name only; nothing is opened. `ignored`, if given, receives the keys that have no
// influence on the result, in file order, printable.
//
// Throws Error with every problem found: kInput for text that is not JSON (NaN and Infinity are not), duplicate,
// missing or ill-typed keys and shapes that problems_of() refuses; kUnsupported for other model types and variants of
// them that are not described.
Architecture parse_hf_config(std::string_view text, const std::string& file_name,
                             std::vector<std::string>* ignored = nullptr);

}  // namespace stepcast::models
