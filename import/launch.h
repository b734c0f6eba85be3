// Which command of a script starts the training, with which arguments, on how many devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "import/draft.h"
#include "import/shell.h"

namespace stepcast::imports {

struct Launch {
  std::string program;               // pretrain_gpt.py; empty where the command is arguments only
  std::vector<ShellWord> arguments;  // of the program
  int line = 0;
  std::optional<std::int64_t> devices;  // what the launcher or Slurm starts
  std::string devices_origin;
  std::vector<std::string> devices_missing;  // variables without a value that would say
};

// The command with the most "--" arguments for which `counts` holds. Other commands that start a program of the same
// kind are told in the draft. A problem in the draft, and nothing, when no command has any.
std::optional<Launch> find_launch(const ShellScript& script, bool (*counts)(const std::string& argument), Draft& draft);

}  // namespace stepcast::imports
