// `models` on screen and as JSON: the models known by name, or everything about one.
#pragma once

#include <string>

#include "report/models_report.h"

namespace stepcast::report {

// One line for each model.
std::string models_table(const ModelList& list);
// Shape, parameters by part and FLOPs of one model.
std::string model_screen(const ModelEntry& entry);

// Schema stepcast/models/1: {schema, models [{name, family, file, layers, layer_kinds [{mixer, feed_forward, layers}],
// hidden, heads, kv_heads, head_dim, ffn, vocab, tied_embeddings, norm, positions, activation, gated_mlp, window,
// experts, latent_attention, mtp_layers, parameters {total, active, active_without_input_table, matmul, embedding,
// positions, mixers, feed_forward, experts, norms, head, mtp}, flops_per_token [{sequence, full, causal}],
// not_lowered, ignored_keys}], unreadable [{name, problem}]}. experts and latent_attention are null where there are
// none; parameters count elements, `full` and `causal` FLOPs of forward and backward.
std::string models_json(const ModelList& list);

}  // namespace stepcast::report
