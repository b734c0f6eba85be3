// Which of several ranks is named, from what a supervisor sees; and what it sees of real processes.
#include "cli/verdict.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <vector>

#include "base/error.h"
#include "cli/fault.h"
#include "cli/launcher_text.h"
#include "cli/rank_process.h"
#include "tests/exec/tiny_program.h"

namespace stepcast::cli {
namespace {

constexpr double kPatience = 2;

std::vector<RankSight> running(std::size_t count) {
  std::vector<RankSight> ranks(count);
  for (RankSight& rank : ranks) rank.started = true;
  return ranks;
}

// A launcher ends the others of a dead rank by SIGTERM at once; all are gone by the time that one looks.
TEST(Verdict, NamesTheDeadRankNotThoseThatWereEnded) {
  std::vector<RankSight> ranks = running(4);
  EXPECT_FALSE(cause_seen(ranks, kPatience).has_value());
  for (RankSight& rank : ranks) {
    rank.process = ProcessState::kGone;
    rank.terminated_at = 100;
  }
  ranks[2].terminated_at = 0;
  const auto cause = cause_seen(ranks, kPatience);
  ASSERT_TRUE(cause.has_value());
  EXPECT_EQ(cause->rank, 2U);
  EXPECT_EQ(cause->kind, CauseKind::kDied);
}

TEST(Verdict, NamesTheFirstFailure) {
  std::vector<RankSight> ranks = running(3);
  ranks[0].failed_at = 300;
  ranks[1].failed_at = 200;
  ranks[2].terminated_at = 100;
  const auto cause = cause_seen(ranks, kPatience);
  ASSERT_TRUE(cause.has_value());
  EXPECT_EQ(cause->rank, 1U);
  EXPECT_EQ(cause->kind, CauseKind::kFailed);
}

TEST(Verdict, LeavesRanksAloneThatEndedWellHaveNotStartedOrStopForAMoment) {
  std::vector<RankSight> ranks = running(3);
  ranks[0].process = ProcessState::kGone;
  ranks[0].ended_well = true;
  ranks[1].started = false;
  ranks[1].process = ProcessState::kGone;
  ranks[2].process = ProcessState::kStopped;
  ranks[2].stopped_s = 1.9;
  EXPECT_FALSE(cause_seen(ranks, kPatience).has_value());
  ranks[2].stopped_s = 2;
  EXPECT_EQ(cause_seen(ranks, kPatience)->kind, CauseKind::kStopped);
}

TEST(Verdict, NamesARankEndedBySigtermWhenNothingElseHappened) {
  std::vector<RankSight> ranks = running(3);
  ranks[2].terminated_at = 100;
  ranks[1].terminated_at = 101;
  EXPECT_EQ(cause_seen(ranks, kPatience)->rank, 2U);
  EXPECT_EQ(cause_seen(ranks, kPatience)->kind, CauseKind::kTerminated);
}

TEST(Processes, TellStoppedFromRunningFromGone) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  EXPECT_EQ(process_state(child), ProcessState::kRuns);
  ::kill(child, SIGSTOP);
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  EXPECT_EQ(process_state(child), ProcessState::kStopped);
  ::kill(child, SIGKILL);
  // Gone before its parent has asked for it, and after.
  siginfo_t info = {};
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  EXPECT_EQ(process_state(child), ProcessState::kGone);
  ::waitpid(child, &status, 0);
  EXPECT_EQ(process_state(child), ProcessState::kGone);
}

// The shell ends; what it has started stays, and ignores SIGTERM.
TEST(Processes, EndWithAllTheyHaveStarted) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);  // closed when the last process that has it has ended
  {
    ProcessTree tree({.words = {"sh", "-c", "trap '' TERM; sleep 600 & exit 3"}, .environment = {}});
    while (!tree.leader_status()) ::usleep(1000);
    EXPECT_EQ(WEXITSTATUS(*tree.leader_status()), 3);
    ::close(ends[1]);
    tree.end_all({});
  }
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);
  ::close(ends[0]);
}

// Two ranks that reduce; rank 1 has a kernel before.
class StallTest : public ::testing::Test {
 protected:
  static program::CheckedProgram reduction() {
    exec::tiny::World world(2);
    for (int m = 0; m < 2; ++m) {
      const auto x = world.shard(m, "x", 2, 8, m, 0, 8);
      world.call(m, OpKind::kZeroFill, program::Stream::kCompute, {{x, program::Access::kWrite}}, "zero");
      world.collective(m, OpKind::kAllReduce, program::Stream::kTp, {{x, program::Access::kAccumulate}}, "reduce");
    }
    return world.take();
  }
  using OpKind = program::OpKind;

  StallTest() : checked_(reduction()), page_(exec::StatusPage::create(2)), watch_(checked_, slots(), 10) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      page_->rank(rank).pid.store(::getpid());
      page_->rank(rank).board.begin_step(1);
    }
    page_->rank(0).board.set_stream(program::Stream::kTp, exec::StreamPhase::kWaitingPeers, 1);
    page_->rank(1).board.set_stream(program::Stream::kCompute, exec::StreamPhase::kRunning, 0);
  }
  std::vector<const exec::RankSlot*> slots() const { return {&page_->rank(0), &page_->rank(1)}; }

  program::CheckedProgram checked_;
  std::shared_ptr<exec::StatusPage> page_;
  StallWatch watch_;
};

// Seen first at 1 s, rank 0 has waited for 10 s at 11 s.
TEST_F(StallTest, NamesTheRankThatHoldsAnotherForTooLong) {
  EXPECT_FALSE(watch_.look(1).has_value());
  EXPECT_FALSE(watch_.look(10.9).has_value());
  const auto cause = watch_.look(11);
  ASSERT_TRUE(cause.has_value());
  EXPECT_EQ(cause->kind, CauseKind::kHolds);
  EXPECT_EQ(cause->rank, 1U);
  EXPECT_EQ(cause->waiter, 0U);
}

TEST_F(StallTest, LeavesASlowRankAloneThatMoves) {
  EXPECT_FALSE(watch_.look(1).has_value());
  page_->rank(1).board.op_completed();
  EXPECT_FALSE(watch_.look(9).has_value());
  EXPECT_FALSE(watch_.look(18.9).has_value());
  EXPECT_TRUE(watch_.look(19).has_value());
}

// Such as the comparison with the reference.
TEST_F(StallTest, LeavesARankAloneThatIsBusyWithSomethingElse) {
  page_->rank(1).aside.store(true);
  EXPECT_FALSE(watch_.look(1).has_value());
  EXPECT_FALSE(watch_.look(100).has_value());
}

TEST_F(StallTest, MissesARankThatHasNotStarted) {
  page_->rank(0).board.set_stream(program::Stream::kTp, exec::StreamPhase::kIdle, 1);
  page_->rank(1).pid.store(0);
  EXPECT_FALSE(watch_.look(59.9).has_value());
  EXPECT_EQ(watch_.look(60)->kind, CauseKind::kNotStarted);
}

// Notices as Open MPI 4.1 prints them; a rank's own words are passed on.
TEST(LauncherText, PassesOnWhatRanksSayAndHearsWhoDied) {
  const std::string rule(74, '-');
  LauncherText text;
  text.add("a word of a rank\n" + rule + "\nmpirun noticed that process rank 3 with PID 0 on node vm exited on ");
  EXPECT_EQ(text.take(), "a word of a rank\n");
  EXPECT_FALSE(text.death().has_value());
  text.add("signal 11 (Segmentation fault).\n" + rule + "\n" + rule + "\nThere are not enough slots available\n" +
           rule + "\n[vm:1] 3 more processes have sent help message help-mpi-api.txt / mpi-abort\nno end");
  EXPECT_EQ(text.take(), "There are not enough slots available\n");
  ASSERT_TRUE(text.death().has_value());
  EXPECT_EQ(text.death()->rank, 3);
  EXPECT_EQ(text.death()->signal, 11);
  EXPECT_EQ(text.take(true), "no end\n");
}

TEST(FailureNote, ComesBackAsItWas) {
  const FailureNote note{"rank 1 failed\n  rank 0: host idle", {"this", "that"}};
  const FailureNote again = FailureNote::unpacked(note.packed());
  EXPECT_EQ(again.message, note.message);
  EXPECT_EQ(again.help, note.help);
  EXPECT_EQ(FailureNote::unpacked("").message, "");
}

TEST(Fault, IsReadFromItsForm) {
  const Fault step = parse_fault("2:step3:kill");
  EXPECT_EQ(step.rank, 2U);
  EXPECT_EQ(step.step, 3);
  EXPECT_EQ(step.kind, FaultKind::kKill);
  const Fault time = parse_fault("0:1.5s:throw");
  EXPECT_EQ(time.step, std::nullopt);
  EXPECT_EQ(time.after_s, 1.5);
  EXPECT_EQ(time.kind, FaultKind::kThrow);
  for (const char* bad : {"", "1", "1:2", "1:step1:no", "1:step0:kill", "1:2:kill", "x:1s:kill", "1:-1s:kill",
                          "::", "1:stepx:kill", "1:1s:kill:", "-1:1s:kill", "1:s:kill"}) {
    EXPECT_THROW(parse_fault(bad), Error) << bad;
  }
}

TEST(Fault, IsMadeOnceAtTheRankAndStep) {
  const auto make = fault_maker({.rank = 1, .step = 2, .kind = FaultKind::kThrow});
  make(program::RankId(0), 2);
  make(program::RankId(1), 1);
  EXPECT_THROW(make(program::RankId(1), 2), Error);
  make(program::RankId(1), 2);
}

}  // namespace
}  // namespace stepcast::cli
