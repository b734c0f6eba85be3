// The calibrations known by name: what they describe, and every constant with its meaning, unit and source.
#pragma once

#include <string>
#include <vector>

#include "config/search.h"
#include "sim/cost/calibration.h"

namespace stepcast::report {

struct CalibrationEntry {
  std::string name;
  std::string file;  // for people: a path, or "calibrations/h100-default.yaml (built in)"
  sim::Calibration calibration;
};

struct UnreadableCalibration {
  std::string name;
  std::string problem;
};

struct CalibrationList {
  std::vector<CalibrationEntry> entries;          // by name
  std::vector<UnreadableCalibration> unreadable;  // files of the user with mistakes
};

// A preset, or a path. Throws Error (kInput): no such calibration, with the nearest names, or what is wrong in it.
CalibrationEntry read_calibration_entry(const std::string& name, const config::SearchPath& search);
// Every preset and every calibration on the search path.
CalibrationList read_all_calibrations(const config::SearchPath& search);

// What a meaning ends in: "... (unit: fraction)" is {"...", "fraction"}; without that the unit is empty.
struct MeaningAndUnit {
  std::string meaning;
  std::string unit;
};
MeaningAndUnit split_unit(const std::string& text);

// One line for each; every constant of one; both as JSON of schema stepcast/calibrations/1. End in a newline.
std::string calibrations_table(const CalibrationList& list);
std::string calibration_screen(const CalibrationEntry& entry);
std::string calibrations_json(const CalibrationList& list);

}  // namespace stepcast::report
