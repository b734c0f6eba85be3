// A track that has been packed and unpacked is the same; bytes that are not a track are refused.
#include "trace/pack.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace stepcast::trace {
namespace {

Track sample() {
  Track t;
  t.rank = 3;
  t.class_id = 1;
  t.ranks = 2;
  t.name = "stage1";
  t.peak = std::int64_t{1} << 40;
  t.class_peak = {1, 2, 3, 4, 5};
  t.events = {{{7, 2}, 4, SimTime(1), SimTime(2), SimTime(3), SimTime(4)}, {{8, 0}, 0, {}, {}, {}, SimTime(9)}};
  t.memory = {{SimTime(5), {6, 7, 8, 9, 10}}};
  return t;
}

TEST(Pack, KeepsATrack) {
  const Track before = sample();
  const Track after = unpack(pack(before));
  EXPECT_EQ(after.rank, before.rank);
  EXPECT_EQ(after.class_id, before.class_id);
  EXPECT_EQ(after.ranks, before.ranks);
  EXPECT_EQ(after.name, before.name);
  EXPECT_EQ(after.peak, before.peak);
  EXPECT_EQ(after.class_peak, before.class_peak);
  EXPECT_EQ(after.events, before.events);
  EXPECT_EQ(after.memory, before.memory);
}

TEST(Pack, RefusesWhatIsNoTrack) {
  const std::string bytes = pack(sample());
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_THROW(unpack(bytes.substr(0, size)), Error) << size;
  EXPECT_THROW(unpack(bytes + "x"), Error);
}

}  // namespace
}  // namespace stepcast::trace
