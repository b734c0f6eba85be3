// Reads a table in one pass over its bytes: outside quotes a comma ends a field and a line break a record.
#include "calibrate/table.h"

#include <algorithm>
#include <utility>

#include "config/document.h"
#include "config/text.h"

namespace stepcast::calibrate {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// CR LF as LF; a CR by itself is left.
std::string with_plain_line_breaks(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    plain += text[i];
  }
  return plain;
}

class TableParser {
 public:
  TableParser(std::string_view text, Table& table) : text_(text), table_(table) {}

  void run() {
    while (at_ < text_.size()) {
      if (text_[at_] == '\n') {
        step();
        continue;
      }
      Table::Row row = record();
      if (table_.columns.empty()) {
        take_header(std::move(row));
      } else {
        take_row(std::move(row));
      }
    }
    if (table_.columns.empty()) fail("the table is empty: its first line names the columns", 1, "");
  }

 private:
  [[noreturn]] void fail(const std::string& message, int line, const std::string& column,
                         std::vector<std::string> help = {}) const {
    throw Error(ErrorKind::kInput, message, {table_.file, line, column}, std::move(help));
  }

  // The name of the column that field number `field` belongs to, from 0; its number where it has no name.
  std::string column_name(std::size_t field) const {
    return field < table_.columns.size() ? table_.columns[field] : "column " + std::to_string(field + 1);
  }

  void step() {
    if (text_[at_] == '\n') ++line_;
    ++at_;
  }

  bool at_end_of_field() const { return at_ >= text_.size() || text_[at_] == ',' || text_[at_] == '\n'; }

  Table::Row record() {
    Table::Row row;
    row.line = line_;
    while (true) {
      row.fields.push_back(field(row.fields.size()));
      if (at_ >= text_.size()) return row;
      const bool last = text_[at_] == '\n';
      step();
      if (last) return row;
    }
  }

  std::string field(std::size_t number) {
    if (at_ < text_.size() && text_[at_] == '"') return quoted_field(number);
    std::string value;
    while (!at_end_of_field()) {
      if (text_[at_] == '"') {
        fail("a quote within a field without quotes", line_, column_name(number),
             {"put the whole field in quotes, and write each quote in it twice"});
      }
      value += text_[at_++];
    }
    return value;
  }

  std::string quoted_field(std::size_t number) {
    const int opened = line_;
    std::string value;
    ++at_;
    while (at_ < text_.size()) {
      const bool quote = text_[at_] == '"';
      const bool twice = quote && at_ + 1 < text_.size() && text_[at_ + 1] == '"';
      if (quote && !twice) {
        ++at_;
        if (at_end_of_field()) return value;
        fail("text behind the closing quote of a field", line_, column_name(number),
             {"end the field there, or write a quote within it twice"});
      }
      value += text_[at_];
      if (twice) ++at_;
      step();
    }
    fail("a quoted field that does not end", opened, column_name(number), {"close it with a quote"});
  }

  void take_header(Table::Row row) {
    for (std::size_t i = 0; i < row.fields.size(); ++i) {
      const std::string& name = row.fields[i];
      const auto end = row.fields.begin() + static_cast<std::ptrdiff_t>(i);
      if (name.empty()) fail("a column without a name", row.line, "column " + std::to_string(i + 1));
      if (std::find(row.fields.begin(), end, name) != end) {
        fail("two columns of one name", row.line, config::printable(name));
      }
    }
    table_.columns = std::move(row.fields);
  }

  void take_row(Table::Row row) {
    const std::size_t columns = table_.columns.size();
    const std::size_t fields = row.fields.size();
    if (fields != columns) {
      fail("a record of " + std::to_string(fields) + " fields; the header has " + std::to_string(columns) + " columns",
           row.line, fields < columns ? column_name(fields) : "",
           {"fields that hold commas or line breaks stand in double quotes"});
    }
    table_.rows.push_back(std::move(row));
  }

  std::string_view text_;
  Table& table_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

std::optional<std::size_t> Table::find(std::string_view column) const {
  const auto found = std::find(columns.begin(), columns.end(), column);
  if (found == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns.begin());
}

Table parse_table(std::string_view text, const std::string& file) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::string plain = with_plain_line_breaks(text);
  config::require_text(plain, file);
  if (const std::size_t at = plain.find('\r'); at != std::string::npos) {
    const auto line = 1 + std::count(plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    throw Error(ErrorKind::kInput, "a carriage return without a line feed", {file, static_cast<int>(line), ""},
                {"lines that end in LF, or in CR LF"});
  }
  Table table;
  table.file = file;
  TableParser(plain, table).run();
  return table;
}

void require_columns(const Table& table, std::span<const std::string_view> needed) {
  std::vector<std::string> missing;
  for (const std::string_view column : needed) {
    if (!table.find(column)) missing.emplace_back(column);
  }
  if (missing.empty()) return;
  throw Error(
      ErrorKind::kInput,
      "the table lacks the " + std::string(missing.size() == 1 ? "column " : "columns ") + config::join(missing),
      {table.file, 1, ""}, {"columns are those of scenarios/measured/published_runs_dense.csv, in any order"});
}

}  // namespace stepcast::calibrate
