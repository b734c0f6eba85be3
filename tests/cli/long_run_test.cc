// What is said of long simulations, and that they can be ended.
#include "cli/long_run.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/cli/program_run.h"

namespace stepcast::cli {
namespace {

const char* const k405b = "scenarios/runs/llama-3.1-405b-h100x16384.yaml";

TEST(LongRunNote, SaysWhatIsSimulated) {
  EXPECT_EQ(long_run_note(16'384, 2'048, 11'360'640, 7),
            "note: simulating 2,048 classes of 16,384 ranks: about 11 million ops, up to 7 times (the answer and its "
            "what-ifs)");
  EXPECT_EQ(long_run_note(2, 1, 2'500'000, 1), "note: simulating 1 class of 2 ranks: about 3 million ops");
  EXPECT_EQ(long_run_note(4'096, 4'096, 2'500'000, 1),
            "note: simulating 4,096 classes of 4,096 ranks: about 3 million ops");
  EXPECT_EQ(long_run_note(131'072, 16'384, kMostOpsWithWhatIfs, 1),
            "note: simulating 16,384 classes of 131,072 ranks: about 20 million ops, without what-ifs");
}

// 75,617 ops of two classes at a batch of 128 are 302,468 of eight ranks; nearly four times as many at 512.
TEST(LongRun, IsAnnounced) {
  const ProgramRun run =
      stepcast("simulate scenarios/runs/llama-3.1-8b-h100x8.yaml --no-fold --set training.global_batch_size=512");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_NE(run.err.find("note: simulating 8 classes of 8 ranks: about 1 million ops\n"), std::string::npos) << run.err;
}

// 16,384 ranks one by one are 91 million ops: a minute and 8 GB. Folding and pricing come before the engine.
TEST(LongRun, EndsWithinASecondOfAnInterrupt) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(interrupted({"simulate", k405b, "--no-fold"}), 130);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace stepcast::cli
