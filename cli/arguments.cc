// The vocabulary of commands, of this release and of later ones.
#include "cli/arguments.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "config/text.h"

namespace stepcast::cli {
namespace {

const std::vector<std::string>& commands() {
  static const std::vector<std::string> names = {"simulate",  "check",    "sweep",        "diff",   "run",    "dump",
                                                 "coll",      "hardware", "calibrations", "models", "import", "explain",
                                                 "calibrate", "backtest", "doctor",       "help"};
  return names;
}

bool is_later(std::string_view name) {
  constexpr std::string_view kLater[] = {"compare"};
  return std::find(std::begin(kLater), std::end(kLater), name) != std::end(kLater);
}

void require_command(const std::string& name) {
  if (name == "validate") return;  // another name of backtest
  if (std::find(commands().begin(), commands().end(), name) != commands().end()) return;
  if (is_later(name)) throw Error(ErrorKind::kUnsupported, "the command '" + name + "' is known, not supported yet");
  std::vector<std::string> help;
  const std::vector<std::string> nearest = config::nearest_names(name, commands(), 1);
  if (!nearest.empty()) help.push_back("did you mean " + nearest.front() + "?");
  help.push_back("commands: " + config::join(commands()));
  throw Error(ErrorKind::kUsage, "unknown command '" + name + "'", {}, help);
}

}  // namespace

std::vector<std::string> prepared_arguments(std::vector<std::string> args) {
  if (args.empty() || args[0].starts_with('-')) return args;
  if (args[0] == "help") {
    if (args.size() == 1) return {"--help"};
    if (args[1] == "exit-codes") return args;
    require_command(args[1]);
    if (args[1] == "help") return {"--help"};
    return {args[1], "--help"};
  }
  require_command(args[0]);
  return args;
}

std::string refuse_empty(const std::string& value) { return value.empty() ? "needs a file name" : ""; }

}  // namespace stepcast::cli
