// The order in which events come out.
#include "sim/engine/event_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace stepcast::sim {
namespace {

std::vector<std::uint32_t> drain(EventQueue& queue) {
  std::vector<std::uint32_t> subjects;
  Event event;
  do {
    while (queue.pop_now(event)) subjects.push_back(event.subject);
  } while (queue.advance());
  return subjects;
}

TEST(EventQueue, PopsByTimeThenSchedulingOrder) {
  EventQueue queue;
  queue.schedule(SimTime(5), 1, 10);
  queue.schedule(SimTime(5), 0, 11);
  queue.schedule(SimTime(3), 1, 13);
  queue.schedule(SimTime(5), 1, 12);
  EXPECT_EQ(drain(queue), (std::vector<std::uint32_t>{13, 10, 11, 12}));
  EXPECT_EQ(queue.now(), SimTime(5));
}

TEST(EventQueue, FinishesTheInstantBeforeTheClockMoves) {
  EventQueue queue;
  queue.schedule(SimTime(1), 0, 1);
  queue.schedule(SimTime(2), 0, 2);
  Event event;
  EXPECT_FALSE(queue.pop_now(event));  // nothing at time 0
  ASSERT_TRUE(queue.advance());
  ASSERT_TRUE(queue.pop_now(event));
  queue.schedule(queue.now(), 1, 3);  // comes before time 2
  queue.schedule(SimTime(2), 0, 4);
  EXPECT_EQ(drain(queue), (std::vector<std::uint32_t>{3, 2, 4}));
}

TEST(EventQueue, KeepsTheOrderOfManyEvents) {
  // Times are a permutation of 0..999: 387 has no factor in common with 1000.
  EventQueue queue;
  for (std::uint32_t i = 0; i < 1000; ++i) queue.schedule(SimTime(i * 387 % 1000), 0, i * 387 % 1000);
  const std::vector<std::uint32_t> order = drain(queue);
  ASSERT_EQ(order.size(), 1000U);
  for (std::uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(order[i], i);
}

TEST(EventQueue, RefusesThePast) {
  EventQueue queue;
  queue.schedule(SimTime(7), 0, 1);
  ASSERT_TRUE(queue.advance());
  EXPECT_NO_THROW(queue.schedule(SimTime(7), 0, 2));
  EXPECT_THROW(queue.schedule(SimTime(6), 0, 3), InternalError);
}

}  // namespace
}  // namespace stepcast::sim
