// NCCL's own cost model, to the digits that its NCCL_DEBUG=INFO table prints (one decimal): latencies in us and
// algorithm bandwidths in GB/s of NVIDIA/nccl 2.30.7's formulas for an Intel host and no NIC latency. The graphs are
// those that nccl_graphs derives for the vendor figures of each node.
#include "sim/cost/nccl_tuning.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "sim/cost/nccl_graphs.h"
#include "tests/sim/nccl_clusters.h"

namespace stepcast::sim {
namespace {

NcclSystem system_of(const NodeFigures& figures, std::int32_t nodes, std::int32_t per_node = 8) {
  GroupPath path;
  path.nodes = nodes;
  path.shape.tier = nodes > 1 ? topology::Tier::kLeaf : topology::Tier::kScaleUp;
  path.shape.members = nodes * per_node;
  path.shape.domains = nodes;
  path.shape.most_per_domain = path.shape.fewest_per_domain = per_node;
  return nccl_system(make_cluster(figures, nodes), path);
}

// Rounded to one decimal, as printed.
double printed(double value) { return std::round(value * 10) / 10; }

void expect_row(const NcclTable& table, Algorithm a, Protocol p, double latency_us, double algbw) {
  const NcclEstimate& e = table[static_cast<std::size_t>(a)][static_cast<std::size_t>(p)];
  EXPECT_DOUBLE_EQ(printed(e.latency_us), latency_us) << to_string(a) << " " << to_string(p);
  EXPECT_DOUBLE_EQ(printed(e.algbw), algbw) << to_string(a) << " " << to_string(p);
}

constexpr Algorithm kRing = Algorithm::kRing;
constexpr Algorithm kTree = Algorithm::kTree;

// Ring LL latency 6.6 + 14 x 0.6 = 15.0; LL bandwidth min(141, 360/2) x 8/14 = 80.57. The others likewise.
TEST(NcclTuning, GoldenValuesOfOneH100Node) {
  const NcclTable t = nccl_table(system_of(h100(), 1), NcclOp::kAllReduce, {});
  expect_row(t, kRing, Protocol::kLl, 15.0, 80.6);
  expect_row(t, kRing, Protocol::kLl128, 40.6, 189.3);
  expect_row(t, kRing, Protocol::kSimple, 56.0, 205.7);
  expect_row(t, kTree, Protocol::kLl, 15.2, 43.6);
  expect_row(t, kTree, Protocol::kLl128, 31.5, 128.8);
  expect_row(t, kTree, Protocol::kSimple, 64.4, 165.6);
  expect_row(t, Algorithm::kNvls, Protocol::kSimple, 25.0, 272.0);
}

TEST(NcclTuning, GoldenValuesOfOneA100Node) {
  const NcclTable t = nccl_table(system_of(a100(), 1), NcclOp::kAllReduce, {});
  expect_row(t, kRing, Protocol::kLl, 15.0, 50.1);
  expect_row(t, kRing, Protocol::kLl128, 40.6, 126.2);
  expect_row(t, kRing, Protocol::kSimple, 56.0, 137.1);
  expect_row(t, kTree, Protocol::kLl, 15.2, 29.1);
  expect_row(t, kTree, Protocol::kLl128, 31.5, 85.9);
  expect_row(t, kTree, Protocol::kSimple, 64.4, 110.4);
  expect_row(t, Algorithm::kNvls, Protocol::kSimple, 0, 0);  // not there
}

TEST(NcclTuning, GoldenValuesOfTwoH100Nodes) {
  const NcclTable t = nccl_table(system_of(h100(), 2), NcclOp::kAllReduce, {});
  expect_row(t, kRing, Protocol::kLl, 40.0, 20.8);
  expect_row(t, kRing, Protocol::kLl128, 75.2, 156.6);
  expect_row(t, kRing, Protocol::kSimple, 131.6, 192.0);
  expect_row(t, kTree, Protocol::kLl, 25.2, 19.5);
  expect_row(t, kTree, Protocol::kLl128, 48.5, 146.8);
  expect_row(t, kTree, Protocol::kSimple, 92.4, 165.6);
  expect_row(t, Algorithm::kNvlsTree, Protocol::kSimple, 66.8, 246.2);
  expect_row(t, Algorithm::kNvls, Protocol::kSimple, 0, 0);  // needs CollNet
}

TEST(NcclTuning, GoldenValuesOfFourH100Nodes) {
  const NcclTable t = nccl_table(system_of(h100(), 4), NcclOp::kAllReduce, {});
  expect_row(t, kRing, Protocol::kLl, 78.8, 10.5);
  expect_row(t, kRing, Protocol::kLl128, 144.4, 151.5);
  expect_row(t, kRing, Protocol::kSimple, 282.8, 185.8);
  expect_row(t, kTree, Protocol::kLl, 35.2, 10.2);
  expect_row(t, kTree, Protocol::kLl128, 65.5, 116.0);
  expect_row(t, kTree, Protocol::kSimple, 120.4, 144.0);
  expect_row(t, Algorithm::kNvlsTree, Protocol::kSimple, 108.6, 185.8);
}

TEST(NcclTuning, GoldenLatenciesOf32H100Nodes) {
  const NcclTable t = nccl_table(system_of(h100(), 32), NcclOp::kAllReduce, {});
  const auto latency = [&](Algorithm a, Protocol p) {
    return printed(t[static_cast<std::size_t>(a)][static_cast<std::size_t>(p)].latency_us);
  };
  EXPECT_DOUBLE_EQ(latency(kRing, Protocol::kSimple), 2399.6);
  EXPECT_DOUBLE_EQ(latency(kTree, Protocol::kLl), 65.2);
  EXPECT_DOUBLE_EQ(latency(Algorithm::kNvlsTree, Protocol::kSimple), 234.0);
}

// Ring LL 15.0 us and 80.571 GB/s against NVLS 25 us and 272 GB/s: they cross where 10 us = S (1/80571 - 1/272000) us,
// at 1,144,840 B. On 8 H200 runs show rings with LL up to 1 MiB and NVLS from 2 MiB.
TEST(NcclTuning, EightH100ChangeFromLlToNvlsNear1150Kilobytes) {
  const NcclSystem s = system_of(h100(), 1);
  const auto at = [&](double bytes) { return choose_nccl(s, NcclOp::kAllReduce, bytes, {}); };
  EXPECT_EQ(at(1'144'000).algorithm, kRing);
  EXPECT_EQ(at(1'144'000).protocol, Protocol::kLl);
  EXPECT_EQ(at(1'146'000).algorithm, Algorithm::kNvls);
  EXPECT_EQ(at(1 << 20).protocol, Protocol::kLl);
  EXPECT_EQ(at(2 << 20).algorithm, Algorithm::kNvls);
  EXPECT_EQ(at(8LL << 30).algorithm, Algorithm::kNvls);
}

// One channel per member, 60 GB/s at most: up to 5 of 8 give at most 300 of a ring's 360; 6 give 360 at a lower
// latency. B200 at 90 each: only all 8 match a ring's 720.
TEST(NcclTuning, FewMembersReduceByRing) {
  const auto large = [](const NodeFigures& node, std::int32_t members) {
    return choose_nccl(system_of(node, 1, members), NcclOp::kAllReduce, 8e9, {}).algorithm;
  };
  EXPECT_EQ(large(h100(), 2), kRing);
  EXPECT_EQ(large(h100(), 4), kRing);
  EXPECT_EQ(large(h100(), 5), kRing);
  EXPECT_EQ(large(h100(), 6), Algorithm::kNvls);
  EXPECT_EQ(large(h100(), 7), Algorithm::kNvls);
  EXPECT_EQ(large(b200(), 7), kRing);
  EXPECT_EQ(large(b200(), 8), Algorithm::kNvls);
}

TEST(NcclTuning, GathersOnOneNodeGoByRing) {
  // NVLS gathers at 8 x 40 x 0.85 x 7/8 x 7/8 = 208 GB/s of bus bandwidth, a ring at 360.
  const NcclTable t = nccl_table(system_of(h100(), 1), NcclOp::kAllGather, {});
  expect_row(t, Algorithm::kNvls, Protocol::kSimple, 25.0, printed(208.25 * 8 / 7));
  expect_row(t, kRing, Protocol::kSimple, printed(8.4 + 7 * 3.4), printed(360.0 * 8 / 7));
  EXPECT_EQ(choose_nccl(system_of(h100(), 1), NcclOp::kAllGather, 16e9, {}).algorithm, kRing);
}

// One channel of 48 GB/s: ring 8.4 + 15 x 14 us, 48 x 16/15; PAT 8 + log2(16) x 14 / 3.5 + 2.8 x 16 = 68.8 us, 36 GB/s.
TEST(NcclTuning, OneGpuPerNodeGathersByPatWhileSmall) {
  const NcclSystem s = system_of(h100(), 16, 1);
  const NcclTable t = nccl_table(s, NcclOp::kReduceScatter, {});
  expect_row(t, Algorithm::kPat, Protocol::kSimple, 68.8, 36.0);
  expect_row(t, kRing, Protocol::kSimple, 218.4, 51.2);
  EXPECT_EQ(choose_nccl(s, NcclOp::kReduceScatter, 4e6, {}).algorithm, Algorithm::kPat);
  EXPECT_EQ(choose_nccl(s, NcclOp::kReduceScatter, 4e9, {}).algorithm, kRing);
}

// The corrected tree at 256 MiB (entry 22: LL128 1.0, Simple 0.9) and beyond the table (1).
TEST(NcclTuning, TreesAreCorrectedUpTo511Mebibytes) {
  const NcclSystem s = system_of(h100(), 1);
  const NcclTable t = nccl_table(s, NcclOp::kAllReduce, {});
  const double half = 256.0 * (1 << 20);
  const auto time = [&](double bytes) {
    return nccl_time_us(s, NcclOp::kAllReduce, t, kTree, Protocol::kSimple, bytes);
  };
  EXPECT_NEAR(time(half), 64.4 + half / (1000 * 165.6 * 0.9), 1e-6);
  EXPECT_NEAR(time(2 * half), 64.4 + 2 * half / (1000 * 165.6), 1e-6);
  EXPECT_DOUBLE_EQ(nccl_tree_correction(Protocol::kLl, 0), 1);
  EXPECT_DOUBLE_EQ(nccl_tree_correction(Protocol::kLl, 256 << 10), 0.4);  // 2^18 / 2^6: entry 12
}

// From 64 B per channel and rank on, a ring over nodes is given 1.4 times its latency.
TEST(NcclTuning, RingsBetweenNodesHaveAPlateau) {
  const NcclSystem s = system_of(h100(), 2);
  const NcclTable t = nccl_table(s, NcclOp::kAllReduce, {});
  const auto time = [&](double bytes) {
    return nccl_time_us(s, NcclOp::kAllReduce, t, kRing, Protocol::kSimple, bytes);
  };
  EXPECT_NEAR(time(64 * 8 * 16 - 64), 131.6 + (64 * 8 * 16 - 64) / 192e3, 1e-6);
  EXPECT_NEAR(time(64 * 8 * 16), 1.4 * 131.6 + (64 * 8 * 16) / 192e3, 1e-6);
}

// Logs of 8 H100 show 24 collective channels and 16 for NVLS. 64 KiB by LL: 512 threads x 8 B x 8 ranks = 32 KiB fill a
// channel, two are left.
TEST(NcclTuning, ChannelsFollowAlgorithmAndSize) {
  const NcclSystem s = system_of(h100(), 1);
  NcclPins ring;
  ring.nvls = false;
  EXPECT_EQ(choose_nccl(s, NcclOp::kAllReduce, 1e9, ring).channels, 24);
  EXPECT_EQ(choose_nccl(s, NcclOp::kAllReduce, 1e9, {}).channels, 16);
  EXPECT_EQ(choose_nccl(system_of(b200(), 1), NcclOp::kAllReduce, 1e9, {}).channels, 24);
  EXPECT_EQ(choose_nccl(system_of(b200(), 2), NcclOp::kAllReduce, 1e9, {}).channels, 32);
  const NcclChoice small = choose_nccl(s, NcclOp::kAllReduce, 64 << 10, {});
  EXPECT_EQ(small.channels, 2);
  EXPECT_EQ(small.threads, 512);
  // 1 KiB: one channel of 64 threads still wants 4 KiB.
  EXPECT_EQ(choose_nccl(s, NcclOp::kAllReduce, 1 << 10, {}).threads, 64);
  NcclPins few;
  few.max_ctas = 8;
  EXPECT_EQ(choose_nccl(s, NcclOp::kAllReduce, 1e9, few).channels, 8);
}

TEST(NcclTuning, PinsDecide) {
  const NcclSystem s = system_of(h100(), 1);
  const auto chosen = [&](const std::map<std::string, std::string>& environment, NcclOp op = NcclOp::kAllReduce) {
    return choose_nccl(s, op, 1e9, parse_nccl_pins(environment));
  };
  EXPECT_EQ(chosen({{"NCCL_NVLS_ENABLE", "0"}}).algorithm, kRing);
  EXPECT_EQ(chosen({{"NCCL_ALGO", "tree"}}).algorithm, kTree);
  EXPECT_EQ(chosen({{"NCCL_ALGO", "^NVLS,Ring"}}).algorithm, kTree);
  EXPECT_EQ(chosen({{"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "LL"}}).protocol, Protocol::kLl);
  EXPECT_EQ(chosen({{"NCCL_PROTO", "^Simple"}}).protocol, Protocol::kLl128);
  // Rings are never taken from other collectives.
  EXPECT_EQ(chosen({{"NCCL_ALGO", "Tree"}}, NcclOp::kAllGather).algorithm, kRing);
  try {
    chosen({{"NCCL_ALGO", "NVLS"}, {"NCCL_NVLS_ENABLE", "0"}});
    FAIL() << "nothing is left to run";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
    EXPECT_NE(std::string(e.what()).find("NCCL_ALGO"), std::string::npos);
  }
}

TEST(NcclPins, NameTheVariableAndItsWords) {
  const auto problems = [](const std::map<std::string, std::string>& environment) {
    try {
      parse_nccl_pins(environment);
    } catch (const Error& e) {
      return e.problems();
    }
    return std::vector<Problem>{};
  };
  const std::vector<Problem> all = problems(
      {{"NCCL_ALGO", "Rings"}, {"NCCL_PROTO", "LL,Fast"}, {"NCCL_NVLS_ENABLE", "yes"}, {"NCCL_MAX_CTAS", "65"}});
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].where.field, "NCCL_ALGO");
  EXPECT_NE(all[0].help.at(0).find("CollnetDirect"), std::string::npos);
  EXPECT_NE(all[1].message.find("Fast"), std::string::npos);
  EXPECT_NE(all[2].help.at(0).find("0 to 2"), std::string::npos);
  EXPECT_NE(all[3].help.at(0).find("1 to 64"), std::string::npos);
  for (const Problem& p : all) EXPECT_EQ(p.kind, ErrorKind::kInput);
  EXPECT_EQ(
      parse_nccl_pins({{"NCCL_PROTO", "LL"}}, {{"NCCL_PROTO", {"run.yaml", 9, "stack.env.NCCL_PROTO"}}}).where.line, 9);
  EXPECT_EQ(problems({{"NCCL_ALGO", "allreduce:ring"}}).at(0).kind, ErrorKind::kUnsupported);
  EXPECT_TRUE(problems({{"NCCL_DEBUG", "INFO"}}).empty());
}

// H800: 8 links x 20.6 = 164.8 usable: 8 channels x 20 carry more than 12 x 12. A full mesh of xGMI: a channel per
// link.
TEST(NcclGraphs, FollowTheVendorsFigures) {
  NodeFigures h800 = h100();
  h800.port = 200e9;
  EXPECT_EQ(system_of(h800, 1).ring.channels, 8);
  EXPECT_DOUBLE_EQ(system_of(h800, 1).ring.intra, 20);
  EXPECT_EQ(system_of(a100(), 2).ring.channels, 8);
  EXPECT_DOUBLE_EQ(system_of(a100(), 2).ring.inter, 24);
  EXPECT_EQ(system_of(mi300x(), 1).ring.channels, 7);
  EXPECT_EQ(system_of(mi300x(), 2).ring.channels, 8);
  EXPECT_DOUBLE_EQ(system_of(mi300x(), 1, 2).ring.intra, 48);
  EXPECT_EQ(system_of(mi300x(), 1, 2).ring.channels, 1);
}

// Of 370.8 usable GB/s 8 channels x 45 take 360, and no other count takes more (7 x 48 = 336; 9 x 40 = 12 x 30 = 15 x
// 24 = 360) down to 0.49 x 45 = 22.05 a channel, where the search ends (21 x 17.5 would be 367.5): more NICs open no
// channel and hold no multiprocessor more. Of 721.8 of a GB200 16 x 45.1 take 721.6 by 16 of its 72 NICs (15 x 48 =
// 720, 30 x 24 = 720).
TEST(NcclGraphs, HaveNoMoreChannelsThanThePortCanFill) {
  for (const double nics : {1, 2, 4}) {
    NodeFigures node = h100();
    node.nics = nics;
    const NcclSystem s = system_of(node, 2);
    EXPECT_EQ(s.ring.channels, 8) << nics;
    EXPECT_DOUBLE_EQ(s.ring.inter, 45) << nics;
    EXPECT_EQ(choose_nccl(s, NcclOp::kAllGather, 1e9, {}).channels, 16) << nics;
  }
  const NcclSystem racks = system_of(gb200(), 2, 72);
  EXPECT_EQ(racks.ring.channels, 16);
  EXPECT_DOUBLE_EQ(racks.ring.inter, 45.1);
}

}  // namespace
}  // namespace stepcast::sim
