// The subcommands: each adds its options to the parser and returns what to call when it was chosen.
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace stepcast::cli {

struct Launch;

struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;  // exit code
};

Command simulate_command(CLI::App& parent);
Command check_command(CLI::App& parent);
Command run_command(CLI::App& parent, const Launch& launch);
Command dump_command(CLI::App& parent);
Command coll_command(CLI::App& parent);
Command hardware_command(CLI::App& parent);
Command models_command(CLI::App& parent);
Command import_command(CLI::App& parent);
Command sweep_command(CLI::App& parent);
Command diff_command(CLI::App& parent);
Command explain_command(CLI::App& parent);
Command calibrate_command(CLI::App& parent);
Command backtest_command(CLI::App& parent);
Command calibrations_command(CLI::App& parent);
Command doctor_command(CLI::App& parent);

// Writes all of `text` to stdout and flushes. Throws Error (kEnvironment) when it cannot, except to a closed pipe.
void print(const std::string& text);

}  // namespace stepcast::cli
