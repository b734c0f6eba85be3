// Joining two traces: by op id, rank by rank, through classes; never across Programs.
#include "trace/join.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/error.h"

namespace stepcast::trace {
namespace {

Event event(std::uint32_t call, std::uint32_t op, std::int64_t begin, std::int64_t end) {
  Event e;
  e.id = {call, op};
  e.begin = e.transfer = SimTime(begin);
  e.end = SimTime(end);
  return e;
}

Track track(std::uint32_t rank, std::uint32_t class_id, std::vector<Event> events) {
  Track t;
  t.rank = rank;
  t.class_id = class_id;
  t.events = std::move(events);
  return t;
}

// Ranks 0 and 1 are class 0, simulated once.
Trace simulated() {
  Trace t;
  t.source = "sim";
  t.fingerprint = 7;
  t.tracks = {track(0, 0, {event(0, 0, 0, 10), event(0, 1, 10, 30)})};
  t.class_of_rank = {0, 0};
  return t;
}

Trace measured() {
  Trace t;
  t.source = "exec";
  t.fingerprint = 7;
  t.tracks = {track(0, 0, {event(0, 0, 1, 12), event(0, 1, 12, 35)}),
              track(1, 1, {event(0, 1, 14, 36), event(0, 0, 2, 13)})};
  t.class_of_rank = {0, 1};
  return t;
}

TEST(TraceJoin, PairsEveryRankWithTheTrackOfItsClass) {
  const Join joined = join(simulated(), measured());
  // 2 ranks x 2 ops, whatever the order of events inside a track.
  ASSERT_EQ(joined.ops.size(), 4U);
  EXPECT_TRUE(joined.complete());
  EXPECT_EQ(joined.ops[3].rank, 1U);
  EXPECT_EQ(joined.ops[3].left.id, (OpId{0, 1}));
  EXPECT_EQ(joined.ops[3].left.end, SimTime(30));
  EXPECT_EQ(joined.ops[3].right.end, SimTime(36));
}

TEST(TraceJoin, ListsOpsThatOnlyOneTraceHas) {
  Trace left = simulated();
  Trace right = measured();
  left.tracks[0].events.push_back(event(2, 0, 30, 40));
  right.tracks[1].events.push_back(event(1, 5, 36, 37));
  const Join joined = join(left, right);
  EXPECT_EQ(joined.ops.size(), 4U);
  // Class 0 stands for both ranks, so its extra op is missing twice.
  EXPECT_EQ(joined.only_left, (std::vector<UnmatchedOp>{{0, {2, 0}}, {1, {2, 0}}}));
  EXPECT_EQ(joined.only_right, (std::vector<UnmatchedOp>{{1, {1, 5}}}));
  EXPECT_FALSE(joined.complete());
}

TEST(TraceJoin, TreatsARankWithoutATrackAsHavingNoOps) {
  Trace right = measured();
  right.tracks.pop_back();
  const Join joined = join(simulated(), right);
  EXPECT_EQ(joined.ops.size(), 2U);
  EXPECT_EQ(joined.only_left.size(), 2U);
}

TEST(TraceJoin, RefusesDifferentFingerprints) {
  Trace other = measured();
  other.fingerprint = 8;
  try {
    join(simulated(), other);
    FAIL() << "joined traces of different programs";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_NE(std::string(error.what()).find("0000000000000008"), std::string::npos);
  }
}

TEST(TraceJoin, RefusesDifferentNumbersOfRanks) {
  Trace other = measured();
  other.class_of_rank.push_back(1);
  EXPECT_THROW(join(simulated(), other), Error);
}

TEST(TraceJoin, ChecksThatIdsAreUniqueWithinATrack) {
  Trace twice = measured();
  twice.tracks[0].events.push_back(event(0, 0, 50, 60));
  EXPECT_THROW(join(simulated(), twice), InternalError);
}

TEST(TraceJoin, PrefersTheRanksOwnTrackToItsClass) {
  EXPECT_EQ(track_of_rank(measured(), 1), std::optional<std::size_t>(1));
  EXPECT_EQ(track_of_rank(simulated(), 1), std::optional<std::size_t>(0));
  Trace none = simulated();
  none.class_of_rank = {0, 3};
  EXPECT_EQ(track_of_rank(none, 1), std::nullopt);
}

}  // namespace
}  // namespace stepcast::trace
