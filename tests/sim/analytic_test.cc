// The formulas of the analytic cost model against values worked out by hand from round constants. One picosecond is
// allowed for rounding up.
#include "sim/cost/analytic.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/error.h"
#include "program/ops/rules.h"
#include "tests/sim/shipped_calibration.h"

namespace stepcast::sim {
namespace {

using program::Access;
using program::DType;
using program::Op;
using program::OpKind;
using program::Stream;
using program::TensorType;

// Four devices of 1 PFLOP/s bf16, 100 TFLOP/s fp32, 1 TB/s memory, 100 GB/s links, 50 GB/s to the host.
topology::Cluster small_cluster() {
  topology::Cluster c;
  c.name = "small";
  c.node.device.name = "device";
  c.node.device.peak_bf16 = FlopsPerSecond(1e15);
  c.node.device.peak_fp32 = FlopsPerSecond(1e14);
  c.node.device.memory_bandwidth = BytesPerSecond(1e12);
  c.node.devices = 4;
  c.node.scale_up = {BytesPerSecond(100e9), 4};
  c.node.host_link = BytesPerSecond(50e9);
  return c;
}

Calibration round_constants() {
  Calibration c;
  c.matmul_bf16 = 0.5;
  c.matmul_fp32 = 0.25;
  c.matmul_k_half = 1000;
  c.matmul_memory = 0.75;
  c.attention_forward = {.efficiency = 0.5, .head_dim_half = 128, .sequence_half = 1024, .tiles_half = 128};
  c.attention_backward = {.efficiency = 0.25, .head_dim_half = 128, .sequence_half = 1024, .tiles_half = 128};
  c.elementwise = 0.5;
  c.optimizer = 0.8;
  c.kernel_gap = Duration(1'000'000);
  c.launch = Duration(5'000'000);
  c.sync_launch = Duration(2'000'000);
  c.multiprocessors = 0.5;
  c.collective = {.ring = 0.8,
                  .tree = 0.7,
                  .nvls = 0.7,
                  .nvls_payload = 0.6,
                  .all_to_all = 0.7,
                  .host_link = 0.9,
                  .start = Duration(10'000'000),
                  .half_size = 4e6};
  c.p2p = {.bandwidth = 0.8, .latency = Duration(5'000'000), .network_latency = Duration(14'000'000)};
  c.copy = {.bandwidth = 0.5, .latency = Duration(3'000'000)};
  return c;
}

AnalyticCostModel model() { return AnalyticCostModel(small_cluster(), round_constants()); }

Op make_op(OpKind kind, std::initializer_list<Access> accesses, Stream stream = Stream::kCompute) {
  Op op;
  op.kind = kind;
  op.stream = stream;
  for (const Access a : accesses) op.operands.push_back({false, static_cast<std::uint16_t>(op.operands.size()), a});
  return op;
}

constexpr Access kR = Access::kRead;
constexpr Access kW = Access::kWrite;
constexpr Access kA = Access::kAccumulate;

TEST(AnalyticCost, MatmulIsASmoothRoofline) {
  // 1000^3 bf16: 2e9 FLOP x (1 + 1000/1000) / (0.5 x 1e15) = 8 us; 3 x 2e6 B / (0.75 x 1e12) = 8 us as well;
  // (8^4 + 8^4)^(1/4) = 8 x 2^(1/4) = 9.513657 us, plus the gap of 1 us.
  const std::array<TensorType, 3> types{
      {{DType::kBf16, {1000, 1000}}, {DType::kBf16, {1000, 1000}}, {DType::kBf16, {1000, 1000}}}};
  const Op op = make_op(OpKind::kMatmul, {kR, kR, kW});
  EXPECT_NEAR(static_cast<double>(model().local_cost(op, types, 0).time.ps), 10'513'657, 1);
}

TEST(AnalyticCost, AccumulatingMatmulTakesItsOwnStartAndFactor) {
  // As above with the output read too: 8e6 B / 0.75e12 = 10.666667 us; 8 us x 1.5 = 12 us; (12^4 + 10.666667^4)^(1/4) =
  // 13.547136 us, plus 4 us in place of the gap. 8-bit operands with constants of their own keep the plain form.
  const std::array<TensorType, 3> types{
      {{DType::kBf16, {1000, 1000}}, {DType::kBf16, {1000, 1000}}, {DType::kBf16, {1000, 1000}}}};
  const Op op = make_op(OpKind::kMatmul, {kR, kR, kA});
  Calibration refined = round_constants();
  refined.matmul_refinement.accumulation = 1.5;
  refined.matmul_start = Duration(4'000'000);
  const AnalyticCostModel m(small_cluster(), refined);
  EXPECT_NEAR(static_cast<double>(m.local_cost(op, types, 0).time.ps), 17'547'136, 1);
  topology::Cluster cluster = small_cluster();
  cluster.node.device.peak_fp8 = FlopsPerSecond(1e15);
  refined.matmul_fp8 = MatmulRate{0.5, 1000};
  const std::array<TensorType, 3> narrow{
      {{DType::kF8, {1000, 1000}}, {DType::kF8, {1000, 1000}}, {DType::kBf16, {1000, 1000}}}};
  const Duration fitted = AnalyticCostModel(cluster, refined).local_cost(op, narrow, 0).time;
  refined.matmul_refinement = {};
  EXPECT_EQ(AnalyticCostModel(cluster, refined).local_cost(op, narrow, 0).time, fitted);
}

TEST(AnalyticCost, MatmulInFp32UsesTheFp32Peak) {
  // 2e9 x 2 / (0.25 x 1e14) = 160 us; 12e6 B / 0.75e12 = 16 us; (160^4 + 16^4)^(1/4) = 160 x 1.0001^(1/4) = 160.004 us.
  const std::array<TensorType, 3> types{
      {{DType::kF32, {1000, 1000}}, {DType::kF32, {1000, 1000}}, {DType::kF32, {1000, 1000}}}};
  const Op op = make_op(OpKind::kMatmul, {kR, kR, kW});
  EXPECT_NEAR(static_cast<double>(model().local_cost(op, types, 0).time.ps), 161'003'999.9, 2);
}

// 1000^3 of 8 bits at a peak of 2 PFLOP/s: without constants of their own the shares of bf16, 2e9 x 2 / (0.5 x 2e15) =
// 4 us; 4e6 B / 0.75e12 = 5.333333 us; (4^4 + 5.333333^4)^(1/4) = 5.712763 us and the gap. With 0.8 and 3000 2e9 x 4 /
// (0.8 x 2e15) = 5 us: 6.153806 us. 4 bits at 4 PFLOP/s by the shares of bf16: 2 us; 2 x 562,500 B and 2e6 B, 4.166667
// us: 4.220895 us.
TEST(AnalyticCost, QuantisedMatmulsUseTheirPeak) {
  topology::Cluster cluster = small_cluster();
  cluster.node.device.peak_fp8 = FlopsPerSecond(2e15);
  cluster.node.device.peak_fp4 = FlopsPerSecond(4e15);
  Calibration constants = round_constants();
  const auto time = [&](DType narrow) {
    const std::array<TensorType, 3> types{
        {{narrow, {1000, 1000}}, {narrow, {1000, 1000}}, {DType::kBf16, {1000, 1000}}}};
    const AnalyticCostModel model(cluster, constants);
    return static_cast<double>(model.local_cost(make_op(OpKind::kMatmul, {kR, kR, kW}), types, 0).time.ps);
  };
  EXPECT_NEAR(time(DType::kF8), 6712763.1, 1);
  EXPECT_NEAR(time(DType::kNvF4), 5220894.8, 1);
  constants.matmul_fp8 = MatmulRate{0.8, 3000};
  EXPECT_NEAR(time(DType::kF8), 7153806.4, 1);
  EXPECT_NEAR(time(DType::kNvF4), 5220894.8, 1);
  // Blocks go by the constants of 8 bits until they have their own.
  const double blocks = time(DType::kF8Block);
  EXPECT_GT(blocks, time(DType::kF8));  // 132 bytes for 128
  constants.matmul_fp8_block = MatmulRate{0.4, 3000};
  EXPECT_GT(time(DType::kF8Block), blocks);
}

TEST(AnalyticCost, AttentionSaturatesInHeadDimensionSequenceAndTiles) {
  // 4096 rows of 2 sequences of 2048; 4 heads of 128 in 16 tiles each, 128 tiles. FLOPs 2 x 4096 x 2048 x 512 =
  // 8,589,934,592. S = 2048/2, so each of the three factors is 2: 8 x 8.589934592e9 / (0.5 x 1e15) = 137.438953 us,
  // plus 1 us.
  Op op = make_op(OpKind::kAttentionForward, {kR, kW, kW});
  op.attributes.heads = 4;
  op.attributes.kv_heads = 4;
  op.attributes.head_dim = 128;
  op.attributes.batch = 2;
  const std::array<TensorType, 3> types{
      {{DType::kBf16, {4096, 1536}}, {DType::kBf16, {4096, 512}}, {DType::kF32, {4096, 4}}}};
  EXPECT_NEAR(static_cast<double>(model().local_cost(op, types, 0).time.ps), 138'438'953.5, 1);
  // 256 keys more than the 1024 seen, which tiles on the diagonal hold: a quarter of 137.438953 us longer.
  Calibration diagonal = round_constants();
  diagonal.attention_forward.diagonal_keys = 256;
  EXPECT_NEAR(static_cast<double>(AnalyticCostModel(small_cluster(), diagonal).local_cost(op, types, 0).time.ps),
              172'798'691.8, 1);
  // Backward: 2.5 times the FLOPs at half the efficiency: 5 x 137.438953 us.
  op.kind = OpKind::kAttentionBackward;
  op.operands = make_op(OpKind::kZeroFill, {kR, kR, kR, kR, kW}).operands;
  const std::array<TensorType, 5> backward{{types[1], types[0], types[1], types[2], types[0]}};
  EXPECT_NEAR(static_cast<double>(model().local_cost(op, backward, 0).time.ps), 688'194'767.4, 1);
}

// Shares of the peak at head dimension 128, forward (MooreThreads/SimuMax, B200 system file, causal FLOPs halved): what
// few heads cannot fill at 4,096 tokens, tiles of longer sequences do.
TEST(AnalyticCost, B200RunsFewHeadsOfLongSequencesAsFastAsMany) {
  const AnalyticCostModel m(small_cluster(), stepcast::testing::shipped_calibration("b200-default"));
  struct Row {
    std::int32_t heads;
    std::int64_t tokens;
    double measured;
  };
  for (const Row& row : {Row{8, 4096, 0.155}, Row{16, 4096, 0.289}, Row{8, 32'768, 0.601}, Row{16, 32'768, 0.583},
                         Row{8, 131'072, 0.501}, Row{16, 131'072, 0.494}}) {
    Op op = make_op(OpKind::kAttentionForward, {kR, kW, kW});
    op.attributes.heads = op.attributes.kv_heads = row.heads;
    op.attributes.head_dim = 128;
    op.attributes.batch = 1;
    const std::int64_t width = row.heads * op.attributes.head_dim;
    const std::array<TensorType, 3> types{{{DType::kBf16, {row.tokens, 3 * width}},
                                           {DType::kBf16, {row.tokens, width}},
                                           {DType::kF32, {row.tokens, row.heads}}}};
    const double share = program::work_of(op, types).flops.count / m.local_cost(op, types, 0).time.seconds() / 1e15;
    EXPECT_NEAR(share / row.measured, 1, 0.35) << row.heads << " heads of " << row.tokens;
  }
}

// The scores of the same heads, materialised: 2 x 4096 x 2048 x 512 = 8.589934592e9 FLOP, reduced over 128 channels:
// x (1 + 1000/128) = 8.8125, over 0.5e15: 151.397597 us. Memory: q and k 4096 x 1024 x 2 B and 8 x 2048 x 2048 x 2 B =
// 75,497,472 B over 0.75e12: 100.663296 us. (151.397597^4 + 100.663296^4)^(1/4) = 158.307 us, plus 1 us.
TEST(AnalyticCost, MaterialisedScoresAreBatchedMatmuls) {
  Op op = make_op(OpKind::kAttentionScoresForward, {kR, kW});
  op.attributes.heads = 4;
  op.attributes.kv_heads = 4;
  op.attributes.head_dim = 128;
  op.attributes.batch = 2;
  const std::array<TensorType, 2> types{{{DType::kBf16, {4096, 1536}}, {DType::kBf16, {8, 2048, 2048}}}};
  const double arithmetic = 151.397597184, memory = 100.663296;
  const double expected = std::pow(std::pow(arithmetic, 4) + std::pow(memory, 4), 0.25) + 1;
  EXPECT_NEAR(static_cast<double>(model().local_cost(op, types, 0).time.ps), expected * 1e6, 2);
}

// Mean bytes over a share of the memory rate: a softmax in elementwise kernels' 0.5: 2 x 67,108,864 B / 0.5e12 =
// 268.435456 us, plus 1 us.
TEST(AnalyticCost, SoftmaxIsBoundByMemory) {
  const TensorType scores{DType::kBf16, {8, 2048, 2048}};
  const std::array<TensorType, 2> types{{scores, scores}};
  EXPECT_NEAR(static_cast<double>(model().local_cost(make_op(OpKind::kSoftmaxForward, {kR, kW}), types, 0).time.ps),
              269'435'456, 1);
}

TEST(AnalyticCost, OtherKernelsAreBoundByMemory) {
  // 3 x 4e6 B / (0.5 x 1e12) = 24 us, plus 1 us.
  const std::array<TensorType, 3> types{
      {{DType::kF32, {1'000'000}}, {DType::kF32, {1'000'000}}, {DType::kF32, {1'000'000}}}};
  EXPECT_NEAR(static_cast<double>(model().local_cost(make_op(OpKind::kAdd, {kR, kR, kW}), types, 0).time.ps),
              25'000'000, 1);
}

TEST(AnalyticCost, CopiesToTheHostCrossTheHostLink) {
  // 4e6 B / (0.5 x 50e9) = 160 us, plus 3 us. On the compute stream the same copy is 8e6 B / 0.5e12 = 16 us, plus 1 us.
  const std::array<TensorType, 2> types{{{DType::kF32, {1'000'000}}, {DType::kF32, {1'000'000}}}};
  EXPECT_NEAR(static_cast<double>(model().local_cost(make_op(OpKind::kCopy, {kR, kW}, Stream::kD2h), types, 0).time.ps),
              163e6, 1);
  EXPECT_NEAR(static_cast<double>(model().local_cost(make_op(OpKind::kCopy, {kR, kW}), types, 0).time.ps), 17e6, 1);
}

TEST(AnalyticCost, TokenLoadsCrossTheHostLinkWhateverTheDevice) {
  // Two tensors of 1e6 i32, written: 8e6 B / (0.5 x 50e9) = 320 us, plus 3 us, on a device of half speed as well.
  topology::Cluster cluster = small_cluster();
  cluster.overrides = {{1, 2.0}};
  const AnalyticCostModel m(cluster, round_constants());
  const std::array<TensorType, 2> types{{{DType::kI32, {1'000'000}}, {DType::kI32, {1'000'000}}}};
  const Op load = make_op(OpKind::kTokenLoad, {kW, kW}, Stream::kH2d);
  EXPECT_NEAR(static_cast<double>(m.local_cost(load, types, 0).time.ps), 323e6, 1);
  EXPECT_EQ(m.local_cost(load, types, m.device_class(1)), m.local_cost(load, types, 0));
}

TEST(AnalyticCost, RefusesAnOpOfOver106Days) {
  // 3 x 2e18 B / (0.5 x 1e12 B/s) = 1.2e7 s, 139 days.
  const std::array<TensorType, 3> types{{{DType::kBf16, {1'000'000'000'000'000'000}},
                                         {DType::kBf16, {1'000'000'000'000'000'000}},
                                         {DType::kBf16, {1'000'000'000'000'000'000}}}};
  EXPECT_THROW(model().local_cost(make_op(OpKind::kAdd, {kR, kR, kW}), types, 0), Error);
}

TEST(AnalyticCost, CollectivesPayLatencyPerStepAndBusBytes) {
  // A ring with the Simple protocol. All-reduce of 4e6 B on 4: 10 us + 8.4 + 6 x 3.4 us of NCCL's table + 4e6 x (1 +
  // sqrt(4e6/4e6)) x (2 x 3/4) / (0.8 x 100e9) = 38.8 + 150 us.
  const AnalyticCostModel m(small_cluster(), round_constants(), {{"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "Simple"}});
  const std::array<std::int32_t, 4> all{0, 1, 2, 3};
  const PathClass path = m.path_class(all);
  const std::array<TensorType, 1> buffer{{{DType::kF32, {1'000'000}}}};
  const auto ps = [&](const Op& op, std::span<const TensorType> operands) {
    return static_cast<double>(m.collective_cost(op, operands, path, 4).time.ps);
  };
  EXPECT_NEAR(ps(make_op(OpKind::kAllReduce, {kA}), buffer), 188.8e6, 1);
  // All-gather of 4 x 1e6 B: 10 us + 8.4 + 3 x 3.4 us + 8e6 x 3/4 / 80e9 = 28.6 + 75 us. Reduce-scatter of as much
  // likewise.
  const TensorType part{DType::kF32, {250'000}};
  const std::array<TensorType, 2> gather{{part, buffer[0]}};
  const std::array<TensorType, 2> scatter{{buffer[0], part}};
  EXPECT_NEAR(ps(make_op(OpKind::kAllGather, {kR, kW}), gather), 103.6e6, 1);
  EXPECT_NEAR(ps(make_op(OpKind::kReduceScatter, {kR, kW}), scatter), 103.6e6, 1);
}

TEST(AnalyticCost, KernelsSayWhatTheyNeed) {
  // The matmul above: all processors; 6e6 B in 10.513657 us of 1 TB/s: 0.570686. The sum: half of them as the constant
  // says; 12e6 B in 25 us: 0.48. A copy across the host link needs neither.
  const auto share = [](double part) { return static_cast<double>(kWhole) * part; };
  const TensorType square{DType::kBf16, {1000, 1000}};
  const std::array<TensorType, 3> factors{{square, square, square}};
  const LocalCost matmul = model().local_cost(make_op(OpKind::kMatmul, {kR, kR, kW}), factors, 0);
  EXPECT_EQ(matmul.multiprocessors, kWhole);
  EXPECT_NEAR(static_cast<double>(matmul.memory), share(6 / 10.513657), 2);
  const TensorType vector{DType::kF32, {1'000'000}};
  const std::array<TensorType, 3> terms{{vector, vector, vector}};
  const LocalCost sum = model().local_cost(make_op(OpKind::kAdd, {kR, kR, kW}), terms, 0);
  EXPECT_EQ(sum.multiprocessors, kWhole / 2);
  EXPECT_NEAR(static_cast<double>(sum.memory), share(0.48), 1);
  const std::array<TensorType, 2> copied{{vector, vector}};
  const LocalCost copy = model().local_cost(make_op(OpKind::kCopy, {kR, kW}, Stream::kD2h), copied, 0);
  EXPECT_EQ(copy, LocalCost(copy.time));
}

TEST(AnalyticCost, MessagesPayLatencyAndBytes) {
  // 8e6 B / (0.8 x 100e9) = 100 us, plus 5 us.
  const AnalyticCostModel m = model();
  const std::array<std::int32_t, 2> pair{1, 2};
  EXPECT_NEAR(static_cast<double>(m.message_cost(Bytes(8'000'000), m.path_class(pair)).time.ps), 105e6, 1);
}

TEST(AnalyticCost, GroupsOfEqualPathsShareAClass) {
  const AnalyticCostModel m = model();
  const std::array<std::int32_t, 2> first{0, 1};
  const std::array<std::int32_t, 2> second{3, 2};
  const std::array<std::int32_t, 3> three{0, 1, 2};
  EXPECT_EQ(m.path_class(first), m.path_class(second));
  EXPECT_NE(m.path_class(first), m.path_class(three));
  const std::array<std::int32_t, 2> absent{0, 4};
  EXPECT_THROW(m.path_class(absent), Error);
}

TEST(AnalyticCost, AnOverriddenDeviceIsSlowerByItsFactorAndHasItsOwnClass) {
  // 24 us + 1 us, times 2; two devices with one factor share a class; a factor of 1 is nominal.
  topology::Cluster cluster = small_cluster();
  cluster.overrides = {{1, 2.0}, {2, 1.0}, {3, 2.0}};
  const AnalyticCostModel m(cluster, round_constants());
  EXPECT_EQ(m.device_class(1), m.device_class(3));
  EXPECT_EQ(m.device_class(0), m.device_class(2));
  EXPECT_NE(m.device_class(0), m.device_class(1));
  const std::array<TensorType, 3> types{
      {{DType::kF32, {1'000'000}}, {DType::kF32, {1'000'000}}, {DType::kF32, {1'000'000}}}};
  EXPECT_NEAR(static_cast<double>(m.local_cost(make_op(OpKind::kAdd, {kR, kR, kW}), types, m.device_class(1)).time.ps),
              50e6, 1);
}

TEST(AnalyticCost, OverridesOfADeviceMultiply) {
  // Memory at half and at 0.8 of its rate: the sum takes 24 us / 0.4 + 1 us = 61 us, with 12e6 B in 61 us of 0.4 TB/s:
  // 0.491803. NICs at a quarter.
  topology::Cluster cluster = small_cluster();
  cluster.overrides = {{1, 1.0, 0.5}, {1, 1.0, 0.8, 0.25}, {2, 1.0, 0.4, 0.25}};
  const AnalyticCostModel m(cluster, round_constants());
  EXPECT_EQ(m.device_class(1), m.device_class(2));
  const TensorType vector{DType::kF32, {1'000'000}};
  const std::array<TensorType, 3> terms{{vector, vector, vector}};
  const LocalCost sum = m.local_cost(make_op(OpKind::kAdd, {kR, kR, kW}), terms, m.device_class(1));
  EXPECT_NEAR(static_cast<double>(sum.time.ps), 61e6, 1);
  EXPECT_NEAR(static_cast<double>(sum.memory) / kWhole, 12 / 61.0 / 0.4, 1e-5);
  EXPECT_EQ(m.limits(m.device_class(1)).nic, kWhole / 4);
  EXPECT_EQ(m.limits(0).nic, kWhole);
}

// Four nodes of two, two to a unit, leaf uplinks at half: a rail's uplink carries one NIC's rate for its two NICs.
topology::Cluster narrow_fabric() {
  topology::Cluster c = small_cluster();
  c.nodes = 4;
  c.node.devices = 2;
  c.node.scale_up.domain = 2;
  c.node.nic = {BytesPerSecond(50e9), 1, topology::NicKind::kIb, 0.96, Duration(1'000'000)};
  c.fabric.kind = topology::FabricKind::kRail;
  c.fabric.unit_nodes = 2;
  c.fabric.leaf_oversubscription = 2;
  return c;
}

TEST(AnalyticCost, OversubscribedUplinksAreSharedLinks) {
  const AnalyticCostModel m(narrow_fabric(), round_constants());
  ASSERT_FALSE(m.shared_links().empty());
  for (const SharedLink& link : m.shared_links()) EXPECT_EQ(link.capacity, kWhole) << link.name;
  std::vector<Crossing> crossings;
  const std::array<std::int32_t, 2> near{0, 2};  // nodes 0 and 1
  m.append_crossings(near, Pattern::kRing, crossings);
  EXPECT_TRUE(crossings.empty());
  const std::array<std::int32_t, 2> far{0, 4};  // nodes 0 and 2: the rail's link up, and the other unit's down
  m.append_crossings(far, Pattern::kMessage, crossings);
  ASSERT_EQ(crossings.size(), 2U);
  for (const Crossing& crossing : crossings) EXPECT_EQ(crossing.weight, kWeightUnit);
}

TEST(AnalyticCost, PathsWithinNodesAndBetweenThemDiffer) {
  const AnalyticCostModel m(narrow_fabric(), round_constants());
  const std::array<std::int32_t, 2> node{0, 1};
  const std::array<std::int32_t, 2> unit{0, 2};
  const std::array<std::int32_t, 2> same_unit{5, 7};
  const std::array<std::int32_t, 2> units{0, 4};
  EXPECT_NE(m.path_class(node), m.path_class(unit));
  EXPECT_NE(m.path_class(unit), m.path_class(units));
  EXPECT_EQ(m.path_class(unit), m.path_class(same_unit));
  // 4.8e6 B over 48e9 B/s = 100 us, 14 us, and the path's 1 us of NICs at least.
  EXPECT_GE(m.message_cost(Bytes(4'800'000), m.path_class(unit)).time, Duration(115'000'000));
  EXPECT_EQ(m.message_cost(Bytes(4'800'000), m.path_class(unit)).nic_bytes, Bytes(4'800'000));
}

TEST(AnalyticCost, WaitingForAStreamIsCheaperToLaunchThanAKernel) {
  EXPECT_EQ(model().launch_time(make_op(OpKind::kJoin, {})), Duration(2'000'000));
  EXPECT_EQ(model().launch_time(make_op(OpKind::kAdd, {kR, kR, kW})), Duration(5'000'000));
}

}  // namespace
}  // namespace stepcast::sim
