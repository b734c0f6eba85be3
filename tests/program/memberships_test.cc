// Memberships behave as a vector of optional memberships, beyond the eight that lie in the row too.
#include "program/memberships.h"

#include <gtest/gtest.h>

#include <utility>

namespace stepcast::program {
namespace {

Membership member(std::uint32_t group, std::uint32_t index) { return {GroupId(group), index}; }

TEST(Memberships, AreNoneUntilSet) {
  Memberships m;
  EXPECT_TRUE(m.empty());
  m.resize(3);
  EXPECT_EQ(m.size(), 3U);
  for (const MaybeMembership& entry : m) EXPECT_FALSE(entry);
  m[1] = member(4, 2);
  EXPECT_FALSE(m[0]);
  ASSERT_TRUE(m[1]);
  EXPECT_EQ(*m[1], member(4, 2));
  EXPECT_EQ(m[1]->group.value, 4U);
  m[1].reset();
  EXPECT_EQ(m, (Memberships{std::nullopt, std::nullopt, std::nullopt}));
}

// Nine roles do not fit the row of eight: entry i is member i of group 10 + i, before and after the row is left.
TEST(Memberships, GrowBeyondTheRow) {
  Memberships m;
  for (std::uint32_t i = 0; i < 9; ++i) m.push_back(member(10 + i, i));
  ASSERT_EQ(m.size(), 9U);
  for (std::uint32_t i = 0; i < 9; ++i) EXPECT_EQ(*m[i], member(10 + i, i));
  const Memberships copy = m;
  EXPECT_EQ(copy, m);
  m[8]->index = 0;
  EXPECT_NE(copy, m);
  const Memberships taken = std::move(m);
  EXPECT_EQ(*taken[8], member(18, 0));
  EXPECT_TRUE(m.empty());  // NOLINT(bugprone-use-after-move): what a moved-from row holds is said
}

// An entry that was cut off is none when it comes back, in the row and beyond it.
TEST(Memberships, ForgetWhatIsCutOff) {
  for (const std::size_t size : {std::size_t{4}, std::size_t{12}}) {
    Memberships m;
    m.assign(size, member(1, 1));
    m.resize(2);
    m.resize(size);
    EXPECT_TRUE(m[1]);
    EXPECT_FALSE(m[2]);
    EXPECT_FALSE(m[size - 1]);
  }
}

}  // namespace
}  // namespace stepcast::program
