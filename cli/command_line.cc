// Builds the parser, runs the chosen command, and is the one place where errors become exit codes.
#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <sstream>
#include <string_view>

#include "base/check.h"
#include "base/error.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/interrupt.h"
#include "report/error_output.h"

namespace stepcast::cli {
namespace {

void complain(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  if (text.empty() || text.back() != '\n') std::fputc('\n', stderr);
}

// The parser throws for --help and --version too; those print on stdout and succeed.
int finish_parse_error(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    std::ostringstream text;
    const int code = app.exit(error, text, text);
    print(text.str());
    return code;
  }
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const std::string command = chosen.empty() ? "stepcast" : "stepcast " + chosen[0]->get_name();
  throw Error(ErrorKind::kUsage, error.what(), {}, {"see " + command + " --help"});
}

// Whether standard output is to hold JSON, be it an answer or why there is none. Asked of the arguments themselves,
// since they may be what is wrong.
bool wants_json(const Launch& launch) {
  for (int i = 1; i < launch.argc; ++i) {
    const std::string_view argument = launch.argv[i];
    if (argument == "--json" || argument == "--json=true" || argument == "--format=json") return true;
    if (argument == "json" && std::string_view(launch.argv[i - 1]) == "--format") return true;
  }
  return false;
}

int fail(const Error& error, bool json) {
  complain(error.what());
  if (json) std::fputs(report::error_json(error).c_str(), stdout);
  return error.exit_code();
}

int dispatch(const Launch& launch) {
  std::vector<std::string> args =
      prepared_arguments({launch.argv + std::min(launch.argc, 1), launch.argv + launch.argc});
  if (args.empty()) {
    print(std::string(orientation()));
    return 0;
  }
  if (args[0] == "help") {
    print(std::string(exit_codes()));
    return 0;
  }
  CLI::App app("stepcast: simulates and executes training steps of transformers on many accelerators", "stepcast");
  app.set_version_flag("--version", "stepcast " STEPCAST_VERSION);
  app.require_subcommand(1);
  app.footer("stepcast help exit-codes lists the exit codes.");
  const Command commands[] = {simulate_command(app),     check_command(app),    run_command(app, launch),
                              dump_command(app),         coll_command(app),     hardware_command(app),
                              sweep_command(app),        diff_command(app),     explain_command(app),
                              calibrations_command(app), import_command(app),   models_command(app),
                              calibrate_command(app),    backtest_command(app), doctor_command(app)};
  try {
    std::reverse(args.begin(), args.end());  // the parser takes a stack
    app.parse(args);
  } catch (const CLI::ParseError& error) {
    return finish_parse_error(app, error);
  }
  for (const Command& command : commands) {
    if (command.app->parsed()) return command.run();
  }
  CHECK(false, "a required subcommand is missing");
}

}  // namespace

void print(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written && errno != EPIPE) {
    throw Error(ErrorKind::kEnvironment, std::string("cannot write to standard output: ") + std::strerror(errno));
  }
}

int run_command_line(const Launch& launch) {
  handle_interrupts();
  const bool json = wants_json(launch);
  try {
    return dispatch(launch);
  } catch (const Error& error) {
    return fail(error, json);
  } catch (const Interrupted&) {
    complain("interrupted");
    return kInterruptedCode;
  } catch (const std::bad_alloc&) {
    return fail(Error(ErrorKind::kEnvironment, "out of memory on this machine"), json);
  } catch (const std::exception& error) {
    complain(std::string("this is a bug in stepcast, please report it with the command line and the scenario: ") +
             error.what());
    return kInternalCode;
  }
}

}  // namespace stepcast::cli
