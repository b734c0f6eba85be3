// stepcast calibrations: which constants there are, what each means and where it comes from.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/scenario_options.h"
#include "report/calibrations_report.h"

namespace stepcast::cli {
namespace {

struct CalibrationsOptions {
  std::string name;
  bool json = false;
};

constexpr const char* kCalibrationsExamples = R"(Examples
  stepcast calibrations
  stepcast calibrations h100-default
  stepcast calibrations my-machine.yaml --json

Calibrations are presets and the files of STEPCAST_PATH; --calibration NAME uses one.)";

int calibrations(const CalibrationsOptions& options) {
  const config::SearchPath search = search_path();
  if (options.name.empty()) {
    const report::CalibrationList list = report::read_all_calibrations(search);
    print(options.json ? report::calibrations_json(list) : report::calibrations_table(list));
    return 0;
  }
  const report::CalibrationEntry entry = report::read_calibration_entry(options.name, search);
  print(options.json ? report::calibrations_json({{entry}, {}}) : report::calibration_screen(entry));
  return 0;
}

}  // namespace

Command calibrations_command(CLI::App& parent) {
  const auto options = std::make_shared<CalibrationsOptions>();
  CLI::App* app = parent.add_subcommand("calibrations", "constants of the cost model; every one with its source");
  app->add_option("NAME", options->name, "a calibration: a name or a file; all of them when left out");
  app->add_flag("--json", options->json, "one JSON object on standard output");
  app->footer(kCalibrationsExamples);
  return {app, [options] { return calibrations(*options); }};
}

}  // namespace stepcast::cli
