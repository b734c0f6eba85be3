// `simulate` as scripts and people rely on it: figures, notes, remedies, identical bytes, output files.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/cli/program_run.h"

namespace stepcast::cli {
namespace {

TEST(Simulate, AnswersForLlama8bOnEightH100) {
  const ProgramRun run = stepcast(std::string("simulate ") + kEight + " --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["schema"], "stepcast/simulate/1");
  EXPECT_EQ(json["gpus"], 8);
  // Published safetensors metadata of Llama 3.1 8B.
  EXPECT_EQ(json["parameters"], 8030261248);
  EXPECT_EQ(json["plan"]["dp"], 2);
  EXPECT_EQ(json["evidence"]["nearest_published"]["id"], "dgxc-001");
  EXPECT_TRUE(json["band"]["low_s"].is_null());
  // 128 sequences of 8,192 tokens: 1,048,576 tokens at 6 * 7.504e9 + 12 * 32 * 4096 * 8192 FLOPs on 8 x 989.5 TFLOP/s
  // take at least 7.6 s; nobody trains below a tenth of the peak with this plan.
  const double step = json["step_time_s"];
  EXPECT_GT(step, 7.6);
  EXPECT_LT(step, 76);
  const auto& time = json["time_s"];
  double sum = 0;
  for (const char* key : {"compute", "optimizer", "host", "bubble"}) sum += time[key].get<double>();
  for (const auto& [kind, seconds] : time["exposed"].items()) sum += seconds.get<double>();
  EXPECT_NEAR(sum, step, 1e-9 * step);
  EXPECT_EQ(json["rank_classes"], 2);
  // What the driver reports of 80 GiB, in bytes: 81,559 MiB.
  EXPECT_EQ(json["memory"]["capacity_bytes"], 81559LL << 20);
  // Sequence parallelism gathers 8,192 x 4,096 elements of 2 bytes before each of a layer's two blocks.
  bool gathers = false;
  for (const auto& c : json["collectives"]) {
    gathers = gathers || (c["group"] == "tp" && c["op"] == "all_gather" && c["bytes"] == 8192 * 4096 * 2);
  }
  EXPECT_TRUE(gathers) << json["collectives"];
}

TEST(Simulate, FoldsWithoutChangingTheAnswer) {
  const auto folded = nlohmann::json::parse(stepcast(std::string("simulate --json ") + kTiny).out);
  const auto flat = nlohmann::json::parse(stepcast(std::string("simulate --json --no-fold ") + kTiny).out);
  for (const char* key :
       {"step_time_s", "time_s", "memory", "stages", "network", "collectives", "if_free_s", "fingerprint"})
    EXPECT_EQ(folded[key], flat[key]) << key;
  EXPECT_EQ(flat["rank_classes"], 4);
}

TEST(Simulate, SaysWhatTheStepTakesIfAKindOfTimeIsFree) {
  const auto json = nlohmann::json::parse(stepcast(std::string("simulate --json ") + kEight).out);
  const double step = json["step_time_s"];
  const auto& time = json["time_s"];
  // tp, pp and dp of 2 each: all three talk.
  for (const char* kind : {"tp", "pp", "dp"}) {
    ASSERT_TRUE(json["if_free_s"].contains(kind)) << json["if_free_s"];
    const double saved = step - json["if_free_s"][kind].get<double>();
    // Free communication takes nothing away from others, and no more than what it is exposed for plus what it slows.
    EXPECT_GE(saved, 0) << kind;
    EXPECT_LT(saved, step - time["compute"].get<double>() + time["slowed"].get<double>()) << kind;
  }
  EXPECT_FALSE(json["if_free_s"].contains("ep"));
  EXPECT_FALSE(json["if_free_s"].contains("cp"));
}

TEST(Simulate, SlowsNothingWithoutContention) {
  const std::string arguments = std::string("simulate --json ") + kEight;
  const auto with = nlohmann::json::parse(stepcast(arguments).out);
  const auto without = nlohmann::json::parse(stepcast(arguments + " --no-contention").out);
  EXPECT_GT(with["time_s"]["slowed"].get<double>(), 0);
  EXPECT_EQ(without["time_s"]["slowed"], 0.0);
  EXPECT_FALSE(without["if_free_s"].contains("slowdown"));
  // Kernels that nothing slows still share links.
  EXPECT_LT(with["if_free_s"]["slowdown"], with["step_time_s"]);
  EXPECT_GE(with["if_free_s"]["slowdown"], without["step_time_s"]);
  EXPECT_NE(without["not_modelled"].dump().find("--no-contention"), std::string::npos);
}

TEST(Simulate, KeepsToThePinsOfTheStack) {
  const ProgramRun run = stepcast(std::string("simulate --json --set stack.env.NCCL_ALGO=Ring ") + kEight);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  int collectives = 0;
  const auto json = nlohmann::json::parse(run.out);
  for (const auto& c : json["collectives"]) {
    if (c["op"] == "send") continue;
    EXPECT_EQ(c["algorithm"], "ring") << c;
    ++collectives;
  }
  EXPECT_GT(collectives, 0);
}

TEST(Simulate, GivesPercentilesUnderJitter) {
  const std::string arguments =
      std::string("simulate --json --set jitter.compute_sigma=0.1 --set jitter.samples=20 --set jitter.seed=3 ") +
      kTiny;
  const ProgramRun run = stepcast(arguments);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.err.find("jitter unfolds: 4 ranks simulated, 20 samples"), std::string::npos) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  const auto& jitter = json["jitter"];
  EXPECT_EQ(jitter["samples"], 20);
  EXPECT_EQ(jitter["seed"], 3);
  EXPECT_LT(jitter["min_s"], jitter["p50_s"]);
  EXPECT_LE(jitter["p50_s"], jitter["p90_s"]);
  EXPECT_LE(jitter["p90_s"], jitter["p99_s"]);
  // Of 20 values the 99th percentile is the 19.8th, the largest.
  EXPECT_EQ(jitter["p99_s"], jitter["max_s"]);
  // The answer is the one without jitter.
  const auto plain = nlohmann::json::parse(stepcast(std::string("simulate --json ") + kTiny).out);
  EXPECT_EQ(json["step_time_s"], plain["step_time_s"]);
  EXPECT_EQ(run.out, stepcast(arguments).out);
}

TEST(Simulate, WritesTheSameBytesTwice) {
  const std::string first = scratch("a.pftrace");
  const std::string second = scratch("b.pftrace");
  const std::string arguments = std::string("simulate --json ") + kTiny + " --trace ";
  const ProgramRun a = stepcast(arguments + first);
  const ProgramRun b = stepcast(arguments + second);
  ASSERT_EQ(a.exit_code, 0) << a.err;
  EXPECT_EQ(a.out, b.out);
  EXPECT_GT(file_text(first).size(), 1000U);
  EXPECT_EQ(file_text(first), file_text(second));
  std::filesystem::remove(first);
  std::filesystem::remove(second);
}

TEST(Simulate, SaysTheSameFromFlagsAsFromAFile) {
  const auto file = nlohmann::json::parse(stepcast(std::string("simulate --json ") + kEight).out);
  const ProgramRun run = stepcast(
      "simulate llama-3.1-8b --cluster hgx-h100 --gpus 8 --seq 8192 --gbs 128 --tp 2 --pp 2 --framework megatron-core "
      "--json "
      "--set name=llama-3.1-8b-h100x8");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto flags = nlohmann::json::parse(run.out);
  EXPECT_EQ(file["fingerprint"], flags["fingerprint"]);
  EXPECT_EQ(file["step_time_s"], flags["step_time_s"]);
}

TEST(Simulate, AnswersInFullWhenItDoesNotFit) {
  // 18 bytes per parameter of an 8 B model on one 80 GB device.
  const std::string arguments = std::string("simulate ") + kEight + " --set plan.tp=1 --set plan.pp=1 --set gpus=1";
  const ProgramRun run = stepcast(arguments + " --json");
  EXPECT_EQ(run.exit_code, 1) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["memory"]["verdict"], "oom");
  EXPECT_GT(json["step_time_s"].get<double>(), 0);
  const ProgramRun screen = stepcast(arguments);
  EXPECT_EQ(screen.exit_code, 1);
  EXPECT_TRUE(screen.out.starts_with("OOM  stage 0 needs ")) << screen.out;
  // One device leaves no degree to raise and no peer to share states with; recompute does not shrink 18 bytes per
  // parameter.
  EXPECT_NE(screen.out.find("no single change"), std::string::npos) << screen.out;
}

// A replica a device: 6 bytes of 8.03e9 parameters and an eighth of 12 are 56 GiB, and 32 layers keep about 139 kB a
// token, 34 GiB for 8,192. Of 79.6 GiB.
TEST(Simulate, SimulatesEveryRemedyItOffers) {
  const std::string arguments = kEight + " --set plan.tp=1 --set plan.pp=1 --set plan.zero=1";
  const ProgramRun run = stepcast("simulate --json " + arguments);
  ASSERT_EQ(run.exit_code, 1) << run.err;
  const auto remedies = nlohmann::json::parse(run.out)["remedies"];
  ASSERT_GE(remedies.size(), 4U) << remedies;
  double last = 0;
  for (const auto& remedy : remedies) {
    const std::string setting = remedy["setting"];
    const ProgramRun changed = stepcast("simulate --json " + arguments + " --set '" + setting + "'");
    const auto answer = nlohmann::json::parse(changed.out);
    EXPECT_EQ(answer["step_time_s"], remedy["step_time_s"]) << setting;
    EXPECT_EQ(answer["memory"]["device_bytes"], remedy["device_bytes"]) << setting;
    EXPECT_EQ(answer["memory"]["verdict"], remedy["verdict"]) << setting;
    // Those that fit come first, the fastest first.
    if (remedy["verdict"] == "oom") break;
    EXPECT_LE(last, remedy["step_time_s"].get<double>()) << setting;
    last = remedy["step_time_s"];
  }
  EXPECT_GT(last, 0);
  EXPECT_NE(remedies[0]["verdict"], "oom");
  const std::string next = "next: --set " + remedies[0]["setting"].get<std::string>() + "\n";
  EXPECT_TRUE(stepcast("simulate " + arguments).out.ends_with(next));
}

// The parts of what a device holds, and NCCL's buffers for the groups of the plan: tp2, pp2 and dp2 on one node.
TEST(Simulate, SaysWhatADeviceHolds) {
  const ProgramRun run = stepcast("simulate --json " + kEight);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto memory = nlohmann::json::parse(run.out)["memory"];
  const auto& parts = memory["device_parts"];
  EXPECT_GT(parts["communicator_bytes"], 0);
  EXPECT_EQ(memory["reserved_bytes"].get<std::int64_t>(),
            memory["allocated_bytes"].get<std::int64_t>() + parts["fragmentation_bytes"].get<std::int64_t>());
  EXPECT_EQ(memory["device_bytes"].get<std::int64_t>(),
            memory["reserved_bytes"].get<std::int64_t>() + parts["context_bytes"].get<std::int64_t>() +
                parts["workspace_bytes"].get<std::int64_t>() + parts["communicator_bytes"].get<std::int64_t>());
  EXPECT_EQ(parts["user_buffer_bytes"], 0);
  const ProgramRun overlapped = stepcast("simulate --json " + kEight + " --set plan.overlap.tp_comm=true");
  EXPECT_GT(nlohmann::json::parse(overlapped.out)["memory"]["device_parts"]["user_buffer_bytes"], 0);
  const std::string screen = stepcast("simulate " + kEight + " --set plan.overlap.tp_comm=true").out;
  EXPECT_NE(screen.find("user buffers "), std::string::npos) << screen;
}

TEST(Simulate, TakesACalibrationPathOfTheCommandLineFromTheCurrentFolder) {
  const std::string arguments = std::string("simulate --json ") + kEight;
  const ProgramRun named = stepcast(arguments + " --calibration h100-default");
  const ProgramRun run = stepcast(arguments + " --calibration scenarios/calibrations/h100-default.yaml");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, named.out);
  const ProgramRun missing = stepcast(arguments + " --calibration scenarios/none.yaml");
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_NE(missing.err.find("--calibration scenarios/none.yaml"), std::string::npos) << missing.err;
}

TEST(Simulate, WarnsOfAnotherDevicesCalibration) {
  const std::string arguments = std::string("simulate --json ") + kEight + " --calibration ";
  const auto warnings_with = [&](const std::string& name) {
    return nlohmann::json::parse(stepcast(arguments + name).out)["warnings"].dump();
  };
  EXPECT_NE(warnings_with("cpu-reference").find("W301 calibration cpu-reference"), std::string::npos);
  EXPECT_EQ(warnings_with("h100-default").find("W30"), std::string::npos);
}

TEST(Simulate, FallsBackOnARelativesCalibration) {
  const auto answer = [](const std::string& cluster) {
    const ProgramRun run = stepcast("simulate llama-3.2-1b --gpus 8 --seq 1024 --gbs 8 --json --cluster " + cluster);
    EXPECT_EQ(run.exit_code, 0) << cluster << run.err;
    return nlohmann::json::parse(run.out);
  };
  const std::pair<const char*, const char*> relatives[] = {{"hgx-h200", "h100-default"},
                                                           {"hgx-h20", "h100-default"},
                                                           {"hgx-h800", "h100-default"},
                                                           {"hgx-a800", "a100-default"},
                                                           {"hgx-b300", "b200-default"}};
  for (const auto& [cluster, calibration] : relatives) {
    const auto json = answer(cluster);
    EXPECT_EQ(json["calibration"]["name"], calibration) << cluster;
    EXPECT_NE(json["warnings"].dump().find(std::string("W302 calibration ") + calibration), std::string::npos)
        << cluster << json["warnings"];
  }
  for (const char* cluster : {"hgx-h100", "hgx-a100-40", "hgx-b200", "mi300x-8"}) {
    EXPECT_EQ(answer(cluster)["warnings"].dump().find("W30"), std::string::npos) << cluster;
  }
}

TEST(Simulate, KeepsAJsonScenarioWhenItsClusterIsReplaced) {
  const std::string file = scratch("scenario.json");
  std::ofstream(file) << R"({"model": "llama-3.2-1b", "cluster": "local-cpu", "gpus": 2,
                             "training": {"sequence_length": 1024, "global_batch_size": 8}, "plan": {"tp": 2}})";
  const ProgramRun run = stepcast("simulate " + file + " --cluster hgx-h100 --json");
  std::filesystem::remove(file);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["plan"]["tp"], 2);
  // NVIDIA H100 data sheet: 989.5 TFLOP/s of dense bf16.
  EXPECT_NEAR(json["peak_tflops"].get<double>(), 989.5, 0.1);
  const ProgramRun model =
      stepcast("simulate scenarios/models/llama-3.2-1b.json --cluster hgx-h100 --gpus 2 --seq 1024 --gbs 8 --json");
  EXPECT_EQ(model.exit_code, 0) << model.err;
}

TEST(Simulate, SaysWhatAModelNeeds) {
  const ProgramRun run = stepcast("simulate llama-3.1-8b");
  EXPECT_NE(run.err.find("a model needs --cluster, --gpus, --seq and --gbs"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("stepcast simulate llama-3.1-8b --cluster hgx-h100"), std::string::npos) << run.err;
}

TEST(Simulate, KeepsItsScreenWithinItsColumns) {
  for (const std::string& scenario : {kTiny, kEight}) {
    const ProgramRun run = stepcast(std::string("simulate ") + scenario);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    std::istringstream lines(run.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120U) << line;
  }
}

TEST(Simulate, SearchesPresetsOnStepcastPath) {
  const std::filesystem::path folder = scratch("presets");
  std::filesystem::create_directories(folder / "models");
  std::filesystem::copy_file(std::string(STEPCAST_SOURCE_DIR) + "/scenarios/models/llama-3.2-1b.json",
                             folder / "models" / "my-model.json");
  const std::string arguments = "simulate my-model --cluster hgx-h100 --gpus 8 --seq 1024 --gbs 8 --json";
  EXPECT_EQ(stepcast(arguments).exit_code, 3);
  ::setenv("STEPCAST_PATH", folder.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): tests run one at a time
  const ProgramRun run = stepcast(arguments);
  ::unsetenv("STEPCAST_PATH");  // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(run.exit_code, 0) << run.err;
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace stepcast::cli
