// Report figures worked out by hand.
#include "report/simulation_report.h"

#include <gtest/gtest.h>

#include "tests/report/by_hand.h"

namespace stepcast::report {
namespace {

using program::MemoryClass;

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

TEST(SimulationReport, GivesTheRangeOfComputeOverAStagesRanks) {
  const program::CheckedProgram p = matmul_program();
  sim::Prediction predicted = prediction(p);
  // Stage 0's two ranks apart: 0.6 and 0.7 ms.
  predicted.classes[0].ranks = 1;
  predicted.classes.push_back(predicted.classes[0]);
  predicted.classes.back().representative = program::RankId(1);
  predicted.classes.back().time.compute += Duration(100'000'000);
  const plan::Scenario s = scenario();
  const SimulationReport r = make_simulation_report(
      {.scenario = s, .program = p, .prediction = predicted, .calibration = {}, .warnings = {}, .published = {}});
  EXPECT_DOUBLE_EQ(r.stages[0].time.compute_s, 0.65e-3);
  EXPECT_DOUBLE_EQ(r.stages[0].compute_min_s, 0.6e-3);
  EXPECT_DOUBLE_EQ(r.stages[0].compute_max_s, 0.7e-3);
  EXPECT_DOUBLE_EQ(r.stages[1].compute_min_s, 0.4e-3);
  EXPECT_DOUBLE_EQ(r.stages[1].compute_max_s, 0.4e-3);
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
  EXPECT_EQ(tight_below(std::int64_t{80} << 30, std::nullopt), std::int64_t{2} << 30);
  EXPECT_EQ(tight_below(std::int64_t{10} << 30, std::nullopt), std::int64_t{1} << 30);
  EXPECT_EQ(tight_below(std::int64_t{80} << 30, std::int64_t{50} << 30), std::int64_t{50} << 30);
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

// Of a GPU: 136 bytes of tensors and 5 % of them, 6, reserved; 481 MiB of context and 32 of workspace. The Program by
// hand has no groups.
TEST(SimulationReport, AddsWhatADeviceHoldsBesideTensors) {
  plan::Scenario s = scenario();
  s.cluster.node.device.kind = topology::DeviceKind::kGpu;
  const MemoryReport m = report_with(s).memory;
  EXPECT_EQ(m.reserved_bytes, 142);
  EXPECT_EQ(m.device_bytes, 142 + (std::int64_t{513} << 20));
  EXPECT_EQ(m.communicator_bytes, 0);
  s.allocator = plan::AllocatorKind::kDefault;  // 12 %
  EXPECT_EQ(report_with(s).memory.reserved_bytes, 152);
  s.cluster.node.device.memory = Bytes(std::int64_t{40} << 30);
  EXPECT_EQ(report_with(s).memory.verdict, Verdict::kFits);
  s.cluster.node.device.memory = Bytes(std::int64_t{513} << 20);
  EXPECT_EQ(report_with(s).memory.verdict, Verdict::kOom);
}

// Ten user buffers of 16 tokens x 8 in bf16, 256 bytes each, and cuBLAS' workspace for three streams.
TEST(SimulationReport, AddsUserBuffers) {
  plan::Scenario s = scenario();
  s.plan.overlap_tp_comm = true;
  EXPECT_EQ(report_with(s).memory.device_bytes, 136);  // of a CPU nothing
  s.cluster.node.device.kind = topology::DeviceKind::kGpu;
  const SimulationReport r = report_with(s);
  EXPECT_EQ(r.memory.user_buffer_bytes, 2560);
  EXPECT_EQ(r.memory.workspace_bytes, std::int64_t{96} << 20);
  EXPECT_EQ(r.memory.device_bytes, 142 + 2560 + (std::int64_t{481 + 96} << 20));
}

TEST(SimulationReport, MeasuresRoomInWhatTheDriverReports) {
  plan::Scenario s = scenario();
  s.cluster.node.device.memory_visible = Bytes(150);
  const SimulationReport r = report_with(s);
  EXPECT_EQ(r.memory.capacity_bytes, 150);
  // 10 GiB nominal, but of 150 visible bytes the peak of 136 leaves 14, and 15 are asked.
  EXPECT_EQ(r.memory.verdict, Verdict::kTight);
}

TEST(SimulationReport, ShowsThePublishedRunOfTheSameModelAndDeviceOnly) {
  const auto run = [](const std::string& id, const std::string& gpu, std::int64_t gpus) {
    PublishedRun r;
    r.id = id;
    r.model = "published";  // whatever a scenario calls the model: its parameters are what counts
    r.gpu = gpu;
    r.gpus = gpus;
    r.parameters = models::count_parameters(scenario().model).total;
    return r;
  };
  const PublishedRun other = run("other", "chip", 8);
  const PublishedRun near = run("near", "chip", 4);
  const PublishedRun wrong = run("wrong", "crisp", 4);
  EXPECT_EQ(report_with(scenario(), {other, near, wrong}).nearest_published->id, "near");
  EXPECT_EQ(report_with(scenario(), {wrong}).nearest_published, std::nullopt);
  PublishedRun changed = near;  // another number of layers
  changed.parameters += 1;
  EXPECT_EQ(report_with(scenario(), {changed}).nearest_published, std::nullopt);
}

}  // namespace
}  // namespace stepcast::report
