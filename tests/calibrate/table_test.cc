// RFC 4180: what a field may hold, and where a fault is.
#include "calibrate/table.h"

#include <gtest/gtest.h>

#include <array>

namespace stepcast::calibrate {
namespace {

using Fields = std::vector<std::string>;

Problem problem_of(std::string_view text) {
  try {
    parse_table(text, "runs.csv");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_EQ(error.problems()[0].where.file, "runs.csv");
    return error.problems()[0];
  }
  ADD_FAILURE() << "accepted: " << text;
  return {};
}

TEST(Table, ReadsPlainAndQuotedFields) {
  const Table table = parse_table("id,words\na,\"one, two\"\nb,\"she said \"\"no\"\"\"\nc,\n", "runs.csv");
  EXPECT_EQ(table.columns, (Fields{"id", "words"}));
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.rows[0].fields, (Fields{"a", "one, two"}));
  EXPECT_EQ(table.rows[1].fields, (Fields{"b", "she said \"no\""}));
  EXPECT_EQ(table.rows[2].fields, (Fields{"c", ""}));
}

TEST(Table, TakesBothLineBreaksAMissingLastOneAndAByteOrderMark) {
  for (const char* const text : {"a,b\n1,2\n3,4\n", "a,b\r\n1,2\r\n3,4\r\n", "a,b\n1,2\n3,4",
                                 "\xEF\xBB\xBF"
                                 "a,b\n\n1,2\n3,4"}) {
    const Table table = parse_table(text, "runs.csv");
    EXPECT_EQ(table.columns, (Fields{"a", "b"})) << text;
    ASSERT_EQ(table.rows.size(), 2U) << text;
    EXPECT_EQ(table.rows[1].fields, (Fields{"3", "4"})) << text;
  }
}

// The second record begins on line 2 and holds a line break, so the third begins on line 4.
TEST(Table, CountsLinesThroughQuotedLineBreaks) {
  const Table table = parse_table("a,b\n1,\"x\ny\"\n2,z\n", "runs.csv");
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].line, 2);
  EXPECT_EQ(table.rows[0].fields[1], "x\ny");
  EXPECT_EQ(table.rows[1].line, 4);
}

TEST(Table, SaysWhichLineAndColumnIsAtFault) {
  struct Case {
    std::string_view text;
    int line;
    std::string_view column;
    std::string_view says;
  };
  const std::array<Case, 10> cases = {{
      {"", 1, "", "is empty"},
      {"\n\n", 1, "", "is empty"},
      {"a,b\n1\n", 2, "b", "1 fields; the header has 2"},
      {"a,b\n1,2,3\n", 2, "", "3 fields; the header has 2"},
      {"a,b\n1,2\n3,x\"y\n", 3, "b", "a quote within"},
      {"a,b\n\"1\" ,2\n", 2, "a", "behind the closing quote"},
      {"a,b\n1,\"2\n3,4\n", 2, "b", "does not end"},
      {"a,a\n", 1, "a", "two columns of one name"},
      {"a,\n", 1, "column 2", "without a name"},
      {"\"a\n", 1, "column 1", "does not end"},
  }};
  for (const Case& c : cases) {
    const Problem problem = problem_of(c.text);
    EXPECT_EQ(problem.where.line, c.line) << c.text;
    EXPECT_EQ(problem.where.field, c.column) << c.text;
    EXPECT_NE(problem.message.find(c.says), std::string::npos) << problem.message;
  }
}

TEST(Table, RefusesControlCharactersAndOtherEncodings) {
  for (const char* const text : {"a,b\n1,\x01\n", "a,b\n1,\xff\n", "a,b\r1,2\n"}) problem_of(text);
}

TEST(Table, NamesEveryMissingColumn) {
  const Table table = parse_table("a,b\n", "runs.csv");
  const std::array<std::string_view, 3> needed = {"c", "a", "d"};
  try {
    require_columns(table, needed);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.problems()[0].message, "the table lacks the columns c, d");
  }
  const std::array<std::string_view, 2> there = {"b", "a"};
  EXPECT_NO_THROW(require_columns(table, there));
}

}  // namespace
}  // namespace stepcast::calibrate
