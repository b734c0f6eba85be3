// Reads a Hugging Face config.json of the Llama 2 and 3 families (model_type llama) into an Architecture.
//
// Keys and defaults as in transformers' LlamaConfig: no num_key_value_heads means one per attention head, no head_dim
// means hidden_size / num_attention_heads, no tie_word_embeddings means untied. A null counts as absent.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/architecture.h"

namespace stepcast::models {

// The model is named after the file (llama-3.1-8b.json), or after the folder of a file called config.json. padded_vocab
// is set to vocab: padding belongs to the plan. Dtypes are ignored: precision belongs to the training recipe.
//
// `file_name` is for messages and the name only; nothing is opened. `ignored`, if given, receives the keys that have no
// influence on the result, in file order, printable.
//
// Throws Error with every problem found: kInput for text that is not JSON (NaN and Infinity are not), duplicate,
// missing or ill-typed keys and shapes that problems_of() refuses; kUnsupported for other model types, biases and
// activations.
Architecture parse_hf_config(std::string_view text, const std::string& file_name,
                             std::vector<std::string>* ignored = nullptr);

}  // namespace stepcast::models
