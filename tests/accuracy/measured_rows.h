// Tables of published runs, scenarios/measured/*.csv. Fields hold no commas.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace stepcast::testing {

using MeasuredRow = std::map<std::string, std::string>;  // by column

inline std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream text(line);
  for (std::string field; std::getline(text, field, ',');) fields.push_back(field);
  return fields;
}

// All rows of `file`, such as megatron_a100.csv.
inline std::vector<MeasuredRow> measured_rows(const std::string& file) {
  std::ifstream table(std::string(STEPCAST_SOURCE_DIR) + "/scenarios/measured/" + file);
  std::string line;
  std::getline(table, line);
  const std::vector<std::string> columns = fields_of(line);
  std::vector<MeasuredRow> rows;
  while (std::getline(table, line)) {
    const std::vector<std::string> fields = fields_of(line);
    EXPECT_EQ(fields.size(), columns.size()) << line;
    MeasuredRow row;
    for (std::size_t i = 0; i < std::min(columns.size(), fields.size()); ++i) row[columns[i]] = fields[i];
    rows.push_back(row);
  }
  return rows;
}

}  // namespace stepcast::testing
