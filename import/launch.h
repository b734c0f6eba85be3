// Which command of a script starts the training, with which arguments, on how many devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "import/draft.h"
#include "import/shell.h"

namespace stepcast::imports {

// A variable without a value that would tell a number of devices.
struct MissingCount {
  std::string variable;
  std::string option;
  int line = 0;
};

// What the launcher or Slurm starts.
struct StatedDevices {
  std::optional<std::int64_t> count;
  std::string origin;
  std::vector<MissingCount> missing;
  std::string assumed;  // what the count rests on that nothing states
};

struct Launch {
  std::string program;               // pretrain_gpt.py; empty where the command is arguments only
  std::vector<ShellWord> arguments;  // of the program
  int line = 0;
  StatedDevices devices;
};

// The command with the most "--" arguments for which `counts` holds. Other commands that start a program of the same
// kind are told in the draft. A problem in the draft, and nothing, when no command has any.
std::optional<Launch> find_launch(const ShellScript& script, bool (*counts)(const std::string& argument), Draft& draft);

// Draft::take_gpus for what a launch states: asks for the variables that are missing.
std::int64_t take_devices(const StatedDevices& stated, Draft& draft, std::vector<std::string> help);

}  // namespace stepcast::imports
