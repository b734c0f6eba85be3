#include "cli/calibration_choice.h"

#include <algorithm>
#include <cctype>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "config/text.h"
#include "sim/cost/calibration_reader.h"

namespace stepcast::cli {
namespace {

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string first_word(const std::string& name) { return lower_case(name.substr(0, name.find('-'))); }

sim::Calibration read_calibration(const std::string& name, const std::string& beside, const config::SearchPath& search,
                                  const Location& where) {
  const config::FoundFile found = config::find_file(config::PresetKind::kCalibration, name, beside, search, where);
  sim::Calibration calibration = sim::read_calibration(found.text, found.file);
  if (calibration.name.empty()) calibration.name = found.name;
  return calibration;
}

// Presets in the order in which they are tried: NAME-default, others whose name begins with the device's first word,
// the rest. Names are sorted, so a tie is broken the same way everywhere.
std::vector<std::string> calibration_names(const std::string& device, const config::SearchPath& search) {
  std::vector<std::string> names = config::preset_names(config::PresetKind::kCalibration, search);
  const std::string word = first_word(device);
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    const auto place = [&](const std::string& name) {
      return name == word + "-default" ? 0 : first_word(name) == word ? 1 : 2;
    };
    return place(a) < place(b);
  });
  return names;
}

sim::Calibration automatic_calibration(const std::string& device, const config::SearchPath& search) {
  const std::vector<std::string> names = calibration_names(device, search);
  std::optional<sim::Calibration> relative;
  std::exception_ptr unreadable;
  for (const std::string& name : names) {
    const bool is_named = first_word(name) == first_word(device);
    try {
      sim::Calibration calibration = read_calibration(name, "", search, {"", 0, "calibration"});
      if (is_named ? sim::is_for(calibration, device) : sim::is_first_for(calibration, device)) return calibration;
      if (!relative && sim::is_for(calibration, device)) relative = std::move(calibration);
    } catch (const Error&) {
      if (is_named) throw;
      if (!unreadable) unreadable = std::current_exception();
    }
  }
  if (relative) return *std::move(relative);
  if (unreadable) std::rethrow_exception(unreadable);
  throw Error(ErrorKind::kInput, "no calibration is known for device " + device, {"", 0, "calibration"},
              {"name one with --calibration; known: " + (names.empty() ? std::string("none") : config::join(names))});
}

}  // namespace

sim::Calibration choose_calibration(const CalibrationChoice& choice, const config::SearchPath& search) {
  if (choice.name.empty() || choice.name == "auto") return automatic_calibration(choice.device, search);
  return read_calibration(choice.name, choice.beside, search, choice.where);
}

}  // namespace stepcast::cli
