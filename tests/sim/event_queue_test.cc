// The order in which events come out.
#include "sim/engine/event_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace stepcast::sim {
namespace {

std::vector<std::uint64_t> drain(EventQueue& queue) {
  std::vector<std::uint64_t> payloads;
  for (Event event; queue.pop(event);) payloads.push_back(event.payload);
  return payloads;
}

TEST(EventQueue, PopsByTimeThenPriorityThenSchedulingOrder) {
  EventQueue queue;
  queue.schedule(SimTime(5), 1, 0, 10);
  queue.schedule(SimTime(5), 0, 0, 11);  // same time, lower priority number: first
  queue.schedule(SimTime(5), 1, 0, 12);  // equal to the first in both: after it
  queue.schedule(SimTime(3), 1, 0, 13);
  EXPECT_EQ(drain(queue), (std::vector<std::uint64_t>{13, 11, 10, 12}));
  EXPECT_EQ(queue.now(), SimTime(5));
}

TEST(EventQueue, FinishesTheInstantBeforeTheClockMoves) {
  EventQueue queue;
  queue.schedule(SimTime(1), 0, 0, 1);
  queue.schedule(SimTime(2), 0, 0, 2);
  Event event;
  ASSERT_TRUE(queue.pop(event));
  queue.schedule(queue.now(), 1, 0, 3);  // now, at any priority, comes before time 2
  queue.schedule(SimTime(2), 0, 0, 4);
  EXPECT_EQ(drain(queue), (std::vector<std::uint64_t>{3, 2, 4}));
}

TEST(EventQueue, RefusesThePast) {
  EventQueue queue;
  queue.schedule(SimTime(7), 0, 0, 1);
  Event event;
  ASSERT_TRUE(queue.pop(event));
  EXPECT_NO_THROW(queue.schedule(SimTime(7), 0, 0, 2));
  EXPECT_THROW(queue.schedule(SimTime(6), 0, 0, 3), InternalError);
}

}  // namespace
}  // namespace stepcast::sim
