// Commands inside a command: the text of `bash -c "..."`, and what ssh or eval put together from several words.
//
// Read as a shell does that starts with the script's variables: quotes, \, comments, $VAR and ${VAR:-text},
// redirections, and ; & | ( ) and line ends, which end a command. What only a run would tell is unknown, by name.
#pragma once

#include <string>
#include <vector>

#include "import/shell.h"

namespace stepcast::imports {

// A command with its nested commands opened up, each behind the words that start it.
struct OpenedCommand {
  std::vector<std::vector<ShellWord>> commands;
  // Flags behind `bash -c "..."`: bash gives them to the text as $0, $1, ..., which the text does not use.
  std::vector<ShellWord> lost;
};
OpenedCommand open_command(const ShellCommand& command, const ShellVariables& variables);

}  // namespace stepcast::imports
