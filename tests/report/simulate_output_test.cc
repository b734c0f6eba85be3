// What the screen and the JSON of `simulate` say of figures worked out by hand.
#include "report/simulate_output.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "tests/report/by_hand.h"

namespace stepcast::report {
namespace {

TEST(SimulateJson, HasTheContractsKeysInTheSameBytes) {
  const SimulationReport r = report_with(scenario());
  const std::string text = simulate_json(r);
  EXPECT_EQ(text, simulate_json(report_with(scenario())));
  const auto json = nlohmann::json::parse(text);
  for (const char* key : {"schema",
                          "scenario",
                          "gpus",
                          "plan",
                          "parameters",
                          "active_parameters",
                          "step_time_s",
                          "band",
                          "tokens_per_s",
                          "tokens_per_s_per_gpu",
                          "model_tflops_per_gpu",
                          "hardware_tflops_per_gpu",
                          "mfu",
                          "hfu",
                          "peak_tflops",
                          "bubble_fraction",
                          "time_s",
                          "stages",
                          "memory",
                          "network",
                          "collectives",
                          "if_free_s",
                          "remedies",
                          "microbatches",
                          "top_tensors",
                          "other_gradients",
                          "evidence",
                          "warnings",
                          "assumptions",
                          "not_modelled",
                          "calibration",
                          "ranks",
                          "rank_classes",
                          "link_classes",
                          "events",
                          "fingerprint"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["step_time_s"], 1e-3);
  EXPECT_EQ(json["memory"]["stages"][0]["weights"], 48);
  EXPECT_EQ(json["memory"]["verdict"], "fits");
  EXPECT_EQ(json["memory"].at("reserved_bytes"), 136);
  EXPECT_EQ(json["memory"].at("device_bytes"), 136);
  EXPECT_EQ(json["calibration"]["stack"], "no kernels");
  // The Program by hand has no collective.
  EXPECT_EQ(json["collectives"], nlohmann::json::array());
  EXPECT_EQ(json["ranks"], 4);
  EXPECT_EQ(json["fingerprint"].get<std::string>().size(), 16U);
}

TEST(SimulateJson, TellsOfTheNetwork) {
  const auto json = nlohmann::json::parse(simulate_json(report_of_traffic(scenario())));
  EXPECT_EQ(json["network"][0], nlohmann::json::parse(R"({"tier": "scale_up", "bytes": 2e9, "mean_utilisation": 0.25,
                                      "peak_utilisation": 0.9, "links": 4,
                                      "carries": [{"group": "dp", "bytes": 1.5e9}, {"group": "pp", "bytes": 5e8},
                                                  {"group": "world", "bytes": 4.0}]})"));
  EXPECT_EQ(json["collectives"][0],
            nlohmann::json::parse(R"({"group": "dp", "op": "all_reduce", "bytes": 32, "count": 3, "algorithm": "ring",
                                      "protocol": "simple", "busbw_gb_per_s": 370.0, "exposed_s": 0.00015})"));
  EXPECT_TRUE(json["collectives"][0]["count"].is_number_integer());
  EXPECT_DOUBLE_EQ(json["time_s"]["slowed"].get<double>(), 0.03e-3);
  EXPECT_DOUBLE_EQ(json["stages"][0]["slowed_s"].get<double>(), 0.06e-3);
  EXPECT_DOUBLE_EQ(json["stages"][0]["compute_max_s"].get<double>(), 0.6e-3);
  EXPECT_EQ(json["link_classes"], 1);
  EXPECT_FALSE(json.contains("jitter"));
}

TEST(SimulateJson, TellsOfWhatIfsThatWereSimulated) {
  using literals::operator""_us;
  plan::Scenario s = scenario();
  s.jitter = plan::Jitter{.compute_sigma = 0.02, .comm_sigma = 0.1, .samples = 2, .seed = 7};
  const WhatIfs what_ifs{.if_free = {{sim::Free::kDp, 850_us}, {sim::Free::kSlowdown, 970_us}},
                         .jittered_steps = {1100_us, 900_us}};
  const auto json = nlohmann::json::parse(simulate_json(report_of_traffic(s, what_ifs)));
  EXPECT_EQ(json["if_free_s"].size(), 2U);
  EXPECT_DOUBLE_EQ(json["if_free_s"]["dp"].get<double>(), 0.85e-3);
  EXPECT_DOUBLE_EQ(json["if_free_s"]["slowdown"].get<double>(), 0.97e-3);
  const auto& jitter = json["jitter"];
  EXPECT_EQ(jitter["samples"], 2);
  EXPECT_EQ(jitter["seed"], 7);
  EXPECT_EQ(jitter["compute_sigma"], 0.02);
  EXPECT_EQ(jitter["comm_sigma"], 0.1);
  EXPECT_DOUBLE_EQ(jitter["p50_s"].get<double>(), 0.9e-3);
  EXPECT_DOUBLE_EQ(jitter["p90_s"].get<double>(), 1.1e-3);
  EXPECT_DOUBLE_EQ(jitter["p99_s"].get<double>(), 1.1e-3);
  EXPECT_DOUBLE_EQ(jitter["mean_s"].get<double>(), 1e-3);
  EXPECT_DOUBLE_EQ(jitter["min_s"].get<double>(), 0.9e-3);
  EXPECT_DOUBLE_EQ(jitter["max_s"].get<double>(), 1.1e-3);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The first line that starts with `start`; "" without one.
std::string line_of(const std::string& text, const std::string& start) {
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with(start)) return line;
  }
  return "";
}

TEST(SimulateScreen, SaysWhatIsSavedAndHidden) {
  using literals::operator""_us;
  plan::Scenario s = scenario();
  s.cluster.node.device.multiprocessors = 128;
  const WhatIfs what_ifs{
      .if_free = {{sim::Free::kPp, 1000_us}, {sim::Free::kDp, 850_us}, {sim::Free::kSlowdown, 970_us}}};
  const std::string screen = simulate_screen(report_of_traffic(s, what_ifs));
  // dp: 0.15 of 1 ms is exposed; 0.15 is saved; of 0.4 ms moving 62.5 % are hidden (62 to even). Stage 0 waits 0.3 ms.
  EXPECT_EQ(line_of(screen, " exposed dp"),
            " exposed dp              0.150   15.0         -0.150  0.000 (s1)..0.300 (s0)      62 % of 400 us hidden");
  EXPECT_EQ(line_of(screen, " exposed pp"),
            " exposed pp              0.000    0.0          0.000  0.000 (s0)..0.000 (s1)      100 % of 200 us hidden");
  EXPECT_EQ(line_of(screen, "  slowed by overlap"),
            "  slowed by overlap    (0.030)                -0.030  0.000 (s1)..0.060 (s0)      "
            "communication holds <= 16 of 128 SMs");
  EXPECT_EQ(line_of(screen, " optimizer"),
            " optimizer               0.100   10.0              -  0.000 (s0)..0.200 (s1)");
  EXPECT_EQ(line_of(screen, "what would change it:"), "what would change it: dp free -15.0 %");
}

TEST(SimulateScreen, ShowsTrafficBesideMemory) {
  const std::string screen = simulate_screen(report_of_traffic(scenario()));
  // Memory in MiB, since 136 bytes are less than a GiB.
  EXPECT_EQ(
      line_of(screen, "network"),
      "network (per GPU)  GB/step  mean  peak  carries          memory MiB weights  grads  optim   activ   comm   "
      "total");
  EXPECT_TRUE(line_of(screen, " scale_up").starts_with(" scale_up             2.00  25 %  90 %  dp 1.50 pp 0.500"))
      << screen;
  EXPECT_EQ(screen.find("world"), std::string::npos) << screen;  // 4 bytes of 2 GB
  EXPECT_TRUE(line_of(screen, " core").starts_with(" core                0.500   3 % 100 %  pp 0.500")) << screen;
  EXPECT_NE(screen.find("ranks 4 in 2 classes, shared links in 1 class, 3 ops"), std::string::npos) << screen;
}

// The reason is told of what takes more than a hundredth of all; of a matmul's own there is no name to tell.
TEST(SimulateScreen, SaysWhatGradientsStandBesideTheirSum) {
  SimulationReport r = report_of_traffic(scenario());
  EXPECT_EQ(simulate_screen(r).find("\ngrads"), std::string::npos);
  constexpr std::int64_t kMiB = 1 << 20;
  r.memory.allocated_bytes = 1000 * kMiB;
  const auto gradients = program::MemoryClass::kGradients;
  r.memory.other_gradients = {{"bucket*", gradients, 2, 512 * kMiB},
                              {"down.fresh", gradients, 1, 11 * kMiB},
                              {"placeholder_*x*", gradients, 1, 10 * kMiB}};
  const std::string screen = simulate_screen(r);
  EXPECT_TRUE(line_of(screen, "grads")
                  .starts_with("grads    beside the sum of all microbatches: bucket* 0.5 GiB (of "
                               "buckets that are not reduced yet, whole), down.fresh"))
      << screen;
  EXPECT_EQ(line_of(screen, "         11.00 MiB"), "         11.00 MiB (of one matmul, not added yet)");
  EXPECT_EQ(screen.find("placeholder"), std::string::npos);
}

TEST(SimulateScreen, SumsUpJitter) {
  using literals::operator""_us;
  plan::Scenario s = scenario();
  s.jitter = plan::Jitter{.compute_sigma = 0.02, .comm_sigma = 0.1, .samples = 2, .seed = 7};
  const std::string screen = simulate_screen(report_of_traffic(s, {.jittered_steps = {1100_us, 1000_us}}));
  EXPECT_NE(
      screen.find("jitter   p50 1.000 p90 1.100 p99 1.100 ms/step, min..max 1.000..1.100, mean 1.050 (2 samples of "
                  "4 ranks,"),
      std::string::npos)
      << screen;
}

// 16 stages, every kind of traffic of a dense model, numbers as wide as they get: one screen.
TEST(SimulateScreen, FitsOnAScreenWithManyStages) {
  SimulationReport r = report_of_traffic(scenario());
  r.step_time_s = 1234.567;
  r.stages.resize(16, r.stages.front());
  for (std::size_t i = 0; i < r.stages.size(); ++i) {
    r.stages[i].stage = static_cast<std::int32_t>(i);
    r.stages[i].allocated_bytes = std::int64_t{1289} << 30;
    r.stages[i].at_peak.fill(std::int64_t{257} << 30);
    r.stages[i].time.compute_s = 1000 + static_cast<double>(i);
  }
  r.memory.allocated_bytes = std::int64_t{1289} << 30;
  r.memory.capacity_bytes = std::int64_t{1290} << 30;
  r.memory.peak_stage = 11;
  r.moving_s.fill(12.5);
  r.kinds_in_use.clear();
  using enum sim::Free;
  for (const sim::Free kind : {kTp, kCp, kPp, kDp, kGather, kHost, kOptimizer, kSlowdown}) {
    r.kinds_in_use.push_back(kind);
    r.if_free.push_back({kind, 1000.125});
  }
  for (const char* tier : {"nic", "leaf", "spine"}) {
    r.network.push_back({tier, 16384, 123.4e9, 1, 1, {{"dp", 100e9}, {"tp", 20e9}, {"pp", 3e9}, {"ep_dp", 0.4e9}}});
  }
  const std::vector<std::string> lines = lines_of(simulate_screen(r));
  EXPECT_LE(lines.size(), 45U) << simulate_screen(r);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 120U) << line;
  const std::string screen = simulate_screen(r);
  EXPECT_NE(screen.find("stage 11     257.0  257.0  257.0   257.0  257.0    1289 <- peak"), std::string::npos)
      << screen;
  // From a thousand seconds on, one decimal.
  EXPECT_NE(screen.find("1000.0 (s0)..1015.0 (s15)"), std::string::npos) << screen;
  EXPECT_NE(screen.find("and 12 other stages: --json"), std::string::npos) << screen;  // 0, 8, 11 and 15 are shown
}

TEST(SimulateScreen, PutsTheVerdictFirstWithinTheColumns) {
  plan::Scenario s = scenario();
  EXPECT_TRUE(simulate_screen(report_with(s)).starts_with("OK  1.000 ms/step (uncalibrated)  32,000 tok/s/GPU"));
  s.cluster.node.device.memory = Bytes(100);
  const std::string oom = simulate_screen(report_with(s));
  EXPECT_TRUE(oom.starts_with("OOM  stage 0 needs ")) << oom;
  std::istringstream lines(oom);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120U) << line;
}

// Words of a text that a screen may break into lines.
std::string one_line(const std::string& screen) {
  std::istringstream words(screen);
  std::string line;
  for (std::string word; words >> word;) line += word + " ";
  return line;
}

// Names as plan/ gives them to buffers of gradients that are no sums; each stands alone, and is more than a hundredth.
TEST(SimulateScreen, SaysWhyGradientsStandBesideTheirSum) {
  const std::pair<const char*, const char*> reasons[] = {
      {"unsharded_gradients*", "whole, until the step's reduction"},
      {"gradient_ring*", "of the units that are being reduced, whole"},
      {"bucket*", "of buckets that are not reduced yet, whole"},
      {"main_gradients*", "their fp32 copies, which the optimizer reads"},
      {"placeholder_*x*", "Transformer Engine's placeholders, never written"},
      {"F.m*.L*.qkv.fresh", "of one matmul, not added yet"}};
  for (const auto& [name, reason] : reasons) {
    SimulationReport r = report_with(scenario());
    r.memory.allocated_bytes = std::int64_t{100} << 30;
    r.memory.other_gradients = {{name, program::MemoryClass::kGradients, 1, std::int64_t{2} << 30}};
    const std::string screen = one_line(simulate_screen(r));
    EXPECT_NE(screen.find(std::string(name) + " 2.0 GiB (" + reason + ")"), std::string::npos) << screen;
    r.memory.other_gradients[0].bytes = std::int64_t{1} << 30;
    EXPECT_EQ(simulate_screen(r).find(reason), std::string::npos) << name;
  }
}

TEST(SimulateScreen, SaysWhyHfuMayLieBelowMfu) {
  // HFU 72e-6, MFU full 0.39.
  const std::string screen = simulate_screen(report_with(scenario()));
  EXPECT_NE(screen.find("HFU 0.0 % (causal, flash bwd 2.5x)"), std::string::npos) << screen;
  EXPECT_NE(screen.find("may lie below MFU full"), std::string::npos) << screen;
  // With full recompute, say, HFU is the larger one and nothing is to explain.
  SimulationReport r = report_with(scenario());
  r.hfu = 0.5;
  EXPECT_EQ(simulate_screen(r).find("may lie below MFU full"), std::string::npos);
}

TEST(SimulateScreen, OffersTheRemediesItWasGivenAndNoOthers) {
  plan::Scenario s = scenario();
  s.cluster.node.device.memory = Bytes(100);
  SimulationReport r = report_with(s);
  r.remedies = {{.setting = "plan.pp=4",
                 .device_bytes = std::int64_t{3} << 29,
                 .free_bytes = std::int64_t{1} << 29,
                 .step_time_s = r.step_time_s,
                 .verdict = Verdict::kFits,
                 .warnings = {}},
                {.setting = "plan.zero=1",
                 .device_bytes = std::int64_t{3} << 30,
                 .free_bytes = -(std::int64_t{1} << 30),
                 .step_time_s = r.step_time_s,
                 .verdict = Verdict::kOom,
                 .warnings = {}}};
  const std::string screen = simulate_screen(r);
  EXPECT_NE(screen.find("\n plan.pp=4                                            1.5"), std::string::npos) << screen;
  EXPECT_NE(screen.find("fits, 0.5 GiB free\n"), std::string::npos) << screen;
  EXPECT_NE(screen.find("no, over by 1.0 GiB\n"), std::string::npos) << screen;
  EXPECT_TRUE(screen.ends_with("next: --set plan.pp=4\n")) << screen;
  r.remedies.clear();
  EXPECT_TRUE(simulate_screen(r).ends_with(
      "no single change of recompute, schedule, tp, cp, pp, vp, zero or micro_batch_size makes it fit\n"));
  const std::string fits = simulate_screen(report_with(scenario()));
  EXPECT_EQ(fits.find("--set"), std::string::npos) << fits;
}

}  // namespace
}  // namespace stepcast::report
