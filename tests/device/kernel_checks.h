// Every kernel of the machine against the reference kernel in f64, on the cases and bounds of tests/kernels: random
// operands, outputs poisoned with NaN.
#pragma once

#include "tests/device/machine.h"
#include "tests/device/section.h"

namespace stepcast::device_check {

// Kinds that exec runs by a kernel and that no case covers are named as skipped.
Outcome check_kernels(Machine& machine, const Budget& budget);

}  // namespace stepcast::device_check
