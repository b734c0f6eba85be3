// `check`, `run` and `dump` as scripts rely on them.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/cli/program_run.h"

namespace stepcast::cli {
namespace {

TEST(Check, ShowsWhereEachValueComesFrom) {
  const ProgramRun run = stepcast(std::string("check --show-config --set plan.vp=1 ") + kTiny);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("--set plan.vp=1"), std::string::npos);
  EXPECT_NE(run.out.find("tiny-llama-tp2-pp2.yaml:"), std::string::npos);
}

TEST(Check, ListsBrokenRulesAsJson) {
  const ProgramRun run = stepcast(std::string("check --json --set gpus=20 --set plan.pp=5 ") + kTiny);
  EXPECT_EQ(run.exit_code, 1);
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["valid"], false);
  ASSERT_GE(json["violations"].size(), 1U);
  EXPECT_EQ(json["violations"][0]["kind"], "input");
}

TEST(Check, TellsUnsupportedFromBroken) {
  const std::string arguments = kEight + " --set plan.zero=3";
  const ProgramRun screen = stepcast("check " + arguments);
  EXPECT_EQ(screen.exit_code, 4);
  EXPECT_TRUE(screen.out.starts_with("UNSUPPORTED  ")) << screen.out;
  const ProgramRun run = stepcast("check --json " + arguments);
  EXPECT_EQ(run.exit_code, 4);
  EXPECT_EQ(nlohmann::json::parse(run.out)["violations"][0]["kind"], "unsupported");
}

TEST(Run, ReproducesTheSingleRankReference) {
  const std::string trace = scratch("run.pftrace");
  const ProgramRun run =
      stepcast(std::string("run --backend cpu --reference --steps 3 --json --trace ") + trace + " " + kTiny);
  ASSERT_EQ(run.exit_code, 0) << run.err << run.out;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["backend"], "cpu");
  EXPECT_EQ(json["ranks"], 4);
  EXPECT_EQ(json["steps"].size(), 3U);
  EXPECT_LE(json["loss_error"].get<double>(), 1e-5);
  EXPECT_LE(json["gradient_error"].get<double>(), 1e-4);
  EXPECT_EQ(json["checks"]["measured_ops"], json["checks"]["simulated_ops"]);
  EXPECT_EQ(json["checks"]["memory_differences"].size(), 0U);
  EXPECT_GT(file_text(trace).size(), 1000U);
  std::filesystem::remove(trace);
}

TEST(Run, StartsItsScreenWithTheVerdict) {
  const ProgramRun run = stepcast(std::string("run --backend cpu --reference --steps 1 ") + kTiny);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.out.starts_with("PASS  same as 1 rank: loss ")) << run.out;
  EXPECT_NE(run.out.find("not GPU numbers"), std::string::npos);
}

// The readable kernels and the fast ones, bound to cores or not, train alike: losses differ by rounding only.
TEST(Run, RunsReferenceKernelsToo) {
  std::vector<double> losses;
  for (const char* backend : {"reference", "cpu --bind-cores --threads-per-rank 1"}) {
    const ProgramRun run = stepcast(std::string("run --json --steps 2 ") + kTiny + " --backend " + backend);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto json = nlohmann::json::parse(run.out);
    EXPECT_TRUE(std::string(backend).starts_with(json["backend"].get<std::string>())) << json["backend"];
    losses.push_back(json["steps"][1]["loss"].get<double>());
  }
  EXPECT_NEAR(losses[0], losses[1], 1e-5 * losses[0]);
}

TEST(Run, RefusesThreadsThatThereAreNoCoresFor) {
  const ProgramRun run = stepcast("run --backend cpu --threads-per-rank 100000 " + kTiny);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("a rank cannot have 100000 threads"), std::string::npos) << run.err;
}

// A copy of the program without the one beside it that has the fast kernels.
TEST(Run, SaysWhatIsMissingWithoutTheRankProgram) {
  const std::string copy = scratch("alone");
  std::filesystem::copy_file(STEPCAST_BINARY, copy);
  const std::string errors = scratch("errors");
  const std::string arguments = "' run --backend cpu '" STEPCAST_SOURCE_DIR "/" + kTiny + "' 2> '" + errors + "'";
  const int status = std::system(("'" + copy + arguments).c_str());  // NOLINT(concurrency-mt-unsafe): one at a time
  EXPECT_EQ(WEXITSTATUS(status), 5);
  EXPECT_NE(file_text(errors).find("--backend reference"), std::string::npos) << file_text(errors);
  std::filesystem::remove(copy);
  std::filesystem::remove(errors);
}

// The same training, its ranks as processes under mpirun: the same losses to the bit, ops and bytes as simulated.
TEST(Run, RunsRanksAsProcesses) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "Open MPI's own leaks would fail the ranks (tests/mpi_run)";
#endif
  std::vector<std::string> losses;
  for (const char* ranks_as : {"threads", "processes"}) {
    const ProgramRun run =
        stepcast("run --json --backend cpu --steps 2 --reference " + kTiny + " --ranks-as " + ranks_as);
    if (run.exit_code == 5) GTEST_SKIP() << run.err;  // no MPI here
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto json = nlohmann::json::parse(run.out);
    EXPECT_EQ(json["ranks_as"], ranks_as);
    EXPECT_EQ(json["passes"], true);
    EXPECT_EQ(json["checks"]["unmatched_ops"], 0);
    losses.push_back(json["steps"][0]["loss"].dump() + " " + json["steps"][1]["loss"].dump());
  }
  EXPECT_EQ(losses[0], losses[1]);
}

TEST(Run, EndsAtAnInterruptWithoutAFile) {
  const std::string trace = scratch("interrupted.pftrace");
  EXPECT_EQ(interrupted({"run", "--backend", "cpu", "--steps", "1000000", "--trace", trace, kTiny}), 130);
  EXPECT_FALSE(std::filesystem::exists(trace));
}

TEST(Dump, PrintsTheProgram) {
  const ProgramRun run = stepcast(std::string("dump ") + kTiny);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("stage0"), std::string::npos);
}

TEST(Dump, GivesTheSameTextAsJson) {
  const ProgramRun run = stepcast(std::string("dump --json ") + kTiny);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["schema"], "stepcast/dump/1");
  EXPECT_EQ(json["text"], stepcast(std::string("dump ") + kTiny).out);
  const auto simulated = nlohmann::json::parse(stepcast(std::string("simulate --json ") + kTiny).out);
  EXPECT_EQ(json["fingerprint"], simulated["fingerprint"]);
}

}  // namespace
}  // namespace stepcast::cli
