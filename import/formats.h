// The readers of single formats. Each puts what it understands into the draft; problems go there, too.
#pragma once

#include <string_view>

#include "config/document.h"
#include "import/draft.h"

namespace stepcast::imports {

// A launch script, or a file of arguments in YAML: Megatron's own, the model zoo's (MODEL_ARGS, ENV_VARS), or
// configuration classes with their fields' names.
void import_megatron(Draft& draft);
// Overrides "section.key=value" (also with + and ++ in front), or the YAML of a resolved configuration.
void import_megatron_bridge(Draft& draft);
// A TOML file, or a script with dotted flags that may name one.
void import_torchtitan(Draft& draft);
void import_nanotron(Draft& draft);
void import_deepspeed(Draft& draft);

// TOML as a tree. Throws Error (kInput) with the line of the fault.
config::Node read_toml(std::string_view text, const std::string& file);

bool is_yaml_file(std::string_view file);

}  // namespace stepcast::imports
