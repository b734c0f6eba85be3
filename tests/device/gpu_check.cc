// gpu_check [--programs DIR] [--out DIR] [--budget SECONDS] [--skip SECTION[,SECTION]]: kernels, times, steps and
// communication of this machine, a short summary last. Exits 0 when nothing has failed, 1 when something has, 2 for
// bad arguments, 5 where there is no such machine. The table of times is DIR/calibration.tsv of --out.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "base/error.h"
#include "tests/device/kernel_checks.h"
#include "tests/device/machine.h"
#include "tests/device/step_checks.h"
#include "tests/device/timings.h"

namespace stepcast::device_check {
namespace {

struct Options {
  std::string programs = "tests/device/programs";
  std::string out;  // empty: no table
  double budget = 240;
  std::string skip;
};

Options options_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (value.empty()) throw Error(ErrorKind::kUsage, name + " needs a value");
    if (name == "--programs") {
      options.programs = value;
    } else if (name == "--out") {
      options.out = value;
    } else if (name == "--budget") {
      options.budget = std::strtod(value.c_str(), nullptr);
    } else if (name == "--skip") {
      options.skip = "," + value + ",";
    } else {
      throw Error(ErrorKind::kUsage, "unknown option " + name, {}, {"--programs, --out, --budget, --skip"});
    }
  }
  return options;
}

void write_table(const std::string& folder, const std::string& table, Outcome& outcome) {
  if (folder.empty()) return;
  const std::filesystem::path path = std::filesystem::path(folder) / "calibration.tsv";
  std::ofstream out(path);
  out << table;
  out.flush();
  if (out) {
    outcome.notes.push_back("table: " + path.string());
  } else {
    outcome.failures.push_back("cannot write " + path.string());
  }
}

// Runs a section within its share of the time that is left, unless it is to be skipped.
void add_section(std::vector<Outcome>& outcomes, const Options& options, const std::string& name,
                 const std::function<Outcome()>& section) {
  if (options.skip.find("," + name + ",") != std::string::npos) {
    Outcome skipped{.section = name};
    skipped.skipped.emplace_back("--skip");
    outcomes.push_back(skipped);
    return;
  }
  const auto begin = std::chrono::steady_clock::now();
  Outcome outcome;
  try {
    outcome = section();
  } catch (const Error& error) {
    outcome.section = name;
    outcome.failures.push_back(error.problems().front().message);
  }
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%s: %.1f s\n", name.c_str(), outcome.seconds);
  std::fflush(stdout);
  outcomes.push_back(outcome);
}

int check(const Options& options) {
  const Budget budget(options.budget);
  const std::unique_ptr<Machine> machine = open_machine();
  std::printf("%s\n", machine->name().c_str());
  std::vector<Outcome> outcomes;
  add_section(outcomes, options, "steps", [&] { return check_steps(*machine, options.programs, budget.part(0.25)); });
  add_section(outcomes, options, "communication", [&] {
    Outcome outcome{.section = "communication"};
    machine->check_communication(outcome);
    return outcome;
  });
  add_section(outcomes, options, "times", [&] {
    std::string table;
    Outcome outcome = time_kernels(*machine, budget.part(0.4), table);
    write_table(options.out, table, outcome);
    return outcome;
  });
  add_section(outcomes, options, "kernels", [&] { return check_kernels(*machine, budget.part(0.95)); });
  std::fputs(summary(outcomes, 8).c_str(), stdout);
  for (const Outcome& outcome : outcomes) {
    if (outcome.failed()) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace stepcast::device_check

int main(int argc, char** argv) {
  try {
    return stepcast::device_check::check(stepcast::device_check::options_of(argc, argv));
  } catch (const stepcast::Error& error) {
    std::fputs(error.what(), stderr);
    return error.exit_code();
  }
}
