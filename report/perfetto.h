// A trace as a Perfetto file (ui.perfetto.dev): one process per track, one thread per stream in use, one slice per op,
// one counter per memory class.
//
// Slices of a stream never overlap, streams being in-order queues, so BEGIN and END are strictly last in, first out. A
// communication op that waits for its partner holds a nested slice "wait" until its transfer starts. Times are rounded
// down to nanoseconds, the format's unit. Equal traces give equal bytes.
#pragma once

#include <string>

#include "report/op_labels.h"
#include "trace/trace.h"

namespace stepcast::report {

// The bytes of a .pftrace file.
std::string to_perfetto(const trace::Trace& trace, const Labeler& label);

// "stage0 x4 ranks" for a class of ranks, "stage0 rank 3" for a rank that was executed.
std::string process_name(const trace::Trace& trace, const trace::Track& track);

}  // namespace stepcast::report
