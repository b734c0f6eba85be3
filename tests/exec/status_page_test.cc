// The page between processes: what one writes the other reads, and what is left of it.
#include "exec/status_page.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

namespace stepcast::exec {
namespace {

// Runs `body` in a process of its own and gives its wait status.
template <class Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(StatusPage, ShowsWhatAProcessWroteBeforeItWasKilled) {
  const auto page = StatusPage::create(3);
  const int status = in_child([&] {
    const auto own = StatusPage::open(page->where());
    if (!own || own->ranks() != 3) ::_exit(1);
    own->rank(2).pid.store(::getpid());
    own->rank(2).board.begin_step(5);
    own->rank(2).board.set_stream(program::Stream::kTp, StreamPhase::kWaitingPeers, 17);
    own->rank(2).board.op_completed();
    ::raise(SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  const RankSlot& slot = page->rank(2);
  EXPECT_GT(slot.pid.load(), 0);
  EXPECT_EQ(slot.board.step(), 5U);
  EXPECT_EQ(slot.board.completed(), 1U);
  EXPECT_EQ(slot.board.stream(program::Stream::kTp).op, 17U);
  EXPECT_FALSE(slot.failure().has_value());
  EXPECT_EQ(page->rank(1).pid.load(), 0);
}

// The first failure counts; of a longer text than there is room for, the beginning.
TEST(StatusPage, KeepsTheFirstFailure) {
  const auto page = StatusPage::create(1);
  const std::int64_t before = now_ns();
  in_child([&] {
    const auto own = StatusPage::open(page->where());
    RankSlot& slot = own->rank(0);
    slot.fail(6, "first" + std::string(2 * RankSlot::kLongestText, 'x'));
    slot.fail(5, "second");
  });
  const auto failure = page->rank(0).failure();
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->code, 6);
  EXPECT_TRUE(failure->text.starts_with("firstx"));
  EXPECT_EQ(failure->text.size(), RankSlot::kLongestText);
  EXPECT_GE(failure->at, before);
}

TEST(StatusPage, IsNotFoundWhereItIsNot) {
  auto page = StatusPage::create(1);
  const std::string where = page->where();
  EXPECT_NE(StatusPage::open(where), nullptr);
  // Another page at the same place, as on another host, has another stamp.
  const std::string other = where.substr(0, where.rfind(':')) + ":1234";
  EXPECT_EQ(StatusPage::open(other), nullptr);
  page.reset();
  EXPECT_EQ(StatusPage::open(where), nullptr);
  for (const char* text : {"", "1", "1:2", "x:y:z", "-1:-1:0"}) EXPECT_EQ(StatusPage::open(text), nullptr) << text;
}

}  // namespace
}  // namespace stepcast::exec
