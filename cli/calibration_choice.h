// Which calibration a command uses.
#pragma once

#include <string>

#include "base/error.h"
#include "config/search.h"
#include "sim/cost/calibration.h"

namespace stepcast::cli {

struct CalibrationChoice {
  std::string name;    // a preset or a file; empty or "auto": by device
  std::string device;  // H100-SXM-80GB
  std::string beside;  // the file that names it: relative paths start at its folder; empty: at the current one
  Location where;      // of the name
};

// By device: NAME-default for its first word, else a preset that begins with that word and is for the device, else one
// that describes it first, else any that is for it. Throws Error (kInput) when there is none, or what the reader
// throws.
sim::Calibration choose_calibration(const CalibrationChoice& choice, const config::SearchPath& search);

}  // namespace stepcast::cli
