#include "calibrate/kernel_rows.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include "config/text.h"

namespace stepcast::calibrate {
namespace {

constexpr std::array<std::string_view, 9> kMatmulColumns = {"source", "gpu",    "dtype",   "M",   "N",
                                                            "K",      "layout", "time_us", "note"};
constexpr std::array<std::string_view, 12> kAttentionColumns = {
    "source", "gpu", "impl", "pass", "seq", "batch", "heads", "head_dim", "v_head_dim", "causal", "tflops", "note"};
constexpr double kLargestExtent = 1e9;

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// One record with its columns by name.
class Record {
 public:
  Record(const Table& table, const Table::Row& row) : table_(table), row_(row) {}

  int line() const { return row_.line; }
  const std::string& text(std::string_view column) const { return row_.fields[*table_.find(column)]; }

  double positive(std::string_view column) const {
    const std::string& text = this->text(column);
    const std::optional<double> value = config::parse_number(text);
    if (value && *value > 0) return *value;
    throw Error(ErrorKind::kInput, "'" + config::printable(text) + "' is no number above zero",
                table_.where(row_, column));
  }

  std::int64_t extent(std::string_view column) const {
    const double value = positive(column);
    const auto whole = static_cast<std::int64_t>(std::min(value, kLargestExtent));
    if (static_cast<double>(whole) == value) return whole;
    throw Error(ErrorKind::kInput, "'" + config::printable(text(column)) + "' is no size", table_.where(row_, column),
                {"a whole number, at most 1e9"});
  }

 private:
  const Table& table_;
  const Table::Row& row_;
};

bool has_columns(const Table& table, std::span<const std::string_view> columns) {
  return std::all_of(columns.begin(), columns.end(), [&](std::string_view c) { return table.find(c).has_value(); });
}

// Why a matmul's row is not taken; empty: it is.
std::string refused_matmul(const Record& record) {
  const std::string& dtype = record.text("dtype");
  if (holds(dtype, "grouped")) return "grouped";
  if (dtype != "bf16" && dtype != "fp16" && dtype != "bf16/fp16") return "not of 16-bit operands";
  if (holds(record.text("note"), "MAMF")) return "the best of a search, its order of M, N and K not certain";
  return "";
}

MatmulRow matmul_row(const Record& record) {
  MatmulRow row;
  row.line = record.line();
  row.seconds = record.positive("time_us") * 1e-6;
  sim::MatmulShape& s = row.shape;
  s.m = record.extent("M");
  s.n = record.extent("N");
  s.k = record.extent("K");
  const auto m = static_cast<double>(s.m), n = static_cast<double>(s.n), k = static_cast<double>(s.k);
  s.accumulates = holds(record.text("note"), "accumulate=True");
  const double element = holds(record.text("note"), "out=fp32") ? 4 : 2;
  s.flops = 2 * m * n * k;
  s.bytes = 2 * (m * k + n * k) + element * m * n * (s.accumulates ? 2 : 1);
  return row;
}

std::string refused_attention(const Record& record) {
  const std::string& causal = record.text("causal");
  if (causal != "True" && causal != "False" && !holds(causal, "non-causal FLOP count")) return "its mask is not stated";
  const std::string& pass = record.text("pass");
  if (pass != "fwd" && pass != "bwd" && pass != "fwd+bwd") return "its pass is not stated";
  const std::string& impl = record.text("impl");
  if (holds(impl, "fp8")) return "not of 16-bit operands";
  if (impl == "std" || impl == "pytorch-std") return "not fused";
  return "";
}

AttentionRow attention_row(const Record& record) {
  AttentionRow row;
  row.line = record.line();
  row.kernel = record.text("impl") + " " + record.text("pass");
  const std::string& causal = record.text("causal");
  const std::int64_t sequence = record.extent("seq");
  row.masked = causal != "False";
  row.keys = static_cast<double>(sequence) / (row.masked ? 2 : 1);
  row.tiles = static_cast<double>(record.extent("heads") * record.extent("batch") * sim::query_tiles(sequence));
  // The two matmuls of a query and a key cost as much as two over the mean of both heads' widths.
  row.head_dim = (record.positive("head_dim") + record.positive("v_head_dim")) / 2;
  row.rate = record.positive("tflops") * 1e12 / (holds(causal, "non-causal FLOP count") ? 2 : 1);
  return row;
}

template <class Row, class Refuse, class Read>
KernelRows<Row> read_rows(const Table& table, const std::string& gpu, Refuse refuse, Read read) {
  KernelRows<Row> rows;
  rows.file = table.file;
  std::set<std::string> devices;
  for (const Table::Row& fields : table.rows) {
    const Record record(table, fields);
    devices.insert(record.text("gpu"));
    if (record.text("gpu") != gpu) continue;
    const std::string reason = refuse(record);
    if (!reason.empty()) {
      ++rows.skipped[reason];
      continue;
    }
    rows.rows.push_back(read(record));
    const std::string& source = record.text("source");
    if (std::find(rows.sources.begin(), rows.sources.end(), source) == rows.sources.end()) {
      rows.sources.push_back(source);
    }
  }
  if (devices.contains(gpu)) return rows;
  throw Error(ErrorKind::kInput, "no row is of '" + config::printable(gpu) + "'", {table.file, 0, "gpu"},
              {"it has: " + config::join(std::vector<std::string>(devices.begin(), devices.end()))});
}

}  // namespace

KernelTable kind_of(const Table& table) {
  if (has_columns(table, kMatmulColumns)) return KernelTable::kMatmul;
  if (has_columns(table, kAttentionColumns)) return KernelTable::kAttention;
  if (table.find("busbw_GBps")) {
    throw Error(ErrorKind::kUnsupported, "a table of collectives: fitting from these is not supported yet",
                {table.file, 1, ""});
  }
  const std::vector<std::string> matmul(kMatmulColumns.begin(), kMatmulColumns.end());
  const std::vector<std::string> attention(kAttentionColumns.begin(), kAttentionColumns.end());
  throw Error(ErrorKind::kInput, "neither a table of matmuls nor of attention", {table.file, 1, ""},
              {"matmuls have the columns " + config::join(matmul), "attention has " + config::join(attention)});
}

KernelRows<MatmulRow> read_matmul_rows(const Table& table, const std::string& gpu) {
  return read_rows<MatmulRow>(table, gpu, refused_matmul, matmul_row);
}

KernelRows<AttentionRow> read_attention_rows(const Table& table, const std::string& gpu) {
  return read_rows<AttentionRow>(table, gpu, refused_attention, attention_row);
}

}  // namespace stepcast::calibrate
