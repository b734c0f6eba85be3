// Columns of a published run, by name.
#include "calibrate/published_row.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "config/text.h"

namespace stepcast::calibrate {
namespace {

constexpr std::array<std::string_view, 15> kNeeded = {
    "id",         "source_short", "gpu",   "num_gpus", "precision",         "model", "layers", "hidden",
    "ffn_hidden", "heads",        "vocab", "seq_len",  "global_batch_seqs", "tp",    "pp"};
constexpr std::array<std::string_view, 3> kTimes = {"derived_step_time_s", "step_time_s", "tokens_per_s_per_gpu"};

constexpr double kLargest = 0x1p20;  // of a whole number in a table: products of three fit 64 bits
constexpr double kGib = 0x1p30;

class RowReader {
 public:
  RowReader(const Table& table, const Table::Row& row) : table_(table), row_(row) {}

  // Empty where the table lacks the column.
  const std::string& text(std::string_view column) const {
    static const std::string none;
    const auto index = table_.find(column);
    return index ? row_.fields[*index] : none;
  }

  std::optional<double> number(std::string_view column) const {
    const std::string& given = text(column);
    if (given.empty()) return std::nullopt;
    const auto value = config::parse_number(given);
    if (value && *value > 0) return value;
    throw Error(ErrorKind::kInput, "expected a positive number, got '" + config::printable(given) + "'",
                table_.where(row_, column));
  }

  std::optional<std::int64_t> whole(std::string_view column) const {
    const auto value = number(column);
    if (!value) return std::nullopt;
    if (*value == std::floor(*value) && *value <= kLargest) {
      return static_cast<std::int64_t>(*value);
    }
    throw Error(ErrorKind::kInput, "expected a whole number up to 2^20, got '" + config::printable(text(column)) + "'",
                table_.where(row_, column));
  }

  // One that a scenario needs: notes it where it is left out.
  std::int64_t needed(std::string_view column) {
    const auto value = whole(column);
    if (!value) missing_.emplace_back(column);
    return value.value_or(0);
  }

  bool yes(std::string_view column) const {
    const std::string& given = text(column);
    if (given == "yes") return true;
    if (given.empty() || given == "no") return false;
    throw Error(ErrorKind::kInput, "expected yes or no, got '" + config::printable(given) + "'",
                table_.where(row_, column));
  }

  const std::vector<std::string>& missing() const { return missing_; }

 private:
  const Table& table_;
  const Table::Row& row_;
  std::vector<std::string> missing_;
};

void read_words(const RowReader& from, PublishedRow& row) {
  row.id = from.text("id");
  row.source = from.text("source_short");
  row.framework = from.text("framework");
  row.gpu = from.text("gpu");
  row.interconnect = from.text("interconnect");
  row.precision = from.text("precision");
  row.model = from.text("model");
  row.zero = from.text("zero_stage_or_fsdp");
  row.recompute = from.text("recompute");
  row.schedule = from.text("schedule");
  row.flags = from.text("other_flags");
  row.notes = from.text("notes");
}

void read_numbers(RowReader& from, PublishedRow& row) {
  row.params_b = from.number("params_b").value_or(0);
  row.gpus_per_node = from.whole("gpus_per_node").value_or(0);
  row.gpus = from.needed("num_gpus");
  row.layers = from.needed("layers");
  row.hidden = from.needed("hidden");
  row.ffn = from.needed("ffn_hidden");
  row.heads = from.needed("heads");
  row.kv_heads = from.whole("kv_heads").value_or(row.heads);
  row.vocab = from.needed("vocab");
  row.experts = from.whole("num_experts").value_or(0);
  row.sequence_length = from.needed("seq_len");
  row.global_batch = from.needed("global_batch_seqs");
  row.micro_batch = from.needed("micro_batch_seqs");
  row.tp = from.needed("tp");
  row.pp = from.needed("pp");
  row.vp = from.whole("vp").value_or(1);
  row.cp = from.whole("cp").value_or(1);
  const std::int64_t model_ranks = row.tp * row.pp * row.cp;
  row.dp = from.whole("dp").value_or(model_ranks > 0 ? row.gpus / model_ranks : 0);
  row.sequence_parallel = from.yes("sp");
}

Measurement measured_of(const RowReader& from, const PublishedRow& row) {
  Measurement measured;
  const auto rate = from.number("tokens_per_s_per_gpu");
  measured.step_time_s = from.number("derived_step_time_s").value_or(from.number("step_time_s").value_or(0));
  if (measured.step_time_s == 0 && rate && row.gpus > 0) {
    const double tokens = static_cast<double>(row.global_batch) * static_cast<double>(row.sequence_length);
    measured.step_time_s = tokens / (*rate * static_cast<double>(row.gpus));
  }
  const double gib = from.number("memory_gb_per_gpu").value_or(0);
  measured.memory_bytes = std::llround(std::min(gib, 1e6) * kGib);
  return measured;
}

std::string unusable_reason(const RowReader& from, const Measurement& measured) {
  const std::string& complete = from.text("complete");
  const std::string& excluded = from.text("excluded");
  if (!complete.empty() && complete != "yes") return "the table marks it incomplete";
  if (!excluded.empty()) return "excluded by the table: " + excluded;
  if (!from.missing().empty()) return "the source does not state " + config::join(from.missing());
  if (measured.step_time_s <= 0) return "no measured step time";
  return "";
}

}  // namespace

std::vector<MeasuredRun> measured_runs(const Table& table) {
  require_columns(table, kNeeded);
  if (!table.find(kTimes[0]) && !table.find(kTimes[1]) && !table.find(kTimes[2])) {
    throw Error(ErrorKind::kInput, "the table has no column with a measured time", {table.file, 1, ""},
                {"one of derived_step_time_s, step_time_s, tokens_per_s_per_gpu"});
  }
  std::vector<MeasuredRun> runs;
  std::map<std::string, int> lines;
  for (const Table::Row& fields : table.rows) {
    RowReader from(table, fields);
    MeasuredRun run;
    run.row.line = fields.line;
    read_words(from, run.row);
    if (run.row.id.empty()) throw Error(ErrorKind::kInput, "a row without an id", table.where(fields, "id"));
    const auto [known, is_new] = lines.emplace(run.row.id, fields.line);
    if (!is_new) {
      throw Error(ErrorKind::kInput,
                  "id '" + config::printable(run.row.id) + "' is also that of line " + std::to_string(known->second),
                  table.where(fields, "id"));
    }
    read_numbers(from, run.row);
    run.measured = measured_of(from, run.row);
    run.row.unusable = unusable_reason(from, run.measured);
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace stepcast::calibrate
