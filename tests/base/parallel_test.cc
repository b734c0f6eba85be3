// parallel_for: every piece once, on threads or not; of several faults the one of the lowest piece.
#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace stepcast {
namespace {

TEST(ParallelFor, DoesEveryPieceOnce) {
  for (const bool worth_threads : {false, true}) {
    std::vector<int> calls(1000, 0);
    parallel_for(calls.size(), worth_threads, [&](std::size_t i) { ++calls[i]; });
    EXPECT_EQ(calls, std::vector<int>(1000, 1));
  }
}

TEST(ParallelFor, DoesNothingForNoPieces) {
  parallel_for(0, true, [](std::size_t) { FAIL(); });
}

TEST(ParallelFor, CanBeUsedWithinItself) {
  std::vector<std::vector<int>> calls(20, std::vector<int>(50, 0));
  parallel_for(calls.size(), true,
               [&](std::size_t i) { parallel_for(calls[i].size(), true, [&](std::size_t k) { ++calls[i][k]; }); });
  EXPECT_EQ(calls, std::vector(20, std::vector<int>(50, 1)));
}

TEST(ParallelFor, CanBeUsedByManyThreadsAtOnce) {
  std::vector<std::vector<int>> calls(6, std::vector<int>(500, 0));
  {
    std::vector<std::jthread> callers;
    for (std::vector<int>& own : calls) {
      callers.emplace_back([&own] { parallel_for(own.size(), true, [&own](std::size_t i) { ++own[i]; }); });
    }
  }
  EXPECT_EQ(calls, std::vector(6, std::vector<int>(500, 1)));
}

// A piece may wait for an earlier one: that has been begun.
TEST(ParallelFor, BeginsPiecesInOrder) {
  std::latch first(1);
  std::atomic<int> after{0};
  parallel_for(4, true, [&](std::size_t i) {
    if (i == 0) {
      first.count_down();
    } else {
      first.wait();
      ++after;
    }
  });
  EXPECT_EQ(after, 3);
}

TEST(ParallelFor, RethrowsTheFaultOfTheLowestPiece) {
  std::vector<int> calls(64, 0);
  const auto body = [&](std::size_t i) {
    ++calls[i];
    if (i == 7 || i == 40) throw std::runtime_error(std::to_string(i));
  };
  try {
    parallel_for(calls.size(), true, body);
    FAIL() << "no exception";
  } catch (const std::runtime_error& fault) {
    EXPECT_STREQ(fault.what(), "7");
  }
  EXPECT_GE(calls[7], 1);
}

TEST(ThreadCount, IsAtLeastOneAndAtMostThePieces) {
  EXPECT_EQ(thread_count(0), 1U);
  EXPECT_EQ(thread_count(1), 1U);
  EXPECT_LE(thread_count(2), 2U);
  EXPECT_LE(thread_count(1000), 8U);
}

}  // namespace
}  // namespace stepcast
