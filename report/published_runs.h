// Published training runs (scenarios/measured/published_runs.csv): what others measured near a scenario.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::report {

// One published run. Batch in sequences, sequence length in tokens.
struct PublishedRun {
  std::string id;
  std::string model;
  std::int64_t parameters = 0;  // of the model as published: tells a changed model of the same name apart
  std::string gpu;
  std::int64_t gpus = 0;
  std::int64_t tp = 1;
  std::int64_t cp = 1;
  std::int64_t pp = 1;
  std::int64_t dp = 1;
  std::string precision;
  std::int64_t global_batch_size = 0;
  std::int64_t sequence_length = 0;
  double step_time_s = 0;
  std::string source;
};

// Reads the table's text. Throws Error (kInput) with the line of a malformed row. No quoting: a source has no comma.
std::vector<PublishedRun> parse_published_runs(std::string_view csv, const std::string& file_name);

// The table that was embedded at build.
std::vector<PublishedRun> published_runs();

// Text of the table, generated from the file at build.
std::string_view published_runs_csv();

}  // namespace stepcast::report
