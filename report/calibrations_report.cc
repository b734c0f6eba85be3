#include "report/calibrations_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "report/json.h"
#include "report/text.h"
#include "sim/cost/calibration_reader.h"

namespace stepcast::report {
namespace {

constexpr std::string_view kUnit = " (unit: ";

Json constants_json(const sim::Calibration& calibration) {
  Json constants = Json::array();
  for (const sim::CalibrationConstant& c : calibration.constants) {
    const MeaningAndUnit text = split_unit(c.meaning);
    constants.push_back(
        {{"name", c.name}, {"value", c.value}, {"unit", text.unit}, {"meaning", text.meaning}, {"source", c.source}});
  }
  return constants;
}

}  // namespace

CalibrationEntry read_calibration_entry(const std::string& name, const config::SearchPath& search) {
  const config::FoundFile found =
      config::find_file(config::PresetKind::kCalibration, name, "", search, {"command line", 0, "NAME"});
  return {found.name, found.file, sim::read_calibration(found.text, found.file)};
}

CalibrationList read_all_calibrations(const config::SearchPath& search) {
  CalibrationList list;
  for (const std::string& name : config::preset_names(config::PresetKind::kCalibration, search)) {
    try {
      list.entries.push_back(read_calibration_entry(name, search));
    } catch (const Error& error) {
      list.unreadable.push_back({name, error.problems().front().message});
    }
  }
  return list;
}

MeaningAndUnit split_unit(const std::string& text) {
  const std::size_t at = text.rfind(kUnit);
  if (at == std::string::npos || text.back() != ')') return {text, ""};
  const std::size_t begin = at + kUnit.size();
  return {text.substr(0, at), text.substr(begin, text.size() - begin - 1)};
}

std::string calibrations_table(const CalibrationList& list) {
  std::size_t width = 11;
  for (const CalibrationEntry& entry : list.entries) width = std::max(width, entry.name.size());
  std::string text = fmt::format("{:<{}}  constants  devices and stack\n", "calibration", width);
  for (const CalibrationEntry& entry : list.entries) {
    const sim::Calibration& c = entry.calibration;
    const std::string label = fmt::format("{:<{}}  {:>9}  ", entry.name, width, c.constants.size());
    text += wrapped(label, label.size(), joined(c.devices, ", ") + ": " + c.stack);
  }
  for (const UnreadableCalibration& file : list.unreadable) {
    text += wrapped(file.name + " is unreadable:", 2, file.problem);
  }
  return text + "\nstepcast calibrations NAME shows every constant of one with its meaning and source.\n";
}

std::string calibration_screen(const CalibrationEntry& entry) {
  const sim::Calibration& c = entry.calibration;
  std::string text = fmt::format("{}: {} constants, {}\n", entry.name, c.constants.size(), entry.file);
  text += wrapped("devices", kLabelWidth, joined(c.devices, ", "));
  text += wrapped("stack", kLabelWidth, c.stack) + "\n";
  std::size_t width = 8;
  for (const sim::CalibrationConstant& constant : c.constants) width = std::max(width, constant.name.size());
  for (const sim::CalibrationConstant& constant : c.constants) {
    const MeaningAndUnit meaning = split_unit(constant.meaning);
    const std::string value = meaning.unit == "time" || meaning.unit == "bytes" || meaning.unit.empty()
                                  ? constant.value
                                  : constant.value + " " + meaning.unit;
    text += wrapped(fmt::format("{:<{}}  {:<16}", constant.name, width, value), width + 19, meaning.meaning);
    text += wrapped("", width + 19, "source: " + constant.source);
  }
  return text;
}

std::string calibrations_json(const CalibrationList& list) {
  Json calibrations = Json::array();
  for (const CalibrationEntry& entry : list.entries) {
    calibrations.push_back({{"name", entry.name},
                            {"file", entry.file},
                            {"devices", entry.calibration.devices},
                            {"stack", entry.calibration.stack},
                            {"constants", constants_json(entry.calibration)}});
  }
  Json unreadable = Json::array();
  for (const UnreadableCalibration& file : list.unreadable) {
    unreadable.push_back({{"name", file.name}, {"problem", file.problem}});
  }
  return to_text(
      Json{{"schema", "stepcast/calibrations/1"}, {"calibrations", calibrations}, {"unreadable", unreadable}});
}

}  // namespace stepcast::report
