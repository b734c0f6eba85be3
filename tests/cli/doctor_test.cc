// `stepcast doctor` as a user runs it, and how it asks other programs.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/capture.h"
#include "tests/cli/program_run.h"

namespace stepcast::cli {
namespace {

TEST(Doctor, AnswersAndAgreesWithItself) {
  const ProgramRun run = stepcast("doctor --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_GT(json["memory_bytes"], json["available_bytes"]);
  EXPECT_GE(json["cores"], 1);
  for (const auto& state : json["backends"]) {
    const std::string backend = state["backend"];
    const std::string question = "doctor --backend " + backend + " --ranks-as " + state["ranks_as"].get<std::string>();
    EXPECT_EQ(stepcast(question).exit_code, state["works"] ? 0 : 5) << question;
  }
  // A rank program that answers says what it links.
  if (json["programs"][0]["path"].is_null()) GTEST_SKIP() << "stepcast-rank is not built";
  EXPECT_TRUE(json["onednn"].get<std::string>().starts_with("oneDNN "));
}

// Either there is a program for GPUs, or doctor and run both say that there is none.
TEST(Doctor, SaysTheSameOfGpusAsRunDoes) {
  const ProgramRun doctor = stepcast("doctor --backend cuda");
  if (doctor.exit_code == 0) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_EQ(doctor.exit_code, 5);
  const ProgramRun run = stepcast("run " + kTiny + " --backend cuda");
  EXPECT_EQ(run.exit_code, 5);
  EXPECT_NE(run.err.find("help: "), std::string::npos) << run.err;
  const bool built = doctor.out.find("stepcast-rank-cuda is not built") == std::string::npos;
  EXPECT_EQ(run.err.find("which is not there") == std::string::npos, built) << run.err;
}

TEST(Doctor, SeesTheLauncherAndItsVariables) {
  EXPECT_TRUE(nlohmann::json::parse(stepcast("doctor --json").out)["launcher"].is_null());
  const std::map<std::string, std::string> torchrun = {
      {"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "29500"}};
  for (const auto& [name, value] : torchrun) ::setenv(name.c_str(), value.c_str(), 1);
  const auto json = nlohmann::json::parse(stepcast("doctor --json").out);
  for (const auto& [name, value] : torchrun) ::unsetenv(name.c_str());
  EXPECT_EQ(json["launcher"], "torchrun");
  EXPECT_EQ(json["environment"]["MASTER_PORT"], "29500");
}

TEST(Capture, ReadsBothStreamsAndTheCode) {
  const Captured said = capture({"sh", "-c", "echo out; echo err >&2; exit 3"}, 10);
  EXPECT_TRUE(said.started);
  EXPECT_TRUE(said.ended);
  EXPECT_EQ(said.exit_code, 3);
  EXPECT_EQ(said.out, "out\nerr\n");
  EXPECT_FALSE(said.succeeded());
  EXPECT_TRUE(capture({"true"}, 10).succeeded());
}

TEST(Capture, SaysWhatIsNotThere) {
  const Captured none = capture({"/no/such/program"}, 10);
  EXPECT_FALSE(none.started);
  EXPECT_FALSE(none.succeeded());
}

// What the program has started ends with it: else the pipe would stay open for the thirty seconds.
TEST(Capture, EndsWhatTakesTooLong) {
  const auto begin = std::chrono::steady_clock::now();
  const Captured slow = capture({"sh", "-c", "echo begun; sleep 30; echo over"}, 0.3);
  EXPECT_FALSE(slow.ended);
  EXPECT_EQ(slow.out, "begun\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

}  // namespace
}  // namespace stepcast::cli
