// Glue only: every step is another folder's.
#include "cli/pipeline.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/interrupt.h"
#include "cli/remedies.h"
#include "config/search.h"
#include "plan/lowering.h"
#include "report/file.h"
#include "report/published_runs.h"
#include "sim/cost/analytic.h"
#include "sim/cost/calibration_reader.h"

namespace stepcast::cli {
namespace {

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string first_word(const std::string& name) { return lower_case(name.substr(0, name.find('-'))); }

// Preset names are sorted, so a tie is broken the same way everywhere.
std::string automatic_calibration(const plan::Scenario& scenario, const config::SearchPath& search) {
  const std::string device = first_word(scenario.cluster.node.device.name);
  const std::vector<std::string> names = config::preset_names(config::PresetKind::kCalibration, search);
  std::optional<std::string> best;
  for (const std::string& name : names) {
    if (first_word(name) != device) continue;
    if (!best || name == device + "-default") best = name;
  }
  if (best) return *best;
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  throw Error(ErrorKind::kInput, "no calibration is known for device " + scenario.cluster.node.device.name,
              {"", 0, "calibration"},
              {"name one with --calibration; known: " + (known.empty() ? std::string("none") : known)});
}

// The setting of the command line that names the calibration: the last one counts.
std::optional<config::Setting> calibration_setting(const config::ScenarioSource& source) {
  std::optional<config::Setting> last;
  for (const config::Setting& setting : source.settings) {
    if (setting.field == "calibration") last = setting;
  }
  return last;
}

std::vector<std::string> calibration_warnings(const plan::Scenario& scenario, const sim::Calibration& calibration) {
  const std::string& device = scenario.cluster.node.device.name;
  if (scenario.calibration == "auto" || first_word(calibration.name) == first_word(device)) return {};
  return {"W301 calibration " + calibration.name + " is named for another device than " + device +
          ": its constants may be far off"};
}

}  // namespace

Prepared prepare(const config::ScenarioSource& source) {
  Prepared prepared;
  prepared.read = plan::read_scenario(source);
  for (const std::string& note : prepared.read.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  plan::throw_if_violated(prepared.read);
  throw_if_interrupted();
  prepared.program = std::make_unique<program::CheckedProgram>(plan::lower(prepared.read.scenario));
  throw_if_interrupted();
  return prepared;
}

sim::Calibration find_calibration(const plan::Scenario& scenario, const config::ScenarioSource& source) {
  const std::string name =
      scenario.calibration == "auto" ? automatic_calibration(scenario, source.search) : scenario.calibration;
  const std::optional<config::Setting> setting = calibration_setting(source);
  const std::string beside = setting ? "" : source.file;
  const Location where{setting ? setting->origin : source.file, 0, "calibration"};
  const config::FoundFile found =
      config::find_file(config::PresetKind::kCalibration, name, beside, source.search, where);
  sim::Calibration calibration = sim::read_calibration(found.text, found.file);
  if (calibration.name.empty()) calibration.name = found.name;
  return calibration;
}

sim::Prediction predict(const Prepared& prepared, const sim::Calibration& calibration, const sim::SimOptions& options) {
  const sim::AnalyticCostModel costs(prepared.scenario().cluster, calibration);
  sim::Prediction prediction = sim::simulate(*prepared.program, costs, options);
  throw_if_interrupted();
  return prediction;
}

report::SimulationReport report_of(const Prepared& prepared, const config::ScenarioSource& source,
                                   const sim::Calibration& calibration, const sim::Prediction& prediction) {
  std::vector<std::string> warnings = prepared.read.warnings;
  for (std::string& warning : calibration_warnings(prepared.scenario(), calibration)) {
    warnings.push_back(std::move(warning));
  }
  report::SimulationReport report = report::make_simulation_report(
      {.scenario = prepared.scenario(),
       .program = *prepared.program,
       .prediction = prediction,
       .calibration = {calibration.name, static_cast<std::int64_t>(calibration.constants.size()), calibration.stack},
       .warnings = std::move(warnings),
       .published = report::published_runs()});
  if (report.memory.verdict == report::Verdict::kOom) report.remedies = memory_remedies(prepared.scenario(), source);
  return report;
}

void require_outputs(const std::vector<std::string>& paths, const config::ScenarioSource& source) {
  std::vector<std::filesystem::path> taken;
  std::error_code code;
  if (!source.file.empty()) taken.push_back(std::filesystem::weakly_canonical(source.file, code));
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    const std::filesystem::path real = std::filesystem::weakly_canonical(path, code);
    if (std::find(taken.begin(), taken.end(), real) != taken.end()) {
      throw Error(ErrorKind::kUsage, "the output " + path + " is also the scenario or another output");
    }
    taken.push_back(real);
    report::require_writable(path);
  }
}

}  // namespace stepcast::cli
