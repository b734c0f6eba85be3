// A table of comma-separated values as RFC 4180 has them: a header, then one record a line, fields in double quotes
// where they hold commas, quotes or line breaks.
//
// Stricter than the RFC asks: UTF-8, every record as wide as the header, no two columns of one name, quotes around
// whole fields only. Line breaks may be LF or CR LF; a UTF-8 byte order mark is skipped, and so are empty lines.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace stepcast::calibrate {

struct Table {
  struct Row {
    int line = 0;                     // at which it begins
    std::vector<std::string> fields;  // as many as columns
  };

  std::string file;
  std::vector<std::string> columns;
  std::vector<Row> rows;

  std::optional<std::size_t> find(std::string_view column) const;
  // Of a field: file, line, column's name.
  Location where(const Row& row, std::string_view column) const { return {file, row.line, std::string(column)}; }
};

// Throws Error (kInput) with file, line and, where one is known, the column, for the first fault.
Table parse_table(std::string_view text, const std::string& file);

// Throws Error (kInput) naming every column of `needed` that the table lacks.
void require_columns(const Table& table, std::span<const std::string_view> needed);

}  // namespace stepcast::calibrate
