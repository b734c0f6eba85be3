// Arguments before the parser sees them: commands of later releases, and misspelt commands.
#pragma once

#include <string>
#include <vector>

namespace stepcast::cli {

// Rewrites "help", "help COMMAND" to the parser's own form ("--help", "COMMAND --help"). `args` is without the
// program's name. Throws Error: kUnsupported for a command that is known but not there yet, kUsage with the nearest
// name for an unknown one.
std::vector<std::string> prepared_arguments(std::vector<std::string> args);

// For options that name a file: an empty name, as of an unset shell variable, is a mistake.
std::string refuse_empty(const std::string& value);

}  // namespace stepcast::cli
