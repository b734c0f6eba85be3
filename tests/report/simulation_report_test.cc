// Report figures worked out by hand on a Program of one matmul and a prediction made up for it.
#include "report/simulation_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "program/builder.h"
#include "report/simulate_output.h"

namespace stepcast::report {
namespace {

using program::MemoryClass;

// c[2,4] = a[2,3] b[4,3]^T: 2 * 2 * 4 * 3 = 48 FLOPs. Stage 0 calls it twice, stage 1 once; two ranks each.
program::CheckedProgram matmul_program() {
  program::ProgramBuilder b("matmul");
  program::SegmentBuilder segment("mlp");
  const program::Ref a = segment.slot("a", program::DType::kF32, {2, 3});
  const program::Ref w = segment.slot("b", program::DType::kF32, {4, 3});
  const program::Ref c = segment.slot("c", program::DType::kF32, {2, 4});
  segment.op(program::OpKind::kMatmul, program::Stream::kCompute, "up", {in(a), in(w), out(c)});
  const program::SegmentId id = b.segment(segment.take());
  for (int stage = 0; stage < 2; ++stage) {
    program::RankProgramBuilder r("stage" + std::to_string(stage));
    const auto va = r.tensor("x", program::DType::kF32, {2, 3}, MemoryClass::kActivations, true);
    const auto vb = r.tensor("w", program::DType::kF32, {4, 3}, MemoryClass::kWeights, true);
    for (std::uint32_t m = 0; m < (stage == 0 ? 2U : 1U); ++m) {
      const auto vc =
          r.tensor("m" + std::to_string(m) + ".y", program::DType::kF32, {2, 4}, MemoryClass::kActivations, true);
      r.call(id, {va, vb, vc}, {.pass = program::Pass::kForward, .chunk = 0, .microbatch = m, .layer = 5});
    }
    const program::RankProgramId program_id = b.rank_program(r.take());
    b.rank(program_id, 2 * stage);
    b.rank(program_id, 2 * stage + 1);
  }
  return program::CheckedProgram(b.take());
}

plan::Scenario scenario() {
  plan::Scenario s;
  s.name = "by-hand";
  s.model = {.name = "m",
             .layers = 2,
             .hidden = 8,
             .ffn = 16,
             .heads = 2,
             .kv_heads = 2,
             .head_dim = 4,
             .vocab = 32,
             .padded_vocab = 32,
             .max_positions = 64};
  s.cluster.node.name = "box";
  s.cluster.node.devices = 4;
  s.cluster.node.device.name = "chip";
  s.cluster.node.device.peak_bf16 = FlopsPerSecond(1e9);
  s.cluster.node.device.peak_fp32 = FlopsPerSecond(5e8);
  s.cluster.node.device.memory = Bytes(std::int64_t{10} << 30);
  s.gpus = 4;
  s.training.sequence_length = 16;
  s.training.global_batch_size = 8;
  s.plan.pp = 2;
  s.plan.dp = 2;
  s.plan.layout = {{.embedding = true, .first_layer = 0, .layers = 1, .loss = false},
                   {.embedding = false, .first_layer = 1, .layers = 1, .loss = true}};
  return s;
}

// Two classes of two ranks; the step takes 1 ms. Stage 0: compute 0.6 ms, dp 0.3 ms, bubble 0.1 ms; stage 1: compute
// 0.4 ms, optimizer 0.2 ms, host 0.1 ms, bubble 0.3 ms.
sim::Prediction prediction(const program::CheckedProgram& p) {
  using literals::operator""_ms;
  using literals::operator""_us;
  sim::Prediction result;
  result.step = 1_ms;
  result.class_of_rank = {0, 0, 1, 1};
  result.events = 3;
  for (std::uint32_t c = 0; c < 2; ++c) {
    sim::ClassResult r;
    r.class_id = c;
    r.representative = program::RankId(2 * c);
    r.ranks = 2;
    const auto id = p.program().ranks[r.representative].program;
    r.lifetimes = program::derive_lifetimes(p.program(), p.program().rank_programs[id], p.resolution(id));
    result.classes.push_back(r);
  }
  result.classes[0].time.compute = 600_us;
  result.classes[0].time.exposed[static_cast<std::size_t>(sim::Exposed::kDp)] = 300_us;
  result.classes[0].time.bubble = 100_us;
  result.classes[1].time.compute = 400_us;
  result.classes[1].time.optimizer = 200_us;
  result.classes[1].time.host = 100_us;
  result.classes[1].time.bubble = 300_us;
  return result;
}

SimulationReport report_with(const plan::Scenario& s, std::vector<PublishedRun> published = {}) {
  const program::CheckedProgram p = matmul_program();
  const sim::Prediction predicted = prediction(p);
  return make_simulation_report({.scenario = s,
                                 .program = p,
                                 .prediction = predicted,
                                 .calibration = {"none", 0, "no kernels"},
                                 .warnings = {},
                                 .published = std::move(published)});
}

TEST(SimulationReport, AveragesTimeOverRanks) {
  const SimulationReport r = report_with(scenario());
  EXPECT_DOUBLE_EQ(r.time.compute_s, 0.5e-3);
  EXPECT_DOUBLE_EQ(r.time.optimizer_s, 0.1e-3);
  EXPECT_DOUBLE_EQ(r.time.host_s, 0.05e-3);
  EXPECT_DOUBLE_EQ(r.time.bubble_s, 0.2e-3);
  EXPECT_DOUBLE_EQ(r.time.exposed_s[static_cast<std::size_t>(sim::Exposed::kDp)], 0.15e-3);
  EXPECT_DOUBLE_EQ(r.bubble_fraction, 0.2);
  ASSERT_EQ(r.stages.size(), 2U);
  EXPECT_DOUBLE_EQ(r.stages[1].time.bubble_s, 0.3e-3);
  EXPECT_EQ(r.stages[0].ranks, 2);
  EXPECT_EQ(r.stages[0].layers, 1);
}

TEST(SimulationReport, CountsThroughputAndUtilisation) {
  const SimulationReport r = report_with(scenario());
  // 8 sequences of 16 tokens in 1 ms on 4 devices.
  EXPECT_DOUBLE_EQ(r.tokens_per_s, 128e3);
  EXPECT_DOUBLE_EQ(r.tokens_per_s_per_gpu, 32e3);
  // Matmul parameters: per layer q, k, v, o 4 * 8 * 8 = 256 and MLP 3 * 8 * 16 = 384, two layers, head 32 * 8 = 256:
  // 1,536. 6 * 1536 = 9,216 FLOPs per token; attention 12 * 2 layers * 8 * 16 = 3,072 full, 1,536 causal.
  EXPECT_DOUBLE_EQ(r.flops_per_token.full, 12288);
  EXPECT_DOUBLE_EQ(r.flops_per_token.causal, 10752);
  // 32e3 tokens/s/device * 12,288 = 393.216e6 FLOP/s over a bf16 peak of 1e9.
  EXPECT_DOUBLE_EQ(r.mfu.full, 0.393216);
  EXPECT_DOUBLE_EQ(r.mfu.causal, 0.344064);
  EXPECT_DOUBLE_EQ(r.peak_tflops, 1e-3);
  // Executed: 2 ranks * 96 + 2 ranks * 48 = 288 FLOPs in 1 ms on 4 devices: 72,000 FLOP/s.
  EXPECT_NEAR(r.hardware_tflops_per_gpu, 72e-9, 1e-20);
  EXPECT_NEAR(r.hfu, 72e-6, 1e-15);
}

TEST(SimulationReport, UsesThePeakOfTheComputeType) {
  plan::Scenario s = scenario();
  s.training.compute = program::DType::kF32;
  EXPECT_DOUBLE_EQ(report_with(s).mfu.full, 2 * 0.393216);
}

TEST(SimulationReport, ReportsMemoryByStage) {
  const SimulationReport r = report_with(scenario());
  // All buffers persist. Stage 0: x 6, y0 and y1 8 each, w 12 elements of 4 bytes; stage 1 has one y.
  EXPECT_EQ(r.stages[0].allocated_bytes, 136);
  EXPECT_EQ(r.stages[1].allocated_bytes, 104);
  EXPECT_EQ(r.stages[0].at_peak[static_cast<std::size_t>(MemoryClass::kWeights)], 48);
  EXPECT_EQ(r.memory.allocated_bytes, 136);
  EXPECT_EQ(r.memory.peak_stage, 0);
  ASSERT_FALSE(r.memory.top_tensors.empty());
  EXPECT_EQ(r.memory.top_tensors[0].name, "m*.y");
  EXPECT_EQ(r.memory.top_tensors[0].count, 2);
  EXPECT_EQ(r.memory.top_tensors[0].bytes, 64);
}

TEST(SimulationReport, IsTightWithLittleRoom) {
  EXPECT_EQ(tight_below(std::int64_t{80} << 30), kTightBytes);
  EXPECT_EQ(tight_below(std::int64_t{10} << 30), std::int64_t{1} << 30);
  plan::Scenario s = scenario();
  const auto verdict = [&s](std::int64_t capacity) {
    s.cluster.node.device.memory = Bytes(capacity);
    return report_with(s).memory.verdict;
  };
  // The peak is 136 bytes; on so small a device a tenth of the capacity is asked for.
  EXPECT_EQ(verdict(152), Verdict::kFits);   // 16 left, 15 asked
  EXPECT_EQ(verdict(151), Verdict::kFits);   // 15 left, 15 asked
  EXPECT_EQ(verdict(150), Verdict::kTight);  // 14 left, 15 asked
  EXPECT_EQ(verdict(136), Verdict::kTight);
  EXPECT_EQ(verdict(135), Verdict::kOom);
}

TEST(SimulationReport, MeasuresRoomInWhatTheDriverReports) {
  plan::Scenario s = scenario();
  s.cluster.node.device.memory_visible = Bytes(150);
  const SimulationReport r = report_with(s);
  EXPECT_EQ(r.memory.capacity_bytes, 150);
  // 10 GiB nominal, but of 150 visible bytes the peak of 136 leaves 14, and 15 are asked.
  EXPECT_EQ(r.memory.verdict, Verdict::kTight);
}

// One segment: all-reduce of f32 [2,4] over tp (32 bytes) twice, all-gather of f32 [4] into [8] over dp (32 bytes: the
// whole). Stage 0 calls it three times, stage 1 twice.
TEST(Collectives, AreCountedPerStepInTheClassThatIssuesMost) {
  program::ProgramBuilder b("collectives");
  program::SegmentBuilder segment("sync");
  const program::Ref x = segment.slot("x", program::DType::kF32, {2, 4});
  const program::Ref part = segment.slot("part", program::DType::kF32, {4});
  const program::Ref whole = segment.slot("whole", program::DType::kF32, {8});
  segment.op(program::OpKind::kAllReduce, program::Stream::kTp, "first", {acc(x)}).group = b.role("tp");
  segment.op(program::OpKind::kAllReduce, program::Stream::kTp, "second", {acc(x)}).group = b.role("tp");
  segment.op(program::OpKind::kAllGather, program::Stream::kDp, "gather", {in(part), out(whole)}).group = b.role("dp");
  const program::SegmentId id = b.segment(segment.take());
  sim::Prediction prediction_of_two;
  for (int stage = 0; stage < 2; ++stage) {
    program::RankProgramBuilder r("stage" + std::to_string(stage));
    const auto vx = r.tensor("x", program::DType::kF32, {2, 4}, MemoryClass::kActivations, true);
    const auto vp = r.tensor("p", program::DType::kF32, {4}, MemoryClass::kWeights, true);
    const auto vw = r.tensor("w", program::DType::kF32, {8}, MemoryClass::kWeights, true);
    for (std::uint32_t m = 0; m < (stage == 0 ? 3U : 2U); ++m) {
      r.call(id, {vx, vp, vw}, {.pass = program::Pass::kComm, .chunk = 0, .microbatch = m, .layer = 0});
    }
    sim::ClassResult c;
    c.representative = b.rank(b.rank_program(r.take()), stage);
    prediction_of_two.classes.push_back(c);
  }
  const std::vector<CollectiveCount> expected = {{"dp", "all_gather", 32, 3}, {"tp", "all_reduce", 32, 6}};
  EXPECT_EQ(count_collectives(b.take(), prediction_of_two), expected);
}

TEST(SimulationReport, ShowsThePublishedRunOfTheSameModelAndDeviceOnly) {
  const auto run = [](const std::string& id, const std::string& model, std::int64_t gpus) {
    PublishedRun r;
    r.id = id;
    r.model = model;
    r.gpu = "chip";
    r.gpus = gpus;
    r.parameters = models::count_parameters(scenario().model).total;
    return r;
  };
  const PublishedRun other = run("other", "m", 8);
  const PublishedRun near = run("near", "m", 4);
  const PublishedRun wrong = run("wrong", "n", 4);
  EXPECT_EQ(report_with(scenario(), {other, near, wrong}).nearest_published->id, "near");
  EXPECT_EQ(report_with(scenario(), {wrong}).nearest_published, std::nullopt);
  PublishedRun changed = near;  // the same name, but another number of layers
  changed.parameters += 1;
  EXPECT_EQ(report_with(scenario(), {changed}).nearest_published, std::nullopt);
}

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
                          "collectives",
                          "microbatches",
                          "top_tensors",
                          "evidence",
                          "warnings",
                          "assumptions",
                          "not_modelled",
                          "calibration",
                          "ranks",
                          "rank_classes",
                          "events",
                          "fingerprint"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["step_time_s"], 1e-3);
  EXPECT_EQ(json["memory"]["stages"][0]["weights"], 48);
  EXPECT_EQ(json["memory"]["verdict"], "fits");
  EXPECT_EQ(json["memory"].at("reserved_bytes"), nullptr);
  EXPECT_EQ(json["memory"].at("device_bytes"), nullptr);
  EXPECT_EQ(json["calibration"]["stack"], "no kernels");
  // The Program by hand has no collective.
  EXPECT_EQ(json["collectives"], nlohmann::json::array());
  EXPECT_EQ(json["ranks"], 4);
  EXPECT_EQ(json["fingerprint"].get<std::string>().size(), 16U);
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

TEST(SimulateScreen, SaysWhyHfuMayLieBelowMfu) {
  // HFU 72e-6, MFU full 0.39.
  const std::string screen = simulate_screen(report_with(scenario()));
  EXPECT_NE(screen.find("HFU (causal, flash backward 2.5x) 0.0 %"), std::string::npos) << screen;
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
  r.remedies = {"plan.pp=4", "plan.zero=1"};
  EXPECT_TRUE(simulate_screen(r).ends_with("next: --set plan.pp=4  or  --set plan.zero=1\n"));
  r.remedies.clear();
  EXPECT_TRUE(simulate_screen(r).ends_with(
      "no single change of recompute, schedule, tp, pp, zero or micro_batch_size makes it fit\n"));
  const std::string fits = simulate_screen(report_with(scenario()));
  EXPECT_EQ(fits.find("--set"), std::string::npos) << fits;
}

}  // namespace
}  // namespace stepcast::report
