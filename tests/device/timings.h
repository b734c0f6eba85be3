// How fast the machine's kernels are on a layer's work, beside the fastest copy and matmul it has been seen to do, as a
// table that constants of a calibration can be fitted to.
#pragma once

#include <string>

#include "tests/device/machine.h"
#include "tests/device/section.h"

namespace stepcast::device_check {

// Fails where a kernel claims to be faster than half again the ceilings: such a figure is none. `table` gets the text
// of the calibration table: comment lines with # (machine, ceilings), then one line for each kernel and storage type.
Outcome time_kernels(Machine& machine, const Budget& budget, std::string& table);

}  // namespace stepcast::device_check
