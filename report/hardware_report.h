// The clusters known by name: every figure as its file states it, with its source, be it the cluster's own file or one
// it is based on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/search.h"
#include "topology/cluster.h"

namespace stepcast::report {

struct HardwareFigure {
  std::string field;             // gpu.hbm_bandwidth
  std::string text;              // as written: "3.35 TB/s", "[1, 1]", "rail"
  std::optional<double> number;  // in `unit`; none for words and lists
  std::string unit;              // FLOP/s, B, B/s, W, Hz or s; empty for counts and ratios
  std::string source;            // empty: its file states none
  std::string stated_by;         // name of the cluster file: hgx-h100; "derived": no file, the source says how
};

struct HardwareEntry {
  std::string name;
  std::vector<std::string> files;       // names: its own, then that of its base, and so on
  topology::Cluster cluster;            // one node
  std::vector<HardwareFigure> figures;  // by file as in `files`, in the order of each file
};

struct UnreadableHardware {
  std::string name;
  std::string problem;
};

struct HardwareList {
  std::vector<HardwareEntry> entries;          // by name
  std::vector<UnreadableHardware> unreadable;  // files of the user with mistakes, by name
};

// A preset, or a path. Throws Error (kInput): no such cluster (with the nearest names), what is wrong in its file.
HardwareEntry read_hardware(const std::string& name, const config::SearchPath& search);
// Every preset and every cluster file on the search path.
HardwareList read_all_hardware(const config::SearchPath& search);

}  // namespace stepcast::report
