// A strict reader of the one table of published runs.
#include "report/published_runs.h"

#include <charconv>

#include "base/error.h"

namespace stepcast::report {
namespace {

constexpr std::string_view kHeader =
    "id,model,parameters,gpu,gpus,tp,cp,pp,dp,precision,global_batch_size,sequence_length,step_time_s,source";

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

template <class Number>
Number number(std::string_view text, const Location& where) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0)) {
    throw Error(ErrorKind::kInput, "expected a positive number, got '" + std::string(text) + "'", where);
  }
  return value;
}

PublishedRun parse_row(std::string_view line, const Location& where) {
  const std::vector<std::string_view> f = split(line);
  if (f.size() != split(kHeader).size()) {
    throw Error(ErrorKind::kInput, "expected 14 fields, got " + std::to_string(f.size()), where);
  }
  PublishedRun run;
  run.id = f[0];
  run.model = f[1];
  run.parameters = number<std::int64_t>(f[2], where);
  run.gpu = f[3];
  run.gpus = number<std::int64_t>(f[4], where);
  run.tp = number<std::int64_t>(f[5], where);
  run.cp = number<std::int64_t>(f[6], where);
  run.pp = number<std::int64_t>(f[7], where);
  run.dp = number<std::int64_t>(f[8], where);
  run.precision = f[9];
  run.global_batch_size = number<std::int64_t>(f[10], where);
  run.sequence_length = number<std::int64_t>(f[11], where);
  run.step_time_s = number<double>(f[12], where);
  run.source = f[13];
  return run;
}

}  // namespace

std::vector<PublishedRun> parse_published_runs(std::string_view csv, const std::string& file_name) {
  std::vector<PublishedRun> runs;
  for (int line_number = 1; !csv.empty(); ++line_number) {
    const std::size_t newline = csv.find('\n');
    const std::string_view line = csv.substr(0, newline);
    csv.remove_prefix(newline == std::string_view::npos ? csv.size() : newline + 1);
    const Location where{file_name, line_number, ""};
    if (line_number == 1) {
      if (line != kHeader) throw Error(ErrorKind::kInput, "expected the header " + std::string(kHeader), where);
    } else if (!line.empty()) {
      runs.push_back(parse_row(line, where));
    }
  }
  return runs;
}

std::vector<PublishedRun> published_runs() {
  return parse_published_runs(published_runs_csv(), "scenarios/measured/published_runs.csv");
}

}  // namespace stepcast::report
