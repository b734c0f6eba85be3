// Scenario texts for tests: written to a scratch folder and read from there.
#pragma once

#include <string>
#include <vector>

#include "plan/scenario_reader.h"
#include "tests/config/scratch_folder.h"

namespace stepcast::plan {

// Line 1 is framework; the model is four layers of 8 heads, the plan one of four ranks.
inline constexpr const char* kTiny = R"(framework: plain
model: {num_hidden_layers: 4, hidden_size: 64, intermediate_size: 192, num_attention_heads: 8,
        num_key_value_heads: 4, vocab_size: 256}
cluster: local-cpu
gpus: 4
training: {sequence_length: 32, global_batch_size: 8, precision: fp32}
plan:
  tp: 2
  pp: 2
)";

// For recipes of 8- and 4-bit matmuls, with tensor-parallel communication beside them.
inline constexpr const char* kQuantisedOverlap = R"(framework: megatron-core
model: {num_hidden_layers: 2, hidden_size: 1024, intermediate_size: 2048, num_attention_heads: 8,
        num_key_value_heads: 8, vocab_size: 1024}
cluster: hgx-b200
gpus: 2
training: {sequence_length: 512, global_batch_size: 1}
plan: {tp: 2, overlap: {tp_comm: true}}
)";

inline ReadScenario read_text(const std::string& text, const std::vector<std::string>& settings = {}) {
  const ScratchFolder folder;
  config::ScenarioSource source;
  source.file = folder.write("run.yaml", text);
  for (const std::string& setting : settings) source.settings.push_back(config::parse_setting(setting));
  return read_scenario(source);
}

inline ReadScenario read_tiny(const std::vector<std::string>& settings) { return read_text(kTiny, settings); }

// The problems of reading, or the rules the scenario breaks; none when it is valid.
inline std::vector<Problem> problems_of(const std::string& text, const std::vector<std::string>& settings = {}) {
  try {
    return read_text(text, settings).violations;
  } catch (const Error& fault) {
    return fault.problems();
  }
}

// The exit code of a command that needs a valid scenario; 0 when it is one.
inline int exit_code_of(const std::string& text, const std::vector<std::string>& settings = {}) {
  const std::vector<Problem> problems = problems_of(text, settings);
  return problems.empty() ? 0 : Error(problems).exit_code();
}

// The resolved value of a field with its origin: "2 # run.yaml:8".
inline const ConfigValue* find_value(const ReadScenario& read, const std::string& field) {
  for (const ConfigValue& value : read.values) {
    if (value.field == field) return &value;
  }
  return nullptr;
}

}  // namespace stepcast::plan
