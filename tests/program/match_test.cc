// Messages of pairs alike are matched once: neighbours of a ring whose members run the same program.
#include "program/check_match.h"

#include <gtest/gtest.h>

#include "tests/program/problems.h"
#include "tests/program/sketch.h"

namespace stepcast::program {
namespace {

using testing::only_problem_has;
using testing::problems_of;
using testing::Sketch;

// A ring of four whose members send to the next and receive from the one before: members 0 and 2 run "even", 1 and 3
// "odd". The odd ones receive `odd_receives` times, the even ones once; each sends once.
Program ring_of_two_programs(int odd_receives = 1) {
  ProgramBuilder b("p");
  std::vector<RankProgramId> programs;
  for (const bool odd : {false, true}) {
    Sketch s(b, odd ? "odd" : "even");
    const ViewId x = s.tensor("x");
    const ViewId y = s.tensor("y");
    s.exchange("turn", Stream::kCp, x, s.to(1, Channel::kActivation), y, s.to(-1, Channel::kActivation));
    for (int i = 1; odd && i < odd_receives; ++i) {
      s.receive("more" + std::to_string(i), Stream::kCp, y, -1, Channel::kActivation);
    }
    programs.push_back(b.rank_program(s.builder().take()));
  }
  std::vector<RankId> ranks;
  for (const int member : {0, 1, 2, 3}) ranks.push_back(b.rank(programs[static_cast<std::size_t>(member % 2)], 0));
  b.group(b.role("pp"), ranks);
  return b.take();
}

TEST(Match, NeighboursAlikeAreMatchedOnce) {
  const Program p = ring_of_two_programs();
  std::vector<Resolution> resolutions;
  for (const RankProgram& r : p.rank_programs) resolutions.push_back(resolve(p, r));
  ProblemList problems;
  const Matching m = match(p, resolutions, classify_groups(p), problems);
  ASSERT_TRUE(problems.empty());
  ASSERT_EQ(m.messages.size(), 1U);
  const std::vector<MessageMatch>& matches = m.messages[0];
  // By hand: even to odd are 0 -> 1 and 2 -> 3, odd to even 1 -> 2 and 3 -> 0.
  ASSERT_EQ(matches.size(), 2U);
  EXPECT_EQ(matches[0].pairs, (std::vector<MessagePair>{{0, 1}, {2, 3}}));
  EXPECT_EQ(matches[1].pairs, (std::vector<MessagePair>{{1, 2}, {3, 0}}));
  for (const MessageMatch& match : matches) {
    ASSERT_EQ(match.ops.size(), 1U);
    EXPECT_EQ(match.ops[0].send, 0U);
    EXPECT_EQ(match.ops[0].receive, 0U);
  }
  EXPECT_TRUE(problems_of(p).empty());
}

TEST(Match, WhatNoPairOfAKindMatchesIsToldOnce) {
  EXPECT_TRUE(only_problem_has(
      problems_of(ring_of_two_programs(2)),
      {"rank 1 F.more1.op: a receive without a send: rank 0 sends 1 of 2 messages", "(2 pairs alike)"}));
}

}  // namespace
}  // namespace stepcast::program
