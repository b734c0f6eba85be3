// What communication moved, on several lanes at once, worked out by hand. Times are picoseconds; a port moves at most 1
// byte a picosecond by the vendor's rate and 0.8 in truth, a NIC half of each.
#include "sim/network_use.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/sim/tiny_program.h"

namespace stepcast::sim {
namespace {

using program::Stream;

// Transfers by op name, messages by the one entry "message"; no demands but on shared links, so that nothing slows.
class TrafficCosts final : public TableCosts {
 public:
  using TableCosts::TableCosts;
  std::map<std::string, TransferCost> transfers;
  std::vector<SharedLink> links;
  std::vector<Crossing> message_crossings;

  VendorRates vendor_rates() const override {
    return {BytesPerSecond(1e12), BytesPerSecond(0.5e12), BytesPerSecond(0.8e12), BytesPerSecond(0.4e12)};
  }
  TransferCost collective_cost(const program::Op& op, std::span<const program::TensorType>, PathClass,
                               std::int64_t) const override {
    return transfers.at(op.name);
  }
  TransferCost message_cost(Bytes, PathClass) const override { return transfers.at("message"); }
  std::span<const SharedLink> shared_links() const override { return links; }
  void append_crossings(std::span<const std::int32_t>, Pattern pattern,
                        std::vector<Crossing>& crossings) const override {
    if (pattern != Pattern::kMessage) return;
    crossings.insert(crossings.end(), message_crossings.begin(), message_crossings.end());
  }
};

TransferCost transfer(std::int64_t time, std::int64_t port_bytes, std::int64_t nic_bytes) {
  TransferCost cost{Duration(time)};
  cost.port_bytes = Bytes(port_bytes);
  cost.nic_bytes = Bytes(nic_bytes);
  return cost;
}

// Two ranks a node: tp within it over ports, dp between the two nodes over NICs.
TinyProgram two_nodes() {
  TinyProgram t(1, {0, 0, 0, 0});
  for (const std::vector<std::uint32_t>& members : {std::vector<std::uint32_t>{0, 1}, {2, 3}}) t.group("tp", members);
  for (const std::vector<std::uint32_t>& members : {std::vector<std::uint32_t>{0, 2}, {1, 3}}) t.group("dp", members);
  return t;
}

const CommunicationUse* use_of(const Prediction& prediction, const program::CheckedProgram& p, const std::string& role,
                               std::int64_t time) {
  for (const CommunicationUse& use : prediction.communication) {
    if (p.program().roles[use.role].name == role && use.cost.time.ps == time) return &use;
  }
  return nullptr;
}

const TierUse* tier_of(const Prediction& prediction, const std::string& name) {
  for (const TierUse& use : prediction.tiers) {
    if (use.tier == name) return &use;
  }
  return nullptr;
}

// a 0-10, t 10-110 and again 110-210, u 210-280 on tp's lane; b waits for them, 280-300; d on dp's lane 300-350. Alike
// transfers are one line: t is called twice by each of two groups. What b waited for is tp's: 200 of t, 70 of u; the
// step's tail is dp's 50. Folded or not.
TEST(CommunicationUse, CountsLanesApartAndAlikeTransfersTogether) {
  TinyProgram t = two_nodes();
  t.work(0, "a", {}, "x");
  t.all_reduce(0, "t", "tp", "x", Stream::kTp);
  t.all_reduce(0, "t", "tp", "x", Stream::kTp);
  t.all_reduce(0, "u", "tp", "x", Stream::kTp);
  t.work(0, "b", {"x"}, "z");
  t.all_reduce(0, "d", "dp", "z", Stream::kDp);
  TrafficCosts costs({{"a", 10}, {"b", 20}});
  costs.transfers = {{"t", transfer(100, 40, 0)}, {"u", transfer(70, 7, 0)}, {"d", transfer(50, 0, 20)}};
  const program::CheckedProgram p = t.checked();
  for (const bool fold : {true, false}) {
    const Prediction prediction = simulate(p, costs, {.fold = fold});
    EXPECT_EQ(prediction.step, Duration(350));
    ASSERT_EQ(prediction.communication.size(), 3u);
    const struct {
      const char* role;
      std::int64_t time, transfers, moving, exposed;
    } lines[] = {{"tp", 100, 4, 200, 200}, {"tp", 70, 2, 70, 70}, {"dp", 50, 2, 50, 50}};
    for (const auto& line : lines) {
      const CommunicationUse* use = use_of(prediction, p, line.role, line.time);
      ASSERT_NE(use, nullptr) << line.role << line.time;
      EXPECT_EQ(use->transfers, line.transfers) << line.role << line.time;
      EXPECT_EQ(use->ranks, 4);
      EXPECT_EQ(use->members, 2);
      EXPECT_EQ(use->moving, Duration(line.moving));
      EXPECT_EQ(use->exposed, Duration(line.exposed));
    }
  }
}

// Stage 0 (two ranks) sends to stage 1 and then reduces; stage 1 only receives. Two messages have four ends, the
// reduction of stage 0 two ranks: 30 for each of the four, 40 for each of the two.
TEST(CommunicationUse, AveragesOverTheRanksThatTakePart) {
  TinyProgram t(2, {0, 0, 1, 1});
  for (const std::vector<std::uint32_t>& members : {std::vector<std::uint32_t>{0, 2}, {1, 3}}) t.group("pp", members);
  for (const std::vector<std::uint32_t>& members : {std::vector<std::uint32_t>{0, 1}, {2, 3}}) t.group("dp", members);
  t.work(0, "a", {}, "x");
  t.send(0, "s", {true, "pp", 1, "x"}, Stream::kSendNext);
  t.all_reduce(0, "d", "dp", "x", Stream::kDp);
  t.receive(1, "r", {false, "pp", -1, "y"}, Stream::kRecvPrev);
  TrafficCosts costs({{"a", 10}});
  costs.transfers = {{"message", transfer(30, 0, 12)}, {"d", transfer(40, 8, 0)}};
  const program::CheckedProgram p = t.checked();
  const Prediction prediction = simulate(p, costs, {});
  const CommunicationUse* message = use_of(prediction, p, "pp", 30);
  ASSERT_NE(message, nullptr);
  EXPECT_EQ(message->transfers, 2);
  EXPECT_EQ(message->ranks, 4);
  EXPECT_EQ(message->moving, Duration(30));
  const CommunicationUse* reduce = use_of(prediction, p, "dp", 40);
  ASSERT_NE(reduce, nullptr);
  EXPECT_EQ(reduce->transfers, 1);
  EXPECT_EQ(reduce->ranks, 2);
  EXPECT_EQ(reduce->moving, Duration(40));
  // A message leaves by its sender's NIC: two senders, 12 bytes each, 6 a rank of the job.
  const TierUse* nic = tier_of(prediction, "nic");
  ASSERT_NE(nic, nullptr);
  EXPECT_EQ(nic->links, 2);
  EXPECT_DOUBLE_EQ(nic->bytes_per_rank, 6);
}

// tp's 60 bytes and dp's 20 + 50 in 100 ps, side by side from 0 on: a port carries 0.6 + 0.5 = 1.1 at its peak, which
// it cannot; with contention that is at most the 0.8 it reaches. A NIC carries 0.2 of 0.5. Means over a step of 100:
// 110 / 100 of a port, 20 / 50 of a NIC.
TEST(TierUse, AddsUpLanesOnPortsAndNics) {
  TinyProgram t = two_nodes();
  t.all_reduce(0, "t", "tp", "x", Stream::kTp);
  t.all_reduce(0, "d", "dp", "y", Stream::kDp);
  TrafficCosts costs(std::map<std::string, std::int64_t>{});
  costs.transfers = {{"t", transfer(100, 60, 0)}, {"d", transfer(100, 50, 20)}};
  const program::CheckedProgram p = t.checked();
  for (const bool fold : {true, false}) {
    for (const bool contention : {true, false}) {
      const Prediction prediction = simulate(p, costs, {.fold = fold, .contention = contention});
      ASSERT_EQ(prediction.step, Duration(100));
      ASSERT_EQ(prediction.tiers.size(), 2u);
      const TierUse& port = prediction.tiers[0];
      EXPECT_EQ(port.tier, "scale_up");
      EXPECT_EQ(port.links, 4);
      EXPECT_DOUBLE_EQ(port.bytes_per_rank, 110);
      EXPECT_NEAR(port.peak_utilisation, contention ? 0.8 : 1.1, 1e-12);
      EXPECT_NEAR(port.mean_utilisation, 1.1, 1e-12);
      ASSERT_EQ(port.carries.size(), 2u);
      EXPECT_EQ(p.program().roles[port.carries[0].first].name, "tp");  // the largest first
      EXPECT_DOUBLE_EQ(port.carries[0].second, 60);
      EXPECT_DOUBLE_EQ(port.carries[1].second, 50);
      const TierUse& nic = prediction.tiers[1];
      EXPECT_EQ(nic.tier, "nic");
      EXPECT_EQ(nic.links, 4);
      EXPECT_DOUBLE_EQ(nic.bytes_per_rank, 20);
      EXPECT_NEAR(nic.peak_utilisation, 0.4, 1e-12);
      EXPECT_NEAR(nic.mean_utilisation, 0.4, 1e-12);
    }
  }
}

// One message of 60 bytes at half a NIC's rate for 100 ps, out by one shared link and in by another, of one NIC each.
TEST(TierUse, HasSharedLinksAfterPortsAndNics) {
  TinyProgram t(2, {0, 1});
  t.group("pp", {0, 1});
  t.send(0, "s", {true, "pp", 1, "x"}, Stream::kSendNext);
  t.receive(1, "r", {false, "pp", -1, "y"}, Stream::kRecvPrev);
  TrafficCosts costs(std::map<std::string, std::int64_t>{});
  TransferCost message = transfer(100, 0, 60);
  message.nic = kWhole / 2;
  costs.transfers = {{"message", message}};
  costs.links = {{kWhole, "leaf", "node 0 NIC 0 out"}, {kWhole, "leaf", "node 1 NIC 0 in"}};
  costs.message_crossings = {{0, kWeightUnit}, {1, kWeightUnit}};
  const Prediction prediction = simulate(t.checked(), costs, {});
  ASSERT_EQ(prediction.tiers.size(), 2u);
  EXPECT_EQ(prediction.tiers[0].tier, "nic");
  const TierUse& leaf = prediction.tiers[1];
  EXPECT_EQ(leaf.tier, "leaf");
  EXPECT_EQ(leaf.links, 2);
  EXPECT_DOUBLE_EQ(leaf.bytes_per_rank, 30);  // 60 of two ranks; out and in are one passage
  EXPECT_NEAR(leaf.peak_utilisation, 0.5, 1e-12);
  EXPECT_NEAR(leaf.mean_utilisation, 0.5, 1e-12);
}

}  // namespace
}  // namespace stepcast::sim
