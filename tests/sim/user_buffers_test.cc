// Transfers of user buffers against values worked out by hand from round constants: port 450 GB/s, ring 0.8, NVLS 0.7,
// messages 0.8 of it and 5 us, kernel gap 1 us. NCCL gives a ring of H100 or A100 12 channels, 24 CTAs: 15 GB/s of
// 360 each on H100, 10 of 240 on A100.
#include "sim/cost/user_buffers.h"

#include <gtest/gtest.h>

#include "sim/cost/analytic.h"
#include "tests/sim/nccl_clusters.h"

namespace stepcast::sim {
namespace {

Calibration round_buffer_constants() {
  Calibration c;
  c.collective.ring = 0.8;
  c.collective.nvls = 0.7;
  c.p2p = {.bandwidth = 0.8, .latency = Duration(5'000'000), .network_latency = Duration(14'000'000)};
  c.kernel_gap = Duration(1'000'000);
  return c;
}

GroupPath members_of_a_node(std::int32_t members, double port) {
  GroupPath path;
  path.shape.tier = topology::Tier::kScaleUp;
  path.shape.members = members;
  path.shape.domains = 1;
  path.shape.most_per_domain = path.shape.fewest_per_domain = members;
  path.shape.port = BytesPerSecond(port);
  return path;
}

PricedTransfer by_ctas(const NodeFigures& node, CollectiveOp op, std::int64_t bytes, std::int32_t ctas) {
  const topology::Cluster cluster = make_cluster(node, 1);
  const Calibration calibration = round_buffer_constants();
  return price_user_buffers({cluster, calibration, {}, BytesPerSecond(48e9)}, op, Bytes(bytes),
                            members_of_a_node(4, node.port), ctas);
}

double us(const PricedTransfer& t) { return t.cost.time.seconds() * 1e6; }

// 64e6 B at 0.7 x 450 GB/s are 203.175 us. Four CTAs store the own 16e6 B at 60 GB/s: 266.667 us.
TEST(UserBuffers, AGatherIsAMulticastOfTheOwnRows) {
  EXPECT_NEAR(us(by_ctas(h100(), CollectiveOp::kAllGather, 64'000'000, 4)), 6 + 266.667, 1e-3);
  const PricedTransfer t = by_ctas(h100(), CollectiveOp::kAllGather, 64'000'000, 16);
  EXPECT_NEAR(us(t), 6 + 203.175, 1e-3);
  EXPECT_EQ(t.cost.port_bytes, Bytes(64'000'000));
  EXPECT_EQ(t.cost.multiprocessors, share_of(16, 132));
  EXPECT_EQ(t.cost.algorithm, Algorithm::kUserBuffers);
  // 64e6 x 5/4 B in 209.175 us of 3.35 TB/s.
  EXPECT_NEAR(static_cast<double>(t.cost.memory) / static_cast<double>(kWhole), 80e6 / 209.175e-6 / 3.35e12, 1e-5);
}

// What three others hold, 48e6 B, is summed: by 4 CTAs at 60 GB/s in 800 us, by 24 faster than the port carries it.
TEST(UserBuffers, AReduceScatterSumsWhatOthersHold) {
  EXPECT_NEAR(us(by_ctas(h100(), CollectiveOp::kReduceScatter, 64'000'000, 4)), 6 + 800, 1e-3);
  EXPECT_NEAR(us(by_ctas(h100(), CollectiveOp::kReduceScatter, 64'000'000, 24)), 6 + 203.175, 1e-3);
}

// Without reductions in the switch 48e6 B pass each port, 240 GB/s of it: 200 us; four CTAs at 40 GB/s take 1,200 us.
TEST(UserBuffers, WithoutMulticastEveryPartIsMoved) {
  for (const CollectiveOp op : {CollectiveOp::kAllGather, CollectiveOp::kReduceScatter}) {
    EXPECT_NEAR(us(by_ctas(a100(), op, 64'000'000, 32)), 6 + 200, 1e-3);
    EXPECT_NEAR(us(by_ctas(a100(), op, 64'000'000, 4)), 6 + 1200, 1e-3);
  }
}

// 36e6 B at 0.8 x 450 GB/s: 100 us, and 5 us of flags; read once, written once, no multiprocessor.
TEST(UserBuffers, CopyEnginesHoldNoMultiprocessors) {
  const topology::Cluster cluster = make_cluster(h100(), 1);
  const Calibration calibration = round_buffer_constants();
  const CollectiveContext context{cluster, calibration, {}, BytesPerSecond(48e9)};
  const GroupPath pair = members_of_a_node(2, 450e9);
  const PricedTransfer t = price_peer_copy(context, Bytes(36'000'000), pair);
  EXPECT_NEAR(us(t), 105, 1e-3);
  EXPECT_EQ(t.cost.multiprocessors, 0);
  EXPECT_NEAR(static_cast<double>(t.cost.memory) / static_cast<double>(kWhole), 36e6 / 105e-6 / 3.35e12, 1e-5);
  EXPECT_GT(price_message(context, Bytes(36'000'000), pair).cost.multiprocessors, 0);
}

TEST(UserBuffers, AreWhatNcclDoesBeyondADomain) {
  const topology::Cluster cluster = make_cluster(h100(), 2);
  const Calibration calibration = round_buffer_constants();
  const NcclPins pins;
  const CollectiveContext context{cluster, calibration, pins, BytesPerSecond(48e9)};
  GroupPath two = members_of_a_node(16, 450e9);
  two.nodes = two.shape.domains = 2;
  two.shape.most_per_domain = two.shape.fewest_per_domain = 8;
  two.shape.tier = topology::Tier::kLeaf;
  two.shape.nic = BytesPerSecond(48e9);
  EXPECT_EQ(price_user_buffers(context, CollectiveOp::kAllGather, Bytes(1'000'000), two, 16).cost,
            price_collective(context, CollectiveOp::kAllGather, Bytes(1'000'000), two).cost);
  two.shape.members = 2;
  EXPECT_EQ(price_peer_copy(context, Bytes(1'000'000), two).cost, price_message(context, Bytes(1'000'000), two).cost);
}

// A large matmul on 99 of 132 multiprocessors takes 4/3 as long, and needs 3/4 of them.
TEST(UserBuffers, AMatmulThatLeavesMultiprocessorsTakesLonger) {
  const AnalyticCostModel model(make_cluster(h100(), 1), round_buffer_constants());
  const program::TensorType square{program::DType::kBf16, {8192, 8192}};
  const std::vector<program::TensorType> types{square, square, square};
  program::Op op;
  op.kind = program::OpKind::kMatmul;
  op.operands = {
      {false, 0, program::Access::kRead}, {false, 1, program::Access::kRead}, {false, 2, program::Access::kWrite}};
  const LocalCost whole = model.local_cost(op, types, 0);
  op.attributes.multiprocessors = 33;
  const LocalCost part = model.local_cost(op, types, 0);
  EXPECT_NEAR(part.time.seconds() / whole.time.seconds(), 4.0 / 3, 2e-3);
  EXPECT_EQ(part.multiprocessors, kWhole * 3 / 4);
}

}  // namespace
}  // namespace stepcast::sim
