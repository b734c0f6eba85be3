// Number reading, nearest names, UTF-8.
#include "config/text.h"

#include <gtest/gtest.h>

namespace stepcast::config {
namespace {

TEST(ParseInteger, TakesDecimalTextOnly) {
  EXPECT_EQ(parse_integer("42"), 42);
  EXPECT_EQ(parse_integer("-7"), -7);
  for (const char* text : {"", "+", "4.0", "4e3", "0x10", "1_000", " 4", "99999999999999999999"}) {
    EXPECT_FALSE(parse_integer(text).has_value()) << text;
  }
}

TEST(ParseNumber, RefusesWhatIsNotFinite) {
  EXPECT_DOUBLE_EQ(parse_number("1.0e-8").value(), 1e-8);
  EXPECT_DOUBLE_EQ(parse_number("+2.5").value(), 2.5);
  for (const char* text : {"nan", "NaN", ".nan", "inf", "-inf", "1e400", "1.0x", ""}) {
    EXPECT_FALSE(parse_number(text).has_value()) << text;
  }
}

// kitten -> sitting is the textbook 3; two neighbours swapped count once.
TEST(EditDistance, CountsChangesAndSwaps) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("abc", "abc"), 0u);
  EXPECT_EQ(edit_distance("ab", "ba"), 1u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
}

TEST(NearestNames, OrdersByDistanceAndLeavesOutStrangers) {
  const std::vector<std::string> names{"pp", "sequence_length", "tp", "schedule"};
  EXPECT_EQ(nearest_names("sequence_lenght", names), std::vector<std::string>{"sequence_length"});
  EXPECT_EQ(nearest_names("tpp", names), (std::vector<std::string>{"pp", "tp"}));
  EXPECT_TRUE(nearest_names("zzzzzz", names).empty());
}

TEST(FirstBadByte, FindsWhatIsNotUtf8) {
  EXPECT_FALSE(first_bad_byte("plain, \xC3\xA9, \xE2\x82\xAC, \xF0\x9F\x98\x80\n").has_value());
  EXPECT_EQ(first_bad_byte("ab\xFF"), 2u);
  EXPECT_EQ(first_bad_byte("\xC0\xAF"), 0u);       // overlong "/"
  EXPECT_EQ(first_bad_byte("a\xED\xA0\x80"), 1u);  // surrogate
  EXPECT_EQ(first_bad_byte("a\xE2\x82"), 1u);      // cut short
  EXPECT_EQ(first_bad_byte(std::string_view("a\0b", 3)), 1u);
}

TEST(NumberText, ReadsBackTheSame) {
  EXPECT_EQ(number_text(0.95), "0.95");
  EXPECT_EQ(number_text(1e-8), "1e-08");
  EXPECT_EQ(number_text(500000), "500000");
}

}  // namespace
}  // namespace stepcast::config
