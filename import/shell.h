// Reads a shell script far enough to know the commands it would start, and never executes any of it.
//
// Read: quotes, comments, line continuations, assignments and arrays (also with += and after export, declare, local,
// readonly), $VAR, ${VAR}, ${VAR:-word} and its relatives -, :=, =, :+, +, ${ARRAY[@]}, ${#ARRAY[@]}, $(( )),
// redirections, pipelines, here-documents (skipped).
//
// Branches: one whose test can be told (shell_conditions.h) is read or skipped. One that may run puts what it sets in
// doubt, under the name of the variable that would tell.
//
// Not read, and therefore unknown: the output of a command, a variable that is set in a loop or a case, other
// expansions such as ${VAR%suffix}, the script's arguments $1 to $9; "$@" is empty. What is unknown is named, so that a
// definition from outside can settle it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/shell_text.h"

namespace stepcast::imports {

struct ShellCommand {
  std::vector<ShellWord> words;  // assignments before the command left out
  int line = 0;
};

struct ShellScript {
  std::vector<ShellCommand> commands;
  std::vector<std::pair<std::string, ShellWord>> environment;  // exported, or set for a command; in order
  std::vector<ShellWord> slurm;                                // words of "#SBATCH ..." lines
  ShellVariables variables{{}};                                // as the script's end leaves them
};

// `file` names the script in messages. Throws Error (kInput) for an unfinished quote, array or expansion, and for
// expansions that nest or grow without bound.
ShellScript read_shell(std::string_view text, const std::string& file,
                       const std::map<std::string, std::string>& defines);

// The words of a text as bash would split it, without expanding anything: for "#SBATCH ..." lines.
std::vector<ShellWord> split_words(const ShellWord& text);

}  // namespace stepcast::imports
