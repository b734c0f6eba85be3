// One published training run: a row of a table with the columns of scenarios/measured/published_runs_dense.csv.
//
// What a source does not say is empty or zero. Words (precision, recompute, sharding, flags) are the source's own;
// row_scenario.h reads them. What was measured stands apart: no scenario is made from it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/table.h"

namespace stepcast::calibrate {

struct PublishedRow {
  int line = 0;
  std::string id;
  std::string source;        // who published it: "MLPerf Training v5.0 (NVIDIA)"
  std::string framework;     // a scenario's word; of tables whose sources are not known here
  std::string gpu;           // H100-SXM-80GB
  std::string interconnect;  // in the source's words
  std::string precision;
  std::string model;
  std::string zero;  // "distributed optimizer (ZeRO-1)"
  std::string recompute;
  std::string schedule;
  std::string flags;
  std::string notes;
  double params_b = 0;  // thousand millions
  std::int64_t gpus_per_node = 0;
  std::int64_t gpus = 0;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t vocab = 0;
  std::int64_t experts = 0;
  std::int64_t sequence_length = 0;  // tokens
  std::int64_t global_batch = 0;     // sequences
  std::int64_t micro_batch = 0;      // sequences
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t vp = 1;
  std::int64_t cp = 1;
  std::int64_t dp = 1;
  bool sequence_parallel = false;
  std::string unusable;  // why no scenario can be made of it, by the table itself; empty: one can

  bool flagged(std::string_view word) const { return flags.find(word) != std::string::npos; }
  bool noted(std::string_view word) const { return notes.find(word) != std::string::npos; }
};

struct Measurement {
  double step_time_s = 0;         // 0: none
  std::int64_t memory_bytes = 0;  // of one device, as the source counts it; 0: none
};

struct MeasuredRun {
  PublishedRow row;
  Measurement measured;
};

// The runs of a table, in its order. A row is unusable where `complete` says so, where `excluded` gives a reason, where
// no time was measured, or where a number that a scenario needs is left out. The time is derived_step_time_s, else
// step_time_s, else follows from tokens_per_s_per_gpu. Columns beyond those known are ignored.
// Throws Error (kInput) for missing columns, two rows of one id, and numbers that are none or not positive, with file,
// line and column.
std::vector<MeasuredRun> measured_runs(const Table& table);

}  // namespace stepcast::calibrate
