// A trace in Chrome's JSON format (chrome://tracing, and most viewers): complete events per stream, counters for
// memory. Times are microseconds with six decimals, hence exact picoseconds.
#pragma once

#include <string>

#include "report/op_labels.h"
#include "trace/trace.h"

namespace stepcast::report {

// The text of the file: {"traceEvents": [...], "displayTimeUnit": "ms"}, one event a line.
std::string to_chrome_json(const trace::Trace& trace, const Labeler& label);

}  // namespace stepcast::report
