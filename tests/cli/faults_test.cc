// What happens to real ranks: killed, stopped, made to fail, at random moments, as threads and as processes. Each time
// the run ends within ten seconds with exit code 6 and one message that names the rank, and leaves nothing behind.
// STEPCAST_FAULTS: how often each (3).
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tests/cli/faulty_run.h"

namespace stepcast::cli {
namespace {

using testing::TestWithParam;
using Words = std::vector<std::string>;

constexpr int kRanks = 4;
constexpr double kSoon = 10;  // s

int repetitions() {
  const char* text = std::getenv("STEPCAST_FAULTS");  // NOLINT(concurrency-mt-unsafe): one thread
  return text != nullptr ? std::atoi(text) : 3;
}

bool mpirun_starts() {
  const std::string run = std::string("mpirun ") + (::geteuid() == 0 ? "--allow-run-as-root " : "") +
                          "--oversubscribe -n 1 true > /dev/null 2>&1";
  return std::system(run.c_str()) == 0;  // NOLINT(concurrency-mt-unsafe): one thread
}

Words run_of(const std::string& ranks_as, const Words& more = {}, const std::string& steps = "1000000") {
  Words words = {STEPCAST_BINARY, "run",        "scenarios/runs/tiny-llama-tp2-pp2.yaml",
                 "--backend",     "cpu",        "--steps",
                 steps,           "--ranks-as", ranks_as};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

std::string expect_end(FaultyRun& run, int code, const std::vector<std::string>& said) {
  const FaultyRun::End end = run.wait();
  EXPECT_EQ(end.code, code) << end.err;
  EXPECT_LT(end.seconds, kSoon) << end.err;
  for (const std::string& part : said) EXPECT_NE(end.err.find(part), std::string::npos) << part << "\n" << end.err;
  EXPECT_EQ(run.left_processes(), Words());
  EXPECT_EQ(run.left_files(), Words());
  return end.err;
}

// One message, with a line for every rank.
void expect_failure(FaultyRun& run, const std::vector<std::string>& said) {
  std::vector<std::string> all = said;
  for (int rank = 0; rank < kRanks; ++rank) all.push_back("\n  rank " + std::to_string(rank) + ": host ");
  EXPECT_EQ(count(expect_end(run, 6, all), "error: "), 1U);
}

class Faults : public TestWithParam<std::string> {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_ADDRESS__
    if (processes()) GTEST_SKIP() << "Open MPI's own leaks would fail the ranks (tests/mpi_run)";
#endif
    if (processes() && !mpirun_starts()) GTEST_SKIP() << "mpirun cannot start a process here";
  }
  static bool processes() { return GetParam() == "processes"; }
  static std::size_t process_count() { return processes() ? kRanks : 1; }
  static std::string named(int rank) {
    if (!processes()) return "the process of ranks 0 to 3";
    return "rank " + std::to_string(rank) + " (stage" + std::to_string(rank / 2) + ")";
  }

  // Sends `number` to a random rank at a random moment of its first second and gives the rank.
  int hit(FaultyRun& run, int number, const RandomStream& random, int repetition) {
    const auto ranks = run.wait_for_ranks(process_count());
    if (ranks.empty()) return -1;
    const auto at = static_cast<std::uint64_t>(repetition);
    const int rank = processes() ? static_cast<int>(random.integer_at(2 * at, kRanks)) : 0;
    ::usleep(static_cast<useconds_t>(random.integer_at(2 * at + 1, 1'000'000)));
    ::kill(ranks.at(rank), number);
    return rank;
  }
};

TEST_P(Faults, AKilledRankIsNamed) {
  const RandomStream random(1, "faults.kill." + GetParam());
  for (int i = 0; i < repetitions(); ++i) {
    FaultyRun run(run_of(GetParam()));
    const int rank = hit(run, SIGKILL, random, i);
    ASSERT_GE(rank, 0) << run.wait().err;
    SCOPED_TRACE("repetition " + std::to_string(i) + ", rank " + std::to_string(rank));
    expect_failure(run, {named(rank) + " was killed by signal 9 (Killed)"});
  }
}

TEST_P(Faults, AStoppedRankIsNamed) {
  const RandomStream random(1, "faults.stop." + GetParam());
  for (int i = 0; i < repetitions(); ++i) {
    FaultyRun run(run_of(GetParam()));
    const int rank = hit(run, SIGSTOP, random, i);
    ASSERT_GE(rank, 0) << run.wait().err;
    SCOPED_TRACE("repetition " + std::to_string(i) + ", rank " + std::to_string(rank));
    expect_failure(run, {named(rank) + " is stopped"});
  }
}

TEST_P(Faults, AFailingRankIsNamed) {
  const RandomStream random(1, "faults.throw." + GetParam());
  for (int i = 0; i < repetitions(); ++i) {
    const auto at = static_cast<std::uint64_t>(i);
    const auto rank = static_cast<int>(random.integer_at(2 * at, kRanks));
    const std::string when = "0." + std::to_string(random.integer_at(2 * at + 1, 10)) + "s";
    FaultyRun run(run_of(GetParam(), {"--inject", std::to_string(rank) + ":" + when + ":throw"}));
    SCOPED_TRACE("repetition " + std::to_string(i) + ", rank " + std::to_string(rank) + " after " + when);
    run.wait_for_ranks(process_count());
    const std::string stage = " (stage" + std::to_string(rank / 2) + ")";
    expect_failure(run, {"rank " + std::to_string(rank) + stage + " failed in ", ": injected fault\n"});
  }
}

// The rank's kernel never ends. Others wait for it, or for those that do.
TEST_P(Faults, AHungRankIsNamedAfterTheTimeout) {
  FaultyRun run(run_of(GetParam(), {"--timeout", "2", "--inject", "2:step2:hang"}));
  ASSERT_FALSE(run.wait_for_ranks(process_count()).empty());
  expect_failure(run, {"rank 2 (stage1) has completed no op for 2 s in ", " waits for it in ", "help: --timeout"});
}

TEST_P(Faults, AnInterruptEndsEverything) {
  for (const auto& [number, code] : {std::pair(SIGINT, 130), std::pair(SIGTERM, 143)}) {
    FaultyRun run(run_of(GetParam()));
    ASSERT_FALSE(run.wait_for_ranks(process_count()).empty());
    ::kill(run.pid(), number);
    expect_end(run, code, {number == SIGINT ? "interrupted\n" : "ended by SIGTERM\n"});
  }
}

// Nobody is left to say anything, and no process to run on.
TEST_P(Faults, AKilledSupervisorLeavesNoOrphan) {
  FaultyRun run(run_of(GetParam()));
  ASSERT_FALSE(run.wait_for_ranks(process_count()).empty());
  ::kill(run.pid(), SIGKILL);
  EXPECT_EQ(run.wait().code, 128 + SIGKILL);
  EXPECT_EQ(run.left_processes(kSoon), Words());
  EXPECT_EQ(run.left_files(), Words());
}

INSTANTIATE_TEST_SUITE_P(Ranks, Faults, ::testing::Values("threads", "processes"),
                         [](const auto& param) { return param.param; });

// Started by mpirun as a user would: every `stepcast run` supervises one rank.
class FaultsUnderALauncher : public Faults {};

Words mpirun(const Words& first, const Words& second) {
  Words words = {"mpirun", "--oversubscribe"};
  if (::geteuid() == 0) words.emplace_back("--allow-run-as-root");
  words.insert(words.end(), {"-n", "2"});
  words.insert(words.end(), first.begin(), first.end());
  words.insert(words.end(), {":", "-n", "2"});
  words.insert(words.end(), second.begin(), second.end());
  return words;
}

TEST_P(FaultsUnderALauncher, AKilledRankIsNamed) {
  FaultyRun run(mpirun(run_of("processes"), run_of("processes")));
  const auto ranks = run.wait_for_ranks(kRanks);
  ASSERT_FALSE(ranks.empty()) << run.wait().err;
  ::kill(ranks.at(3), SIGKILL);
  expect_end(run, 6, {"error: rank 3 (stage1) was killed by signal 9 (Killed)", "\n  rank 3: host "});
}

TEST_P(FaultsUnderALauncher, RanksWithAnotherPlanAreRefused) {
  FaultyRun run(mpirun(run_of("processes"), run_of("processes", {"--set", "training.global_batch_size=16"})));
  const FaultyRun::End end = run.wait();
  EXPECT_EQ(end.code, 6) << end.err;
  EXPECT_EQ(count(end.err, "error: "), 1U) << end.err;
  EXPECT_NE(end.err.find("error: rank 2 (stage1) has read another plan than rank 0\n"), std::string::npos) << end.err;
}

TEST_P(FaultsUnderALauncher, RanksWithOtherStepsAreRefused) {
  FaultyRun run(mpirun(run_of("processes"), run_of("processes", {}, "7")));
  const FaultyRun::End end = run.wait();
  EXPECT_EQ(end.code, 6) << end.err;
  EXPECT_NE(end.err.find("error: rank 2 (stage1) was given other --steps than rank 0\n"), std::string::npos) << end.err;
}

INSTANTIATE_TEST_SUITE_P(Mpirun, FaultsUnderALauncher, ::testing::Values("processes"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace stepcast::cli
