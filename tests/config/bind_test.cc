// The binder, on the options message itself: it has every kind of field a schema uses but quantities, and needs no
// schema of an upper folder. Quantities are tested by read_quantity.
#include "config/bind.h"

#include <gtest/gtest.h>

#include "config/options.pb.h"
#include "config/quantity.h"

namespace stepcast::config {
namespace {

struct Bound {
  FieldRule message;
  ProblemList problems;
  std::vector<BoundValue> values;
};

Bound bind_text(const std::string& text) {
  Bound bound;
  // Qualified: std::bind would be found through the arguments.
  config::bind(parse_document(text, "r.yaml"), bound.message, bound.problems, bound.values);
  return bound;
}

TEST(Bind, FillsFieldsAndSaysWhereTheyCameFrom) {
  const Bound bound = bind_text("required: true\nmin: 1.5\npreset: none\nvalues: [a, b]\n");
  EXPECT_TRUE(bound.problems.empty());
  EXPECT_TRUE(bound.message.required());
  EXPECT_DOUBLE_EQ(bound.message.min(), 1.5);
  EXPECT_EQ(bound.message.values_size(), 2);
  ASSERT_EQ(bound.values.size(), 4u);
  EXPECT_EQ(bound.values[1].field, "min");
  EXPECT_EQ(bound.values[1].where.line, 2);
  EXPECT_EQ(bound.values[3].value, "[a, b]");
}

TEST(Bind, ReportsEveryProblemAtOnce) {
  const Bound bound =
      bind_text("requird: true\nmin: many\nrequired: yes\nvalues: a\npreset: {a: 1}\nmax: \"4\"\nany:\n");
  struct Expected {
    int line;
    const char* field;
  };
  const Expected expected[] = {{1, "requird"}, {2, "min"}, {3, "required"}, {4, "values"},
                               {5, "preset"},  {6, "max"}, {7, "any"}};
  ASSERT_EQ(bound.problems.problems().size(), std::size(expected));
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    const Problem& problem = bound.problems.problems()[i];
    EXPECT_EQ(problem.kind, ErrorKind::kInput);
    EXPECT_EQ(problem.where.file, "r.yaml");
    EXPECT_EQ(problem.where.line, expected[i].line);
    EXPECT_EQ(problem.where.field, expected[i].field);
  }
  EXPECT_EQ(bound.problems.problems()[0].help.front(), "did you mean required?");
}

// A field given wrong is not missing: it is recorded like any other, and only an unknown one is not.
TEST(Bind, RecordsWrongValuesToo) {
  const Bound bound = bind_text("min: many\nmax:\nminn: 1\n");
  EXPECT_EQ(bound.problems.problems().size(), 3u);
  ASSERT_EQ(bound.values.size(), 2u);
  EXPECT_EQ(bound.values[0].field, "min");
  EXPECT_EQ(bound.values[1].field, "max");
}

TEST(Bind, RefusesNumbersThatAreNotFinite) {
  for (const char* text : {"min: .nan", "min: NaN", "min: .inf", "min: 1e999"}) {
    EXPECT_EQ(bind_text(text).problems.problems().size(), 1u) << text;
  }
}

TEST(Merge, LaysMapsOverMapsAndReplacesTheRest) {
  Node under = parse_document("min: 1\nvalues: [a, b]\n", "under.yaml");
  merge(under, parse_document("values: [c]\nmax: 2\n", "over.yaml"), *FieldRule::descriptor());
  EXPECT_EQ(flow_text(under), "{min: 1, values: [c], max: 2}");
  EXPECT_EQ(under.find("min")->where.file, "under.yaml");
  EXPECT_EQ(under.find("values")->where.file, "over.yaml");
}

// 400 Gb/s = 400e9 / 8 bytes per second; GiB = 2^30; Mitok = 2^20.
TEST(ReadQuantity, ConvertsToBaseUnits) {
  ProblemList problems;
  EXPECT_DOUBLE_EQ(read_quantity("400 Gb/s", BYTES_PER_SECOND, {}, problems), 50e9);
  EXPECT_DOUBLE_EQ(read_quantity("2 GiB", BYTES, {}, problems), 2147483648.0);
  EXPECT_DOUBLE_EQ(read_quantity("4 Mitok", TOKENS, {}, problems), 4194304.0);
  EXPECT_DOUBLE_EQ(read_quantity("4 Mtok", TOKENS, {}, problems), 4e6);
  EXPECT_DOUBLE_EQ(read_quantity("2.5 $/GPU-h", DOLLARS_PER_GPU_HOUR, {}, problems), 2.5);
  EXPECT_TRUE(problems.empty());
}

TEST(ReadQuantity, RefusesBareNumbersAndWrongUnits) {
  for (const char* text : {"80", "80 W", "80 gib", "GiB", "", "nan GiB", "-1 GiB"}) {
    ProblemList problems;
    read_quantity(text, BYTES, {"r.yaml", 3, "memory"}, problems);
    ASSERT_EQ(problems.problems().size(), 1u) << text;
    EXPECT_EQ(problems.problems()[0].where.line, 3);
    EXPECT_FALSE(problems.problems()[0].help.empty()) << text;
  }
  for (const char* text : {"4", "4 MB", "tok", "4 mtok"}) {
    ProblemList problems;
    read_quantity(text, TOKENS, {}, problems);
    EXPECT_EQ(problems.problems().size(), 1u) << text;
  }
}

}  // namespace
}  // namespace stepcast::config
