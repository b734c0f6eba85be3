// From arguments to an exit code.
#pragma once

#include "cli/backends.h"

namespace stepcast::cli {

inline constexpr int kInternalCode = 70;

// Runs what the arguments ask for. Every error ends here: user errors are printed on stderr and give their exit code
// (base/error.h), a broken invariant gives 70, an interrupt 130.
int run_command_line(const Launch& launch);

}  // namespace stepcast::cli
