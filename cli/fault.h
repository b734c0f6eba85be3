// Faults made on purpose, so that one can see what a failure of a real run looks like: `run --inject RANK:WHEN:KIND`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "program/program.h"

namespace stepcast::cli {

enum class FaultKind : std::uint8_t {
  kThrow,  // a kernel fails with an exception
  kKill,   // the rank's process is killed: SIGKILL
  kStop,   // the rank's process is stopped: SIGSTOP
  kHang,   // a kernel never ends
  kSlow,   // each kernel from then on takes 20 ms longer
};

struct Fault {
  std::size_t rank = 0;
  std::optional<std::int64_t> step;  // at the rank's first kernel of this step
  double after_s = 0;                // else at the first kernel so long after the rank's first one
  FaultKind kind = FaultKind::kThrow;
};

// "2:step3:kill", "0:1.5s:throw". Throws Error (kUsage) for other forms.
Fault parse_fault(const std::string& text);

// Makes the fault when it is time, once (kSlow: from then on), in the thread that calls it before a kernel of a rank.
std::function<void(program::RankId, std::int64_t step)> fault_maker(const Fault& fault);

}  // namespace stepcast::cli
