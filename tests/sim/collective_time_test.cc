// Transfer times and needs against values worked out by hand from round constants: port 450 GB/s, ring 0.8, tree 0.72,
// NVLS 0.7, staging 0.64, all-to-all 0.7 of it, NIC 48 GB/s, start 5 us, no half size unless said.
#include "sim/cost/collective_time.h"

#include <gtest/gtest.h>

#include "tests/sim/nccl_clusters.h"

namespace stepcast::sim {
namespace {

Calibration round_link_constants() {
  Calibration c;
  c.collective = {.ring = 0.8,
                  .tree = 0.72,
                  .nvls = 0.7,
                  .nvls_payload = 0.64,
                  .all_to_all = 0.7,
                  .host_link = 0.9,
                  .start = Duration(5'000'000),
                  .half_size = 0};
  c.p2p = {.bandwidth = 0.8, .latency = Duration(5'000'000), .network_latency = Duration(14'000'000)};
  c.kernel_gap = Duration(1'000'000);
  return c;
}

// Members spread evenly; a path of 1.2 us between nodes.
GroupPath path_of(std::int32_t nodes, std::int32_t per_node, double port = 450e9) {
  GroupPath path;
  path.nodes = nodes;
  path.shape.tier = nodes > 1 ? topology::Tier::kLeaf : topology::Tier::kScaleUp;
  path.shape.members = nodes * per_node;
  path.shape.domains = nodes;
  path.shape.most_per_domain = path.shape.fewest_per_domain = per_node;
  path.shape.port = BytesPerSecond(port);
  if (nodes > 1) {
    path.shape.nic = BytesPerSecond(48e9);
    path.shape.latency = Duration(1'200'000);
  }
  return path;
}

PricedTransfer price(const NodeFigures& node, CollectiveOp op, std::int64_t bytes, const GroupPath& path,
                     const std::map<std::string, std::string>& environment = {},
                     const Calibration& calibration = round_link_constants()) {
  const topology::Cluster cluster = make_cluster(node, path.nodes);
  const NcclPins pins = parse_nccl_pins(environment);
  return price_collective({cluster, calibration, pins, BytesPerSecond(48e9)}, op, Bytes(bytes), path);
}

double us(const PricedTransfer& t) { return t.cost.time.seconds() * 1e6; }

const std::map<std::string, std::string> kRingSimple = {{"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "Simple"}};

TEST(CollectiveTime, ARingAloneTakesTheWholePort) {
  // 8e9 x 14/8 = 14e9 B over 360e9 B/s = 38,888.889 us; 56 us of NCCL's table, 5 us of start.
  const PricedTransfer t = price(h100(), CollectiveOp::kAllReduce, 8'000'000'000, path_of(1, 8), kRingSimple);
  EXPECT_NEAR(us(t), 38'888.889 + 61, 1e-3);
  EXPECT_EQ(t.cost.port_bytes, Bytes(14'000'000'000));
  EXPECT_EQ(t.cost.nic_bytes, Bytes(0));
  EXPECT_NEAR(static_cast<double>(t.cost.port) / kWhole, 38'888.889 / 38'949.889, 1e-5);
  EXPECT_EQ(t.cost.nic, 0);
  EXPECT_EQ(t.cost.algorithm, Algorithm::kRing);
  EXPECT_EQ(t.cost.protocol, Protocol::kSimple);
  EXPECT_EQ(t.channels, 24);
  EXPECT_EQ(t.cost.multiprocessors, (24 * kWhole + 131) / 132);
  // 2.5 x 14e9 B in 38.95 ms of 3.35e12 B/s.
  EXPECT_NEAR(static_cast<double>(t.cost.memory) / kWhole, 35e9 / 0.038949889 / 3.35e12, 1e-5);
  EXPECT_NEAR(t.cost.bus_bandwidth, 14e9 / 0.038949889, 1e4);
}

TEST(CollectiveTime, SmallMessagesLoseByTheRootOfTheirSize) {
  // 16 MB and a half size of 4 MB: half as much again. 16e6 x 1.75 / 360e9 = 77.778 us x 1.5, and 61 us.
  Calibration c = round_link_constants();
  c.collective.half_size = 4e6;
  EXPECT_NEAR(us(price(h100(), CollectiveOp::kAllReduce, 16'000'000, path_of(1, 8), kRingSimple, c)), 116.667 + 61,
              1e-3);
}

TEST(CollectiveTime, TheSwitchReducesForMoreThanARing) {
  // 8e9 x 9/8 = 9e9 B over 315e9 B/s = 28,571.429 us; 25 + 5 us. Bus bandwidth 14e9 in 28,601.429 us: 489.5 GB/s.
  const PricedTransfer t = price(h100(), CollectiveOp::kAllReduce, 8'000'000'000, path_of(1, 8));
  EXPECT_EQ(t.cost.algorithm, Algorithm::kNvls);
  EXPECT_NEAR(us(t), 28'601.429, 1e-3);
  EXPECT_EQ(t.cost.port_bytes, Bytes(9'000'000'000));
  EXPECT_EQ(t.channels, 16);
  // Of 72 members the staging copies bind: 8e9 over 0.64 x 900e9 = 13,888.889 us against 8e9 x 73/72 / 630e9 =
  // 12,874.78.
  EXPECT_NEAR(us(price(gb200(), CollectiveOp::kAllReduce, 8'000'000'000, path_of(1, 72, 900e9))), 13'918.889, 1e-3);
}

TEST(CollectiveTime, LlCarriesHalfAndHasACeiling) {
  // 8 ranks, 1,000,000 B: 15 + 5 us. Half of the ring's rate gives 1e6 x 1.75 / 180e9 = 9.722 us; NCCL's ceiling of 141
  // GB/s of bus bandwidth is slower: 1e6 x 1.75 / 141e9 = 12.411 us.
  const PricedTransfer t = price(h100(), CollectiveOp::kAllReduce, 1'000'000, path_of(1, 8));
  EXPECT_EQ(t.cost.protocol, Protocol::kLl);
  EXPECT_NEAR(us(t), 20 + 12.411, 1e-3);
}

TEST(CollectiveTime, RingsBetweenNodesLeaveByEveryNic) {
  // 16 on 2 nodes, 8e9 B: 15e9 bus bytes; NIC 15e9 / 8 / 48e9 = 39,062.5 us, port 15e9 x 7/8 / 360e9 = 36,458 us.
  // Table: 8.4 + 28 x 3.4 + 2 x 14 = 131.6 us; 2 steps of 1.2 us; 5 us.
  const PricedTransfer t = price(h100(), CollectiveOp::kAllReduce, 8'000'000'000, path_of(2, 8), kRingSimple);
  EXPECT_NEAR(us(t), 39'062.5 + 131.6 + 2.4 + 5, 1e-3);
  EXPECT_EQ(t.cost.nic_bytes, Bytes(1'875'000'000));
  EXPECT_EQ(t.cost.port_bytes, Bytes(13'125'000'000));
  EXPECT_NEAR(static_cast<double>(t.cost.nic) / kWhole, 39'062.5 / 39'201.5, 1e-5);
  // A gather moves half: 7.5e9 bus bytes. One member per node: its NIC carries all of them, its port none.
  const PricedTransfer thin = price(h100(), CollectiveOp::kAllGather, 8'000'000'000, path_of(2, 1), kRingSimple);
  EXPECT_EQ(thin.cost.nic_bytes, Bytes(4'000'000'000));
  EXPECT_EQ(thin.cost.port_bytes, Bytes(0));
  EXPECT_EQ(thin.cost.port, 0);
}

TEST(CollectiveTime, TreesBetweenTwoNodesNeedHalfTheNic) {
  // NVLSTree, 8e9 B on 2 nodes: NIC 1e9 / 48e9 = 20,833 us; port 9e9 / 315e9 = 28,571.429 us binds; 25 + 2 x 20.9 us, 2
  // steps of 1.2 us, 5 us. On 4 nodes the NIC carries 2 S / 8: 41,666.667 us binds; 25 + 4 x 20.9, 4 steps, 5 us.
  const PricedTransfer two = price(h100(), CollectiveOp::kAllReduce, 8'000'000'000, path_of(2, 8));
  EXPECT_EQ(two.cost.algorithm, Algorithm::kNvlsTree);
  EXPECT_NEAR(us(two), 28'571.429 + 66.8 + 2.4 + 5, 1e-3);
  const PricedTransfer four = price(h100(), CollectiveOp::kAllReduce, 8'000'000'000, path_of(4, 8));
  EXPECT_NEAR(us(four), 41'666.667 + 108.6 + 4.8 + 5, 1e-3);
  EXPECT_EQ(four.cost.nic_bytes, Bytes(2'000'000'000));
  // A tree on one node sends up and down: 16e9 B over 324e9 B/s; 64.4 + 5 us.
  EXPECT_NEAR(us(price(h100(), CollectiveOp::kAllReduce, 8'000'000'000, path_of(1, 8),
                       {{"NCCL_ALGO", "Tree"}, {"NCCL_PROTO", "Simple"}})),
              49'382.716 + 69.4, 1e-3);
}

TEST(CollectiveTime, AllToAllSharesTheNicWithForwardedTraffic) {
  // 16 on 2 nodes, 16e8 B each: half leaves the node, 8e8 / 48e9 = 16,666.667 us; the port carries 7/16 within and 7/8
  // of the half forwarded, 14e8 / 315e9 = 4,444 us. Two batches of eight peers at 14 + 1.2 us, 5 us.
  const PricedTransfer t = price(h100(), CollectiveOp::kAllToAll, 1'600'000'000, path_of(2, 8));
  EXPECT_NEAR(us(t), 16'666.667 + 30.4 + 5, 1e-3);
  EXPECT_EQ(t.cost.nic_bytes, Bytes(800'000'000));
  EXPECT_EQ(t.cost.port_bytes, Bytes(1'400'000'000));
  EXPECT_EQ(t.cost.algorithm, Algorithm::kP2p);
  // Within a node: 16e8 x 7/8 / 315e9 = 4,444.444 us, one batch of 5 us, 5 us.
  EXPECT_NEAR(us(price(h100(), CollectiveOp::kAllToAll, 1'600'000'000, path_of(1, 8))), 4'454.444, 1e-3);
  // Uplinks that let a member send 10e9 B/s to all others: 16e8 x 15/16 / 10e9 = 150,000 us.
  GroupPath narrow = path_of(2, 8);
  narrow.shape.spread = BytesPerSecond(10e9);
  EXPECT_NEAR(us(price(h100(), CollectiveOp::kAllToAll, 1'600'000'000, narrow)), 150'035.4, 1e-3);
}

TEST(CollectiveTime, MessagesUseAPortOrANic) {
  const topology::Cluster cluster = make_cluster(h100(), 2);
  const Calibration constants = round_link_constants();
  const NcclPins pins;
  const CollectiveContext context{cluster, constants, pins, BytesPerSecond(48e9)};
  // 36e6 / 360e9 = 100 us + 5 us; 4.8e6 / 48e9 = 100 us + 14 + 1.2 us.
  const PricedTransfer near = price_message(context, Bytes(36'000'000), path_of(1, 2));
  EXPECT_NEAR(us(near), 105, 1e-3);
  EXPECT_EQ(near.cost.port_bytes, Bytes(36'000'000));
  EXPECT_EQ(near.channels, 32);
  const PricedTransfer far = price_message(context, Bytes(4'800'000), path_of(2, 1));
  EXPECT_NEAR(us(far), 115.2, 1e-3);
  EXPECT_EQ(far.cost.nic_bytes, Bytes(4'800'000));
  EXPECT_EQ(far.channels, 2);
  EXPECT_EQ(price_message(context, Bytes(1000), path_of(1, 2)).channels, 1);
}

TEST(CollectiveTime, AFullMeshGivesFewMembersFewLinks) {
  // Two of eight use one link of seven: 0.8 x 64e9 = 51.2e9 B/s; 5.12e9 B x 1 take 100,000 us. RCCL's table: ring
  // Simple 17
  // + 2 x 2.1 us; 5 us. All eight: 0.8 x 448e9.
  const PricedTransfer two =
      price(mi300x(), CollectiveOp::kAllReduce, 5'120'000'000, path_of(1, 2, 448e9), kRingSimple);
  EXPECT_NEAR(us(two), 100'026.2, 1e-3);
  const PricedTransfer all =
      price(mi300x(), CollectiveOp::kAllReduce, 5'120'000'000, path_of(1, 8, 448e9), kRingSimple);
  EXPECT_NEAR(us(all), 5.12e9 * 1.75 / 358.4e9 * 1e6 + 17 + 14 * 2.1 + 5, 1e-3);
}

TEST(CollectiveTime, TheHostLinkJoinsDomainsOfANode) {
  GroupPath path = path_of(1, 4, 52e9);
  path.shape.tier = topology::Tier::kHost;
  path.shape.domains = 2;
  path.shape.fewest_per_domain = path.shape.most_per_domain = 2;
  // 4.68e9 x 1.5 / (0.9 x 52e9) = 150,000 us; one channel over PCIe: 8.4 + 6 x 5.7 us; 5 us.
  const PricedTransfer t = price(h100(), CollectiveOp::kAllReduce, 4'680'000'000, path, kRingSimple);
  EXPECT_NEAR(us(t), 150'000 + 42.6 + 5, 1e-3);
  EXPECT_EQ(t.cost.nic, 0);
}

TEST(CollectiveTime, FewerCtasCarryLess) {
  // 12 of 24: half the rate.
  std::map<std::string, std::string> capped = kRingSimple;
  capped["NCCL_MAX_CTAS"] = "12";
  const PricedTransfer t = price(h100(), CollectiveOp::kAllReduce, 8'000'000'000, path_of(1, 8), capped);
  EXPECT_NEAR(us(t), 2 * 38'888.889 + 61, 1e-2);
  EXPECT_EQ(t.cost.multiprocessors, (12 * kWhole + 131) / 132);
}

TEST(CollectiveTime, CpusRunRingsOfTheirOwn) {
  NodeFigures cpu = h100();
  topology::Cluster cluster = make_cluster(cpu, 1);
  cluster.node.device.kind = topology::DeviceKind::kCpu;
  const Calibration constants = round_link_constants();
  const NcclPins pins;
  // 3.6e6 x 1.5 / 360e9 = 15 us; 6 steps of 1 us; 5 us.
  const PricedTransfer t = price_collective({cluster, constants, pins, BytesPerSecond(48e9)}, CollectiveOp::kAllReduce,
                                            Bytes(3'600'000), path_of(1, 4));
  EXPECT_NEAR(us(t), 26, 1e-3);
  EXPECT_EQ(t.cost.algorithm, Algorithm::kNone);
  EXPECT_EQ(t.cost.multiprocessors, 0);
}

}  // namespace
}  // namespace stepcast::sim
