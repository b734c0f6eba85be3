// stepcast hardware: the clusters known by name, and where each of their figures comes from.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/scenario_options.h"
#include "report/hardware_output.h"

namespace stepcast::cli {
namespace {

struct HardwareOptions {
  std::string name;
  bool json = false;
};

constexpr const char* kHardwareExamples = R"(Examples
  stepcast hardware
  stepcast hardware hgx-h100-roce400-rail
  stepcast hardware gb200-nvl72 --json

Clusters are presets and the files of STEPCAST_PATH; scenarios/README.md says how to add one.)";

int hardware(const HardwareOptions& options) {
  const config::SearchPath search = search_path();
  if (options.name.empty()) {
    const report::HardwareList list = report::read_all_hardware(search);
    print(options.json ? report::hardware_json(list) : report::hardware_table(list));
    return 0;
  }
  const report::HardwareEntry entry = report::read_hardware(options.name, search);
  print(options.json ? report::hardware_json({{entry}, {}}) : report::hardware_screen(entry));
  return 0;
}

}  // namespace

Command hardware_command(CLI::App& parent) {
  const auto options = std::make_shared<HardwareOptions>();
  CLI::App* app = parent.add_subcommand("hardware", "clusters known by name; every figure of one with its source");
  app->add_option("NAME", options->name, "a cluster: a name or a file; all of them when left out");
  app->add_flag("--json", options->json, "one JSON object on standard output");
  app->footer(kHardwareExamples);
  return {app, [options] { return hardware(*options); }};
}

}  // namespace stepcast::cli
