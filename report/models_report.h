// The models known by name: the shape, the exact counts and what of each cannot be simulated yet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/search.h"
#include "models/architecture.h"

namespace stepcast::report {

struct ModelFlops {
  std::int64_t sequence = 0;  // tokens
  models::FlopsPerToken per_token;
};

struct ModelEntry {
  std::string name;
  std::string file;  // a path, or "models/llama-3.1-8b.json (built in)"
  models::Architecture shape;
  models::ParameterCount parameters;
  std::vector<ModelFlops> flops;          // at some usual sequence lengths
  std::vector<std::string> not_lowered;   // empty: simulate and run take it
  std::vector<std::string> ignored_keys;  // of the file, without influence
};

struct UnreadableModel {
  std::string name;
  std::string problem;
};

struct ModelList {
  std::vector<ModelEntry> entries;          // by name
  std::vector<UnreadableModel> unreadable;  // files of the user with mistakes, by name
};

// A preset, or a path of a config.json or params.json. Throws Error: no such model (kInput, with the nearest names),
// what is wrong in its file (kInput) or not described (kUnsupported).
ModelEntry read_model(const std::string& name, const config::SearchPath& search);
// Every preset and every model file on the search path.
ModelList read_all_models(const config::SearchPath& search);

}  // namespace stepcast::report
