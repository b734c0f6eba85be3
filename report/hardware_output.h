// `hardware` on screen and as JSON: the clusters known by name, or every figure of one with its source.
#pragma once

#include <string>

#include "report/hardware_report.h"

namespace stepcast::report {

// One line for each cluster.
std::string hardware_table(const HardwareList& list);
// Every figure of one cluster.
std::string hardware_screen(const HardwareEntry& entry);

// Schema stepcast/hardware/1: {schema, clusters [{name, files, gpu, figures [{field, value, unit, text, source,
// stated_by}]}], unreadable [{name, problem}]}. `value` is null for words and lists.
std::string hardware_json(const HardwareList& list);

}  // namespace stepcast::report
