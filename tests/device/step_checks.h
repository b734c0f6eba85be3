// Steps of committed Programs against committed losses.
#pragma once

#include <string>

#include "tests/device/machine.h"
#include "tests/device/section.h"

namespace stepcast::device_check {

// What NAME.losses says: lines of "key value..." and comments with #.
struct Expected {
  std::string fingerprint;     // of the Program beside it, in hexadecimal
  double bound = 0;            // of the relative difference
  std::vector<double> losses;  // of steps 1 on
};

// Throws Error (kInput) where the text is none.
Expected parse_expected(const std::string& text, const std::string& file_name);

// Every NAME.txt of `folder`, a Program as `stepcast dump` writes it, with its NAME.losses.
Outcome check_steps(Machine& machine, const std::string& folder, const Budget& budget);

}  // namespace stepcast::device_check
