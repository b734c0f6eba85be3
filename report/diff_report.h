// Two results side by side, and what the difference of their steps consists of.
//
// The waterfall has one row for each part of time. A part is the mean over ranks in whole picoseconds, rounded so that
// the parts of one result sum to its step (largest remainders first); so the changes sum to the difference of the steps
// exactly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/scenario_reader.h"
#include "report/simulation_report.h"

namespace stepcast::report {

// The parts of a step: means over ranks that sum to it. `slowed` is the mean of its own, not in the sum.
sim::TimeParts mean_parts(const sim::Prediction& prediction);

struct DiffSide {
  std::string subject;  // as the user named it
  SimulationReport report;
  sim::TimeParts parts;
  std::vector<plan::ConfigValue> values;
};

// A field whose resolved values differ; empty where one side does not have it.
struct DiffField {
  std::string field;
  std::string a;
  std::string b;
  std::string origin_a;
  std::string origin_b;
};

struct DiffPart {
  std::string part;  // compute, optimizer, "exposed tp", bubble, host
  std::int64_t a_ps = 0;
  std::int64_t b_ps = 0;
  std::int64_t change_ps() const { return b_ps - a_ps; }
};

struct DiffMemory {
  std::string memory_class;
  std::int64_t a_bytes = 0;  // at the peak of the stage with the highest
  std::int64_t b_bytes = 0;
};

struct DiffTier {
  std::string tier;
  std::optional<TierReport> a;
  std::optional<TierReport> b;
};

struct DiffReport {
  DiffSide a;
  DiffSide b;
  std::vector<DiffField> fields;    // in the order of A, then what only B has
  std::vector<DiffPart> waterfall;  // parts that either side has
  std::int64_t step_a_ps = 0;
  std::int64_t step_b_ps = 0;
  std::vector<DiffMemory> memory;
  std::vector<DiffTier> network;
};

DiffReport make_diff(DiffSide a, DiffSide b);

// A screen of 120 columns, or JSON of schema stepcast/diff/1. change = B - A. End in a newline.
std::string diff_screen(const DiffReport& diff);
std::string diff_json(const DiffReport& diff);

}  // namespace stepcast::report
