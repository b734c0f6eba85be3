// Where a rank's step went: each picosecond is exactly one of compute, optimizer, exposed communication, host or
// bubble.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "base/units.h"
#include "sim/engine/engine.h"
#include "sim/prediction.h"

namespace stepcast::sim {

// Exposed time of a rank by lane and price number (Workload::lanes, prices). Unit: picoseconds.
using ExposedByLane = std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t>;

// The parts of one simulated rank's step of length `step`; they sum to it. A gap of the compute stream is explained by
// walking back from the op that ended it: what it waited for last, what that waited for, and so on, down to the gap's
// start. Bytes in flight are exposed, by the kind of op; waiting for a partner to start is bubble.
TimeParts account(const Workload& w, const AloneTimes& alone, const Timeline& times, std::uint32_t rank, Duration step,
                  ExposedByLane* exposed);

}  // namespace stepcast::sim
