// Slowdowns worked out by hand. Times are picoseconds.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "sim/prediction.h"
#include "tests/sim/tiny_program.h"

namespace stepcast::sim {
namespace {

using program::Stream;

// Costs by op name, with demands. Messages are priced by the one entry "message".
class DemandCosts final : public TableCosts {
 public:
  explicit DemandCosts(std::map<std::string, std::int64_t> times) : TableCosts(std::move(times)) {}
  std::map<std::string, LocalCost> local;
  std::map<std::string, TransferCost> transfers;
  std::map<std::int32_t, DeviceLimits> limited;  // by device, each a class of its own
  std::vector<SharedLink> links;
  std::vector<Crossing> message_crossings;

  DeviceClass device_class(std::int32_t device) const override {
    return limited.contains(device) ? static_cast<DeviceClass>(100 + device) : TableCosts::device_class(device);
  }
  DeviceLimits limits(DeviceClass device) const override {
    return device < 100 ? DeviceLimits{} : limited.at(static_cast<std::int32_t>(device) - 100);
  }
  LocalCost local_cost(const program::Op& op, std::span<const program::TensorType> types,
                       DeviceClass device) const override {
    const auto it = local.find(op.name);
    return it == local.end() ? TableCosts::local_cost(op, types, device >= 100 ? 1 : device) : it->second;
  }
  TransferCost collective_cost(const program::Op& op, std::span<const program::TensorType> types, PathClass path,
                               std::int64_t members) const override {
    const auto it = transfers.find(op.name);
    return it == transfers.end() ? TableCosts::collective_cost(op, types, path, members) : it->second;
  }
  TransferCost message_cost(Bytes, PathClass) const override { return transfers.at("message"); }
  std::span<const SharedLink> shared_links() const override { return links; }
  void append_crossings(std::span<const std::int32_t>, Pattern pattern,
                        std::vector<Crossing>& crossings) const override {
    if (pattern == Pattern::kMessage)
      crossings.insert(crossings.end(), message_crossings.begin(), message_crossings.end());
  }
};

TransferCost transfer(std::int64_t time, Share multiprocessors, Share memory, Share port, Share nic) {
  TransferCost cost{Duration(time)};
  cost.multiprocessors = multiprocessors;
  cost.memory = memory;
  cost.port = port;
  cost.nic = nic;
  return cost;
}

// End of the op of this name on a rank; folded and unfolded must agree.
std::int64_t end_of(const program::CheckedProgram& p, const CostModel& costs, std::uint32_t rank,
                    const std::string& name, bool contention = true) {
  std::int64_t ends[2] = {-1, -1};
  for (const bool fold : {false, true}) {
    const Prediction prediction = simulate(p, costs, {.fold = fold, .contention = contention});
    const ClassResult& c = prediction.classes[prediction.class_of_rank[rank]];
    const program::RankProgram& r = p.program().rank_programs[p.program().ranks[c.representative].program];
    for (const trace::Event& e : c.events) {
      const program::Op& op = p.program().segments[r.calls[e.id.call].segment].ops[e.id.op];
      if (op.name == name) ends[fold ? 1 : 0] = e.end.ps;
    }
  }
  EXPECT_EQ(ends[0], ends[1]) << name;
  return ends[0];
}

// Two ranks: a 100 ps matmul beside an all-reduce that begins at once.
program::CheckedProgram matmul_beside_reduce() {
  TinyProgram t(1, {0, 0});
  t.all_reduce(0, "reduce", "dp", "g", Stream::kDp);
  t.work(0, "matmul", {}, "x");
  t.group("dp", {0, 1});
  return t.checked();
}

TEST(Contention, HeldMultiprocessorsSlowAKernelThatNeedsThemAll) {
  // The reduction holds a quarter for 30 ps: 30 * 3/4 = 22.5 done, 77.5 left at full speed: ends at 107.5, rounded up.
  DemandCosts costs({});
  costs.local["matmul"] = {Duration(100), kWhole, 0};
  costs.transfers["reduce"] = transfer(30, kWhole / 4, 0, 0, 0);
  EXPECT_EQ(end_of(matmul_beside_reduce(), costs, 0, "matmul"), 108);
  EXPECT_EQ(end_of(matmul_beside_reduce(), costs, 0, "matmul", false), 100);
}

TEST(Contention, AKernelThatNeedsNoMoreThanIsLeftIsNotSlowed) {
  // Half of the multiprocessors and 60 % of memory are enough for it; 3/4 and 3/4 are left.
  DemandCosts costs({});
  costs.local["matmul"] = {Duration(100), kWhole / 2, kWhole * 6 / 10};
  costs.transfers["reduce"] = transfer(30, kWhole / 4, kWhole / 4, 0, 0);
  EXPECT_EQ(end_of(matmul_beside_reduce(), costs, 0, "matmul"), 100);
}

TEST(Contention, MemoryTrafficSlowsAKernelByWhatIsMissing) {
  // It needs all of the memory rate, half is left for 30 ps: 15 done, 85 to go: 115.
  DemandCosts costs({});
  costs.local["matmul"] = {Duration(100), 0, kWhole};
  costs.transfers["reduce"] = transfer(30, 0, kWhole / 2, 0, 0);
  EXPECT_EQ(end_of(matmul_beside_reduce(), costs, 0, "matmul"), 115);
}

TEST(Contention, AWaitingKernelHoldsItsMultiprocessors) {
  // Rank 1 comes to the reduction at 40; rank 0's kernel spins from 0 on and runs to 50: half the multiprocessors are
  // held for 50 ps, 25 done, 75 left: 125. On rank 1 the reduction takes 10 ps of the 100 ps kernel that starts at 40:
  // 40 + 10 + (100 - 5) = 145.
  TinyProgram t(2, {0, 1});
  t.work(1, "before", {}, "g");
  for (const std::size_t program : {0U, 1U}) t.all_reduce(program, "reduce", "dp", "g", Stream::kDp);
  for (const std::size_t program : {0U, 1U}) t.work(program, "matmul", {}, "x");
  t.group("dp", {0, 1});
  const program::CheckedProgram p = t.checked();
  DemandCosts costs({{"before", 40}});
  costs.local["matmul"] = {Duration(100), kWhole, 0};
  costs.transfers["reduce"] = transfer(10, kWhole / 2, 0, 0, 0);
  EXPECT_EQ(end_of(p, costs, 0, "matmul"), 125);
  EXPECT_EQ(end_of(p, costs, 1, "matmul"), 145);
}

TEST(Contention, EverythingHeldLeavesASixteenth) {
  // 32 ps at 1/16 do 2 of 100: 98 left.
  DemandCosts costs({});
  costs.local["matmul"] = {Duration(100), kWhole, 0};
  costs.transfers["reduce"] = transfer(32, 2 * kWhole, 0, 0, 0);
  EXPECT_EQ(end_of(matmul_beside_reduce(), costs, 0, "matmul"), 130);
}

// Two reductions on two streams of a pair of ranks.
program::CheckedProgram two_reductions() {
  TinyProgram t(1, {0, 0});
  t.all_reduce(0, "first", "dp", "g", Stream::kDp);
  t.all_reduce(0, "second", "tp", "h", Stream::kTp);
  t.group("dp", {0, 1});
  t.group("tp", {0, 1});
  return t.checked();
}

TEST(Contention, TransfersShareAPort) {
  // 100 and 40 ps alone, each taking the whole port: half speed until the second ends at 80, then 60 more.
  DemandCosts costs({});
  costs.transfers["first"] = transfer(100, 0, 0, kWhole, 0);
  costs.transfers["second"] = transfer(40, 0, 0, kWhole, 0);
  EXPECT_EQ(end_of(two_reductions(), costs, 0, "second"), 80);
  EXPECT_EQ(end_of(two_reductions(), costs, 0, "first"), 140);
  EXPECT_EQ(end_of(two_reductions(), costs, 0, "first", false), 100);
}

TEST(Contention, PortsAndNicsAreApart) {
  DemandCosts costs({});
  costs.transfers["first"] = transfer(100, 0, 0, kWhole, 0);
  costs.transfers["second"] = transfer(40, 0, 0, 0, kWhole);
  EXPECT_EQ(end_of(two_reductions(), costs, 0, "second"), 40);
  EXPECT_EQ(end_of(two_reductions(), costs, 0, "first"), 100);
}

TEST(Contention, AHalfRateNicHoldsBackItsWholeGroup) {
  // Both need 1/2 of a NIC: they fit on rank 0, not on rank 1, whose NIC has half: half speed for both. second: 80;
  // first: 40 done by then, 60 left: 140.
  DemandCosts costs({});
  costs.limited[1] = {kWhole, kWhole / 2};
  costs.transfers["first"] = transfer(100, 0, 0, 0, kWhole / 2);
  costs.transfers["second"] = transfer(40, 0, 0, 0, kWhole / 2);
  EXPECT_EQ(end_of(two_reductions(), costs, 0, "second"), 80);
  EXPECT_EQ(end_of(two_reductions(), costs, 0, "first"), 140);
}

TEST(Contention, MessagesOfManyRanksShareAnUplink) {
  // Four ranks send at once through one link as fast as two NICs: half speed, whether folded into one flow or not.
  TinyProgram t(2, {0, 0, 0, 0, 1, 1, 1, 1});
  t.send(0, "send", {true, "pp", 1, "x"}, Stream::kSendNext);
  t.receive(1, "receive", {false, "pp", -1, "y"}, Stream::kRecvPrev);
  for (const std::uint32_t i : {0U, 1U, 2U, 3U}) t.group("pp", {i, i + 4});
  const program::CheckedProgram p = t.checked();
  DemandCosts costs({});
  costs.transfers["message"] = transfer(100, 0, 0, 0, kWhole);
  costs.links = {{2 * kWhole, "spine", "up"}};
  costs.message_crossings = {{0, kWeightUnit}};
  EXPECT_EQ(end_of(p, costs, 4, "receive"), 200);
  const Prediction prediction = simulate(p, costs, {});
  EXPECT_EQ(prediction.classes.size(), 2U);
  EXPECT_EQ(prediction.link_classes, 1U);
  // Up and full all the time. Each message puts one NIC's worth on it.
  ASSERT_EQ(prediction.tiers.size(), 1U);
  EXPECT_EQ(prediction.tiers[0].tier, "spine");
  EXPECT_NEAR(prediction.tiers[0].peak_utilisation, 1.0, 1e-9);
  EXPECT_NEAR(prediction.tiers[0].mean_utilisation, 1.0, 1e-9);
}

TEST(Contention, NextAndPreviousOfAPairAreOneLaneOnALink) {
  // In a pipeline of two each rank sends to its next (activations) and to its previous (gradients), one rank. One
  // message at a time needs all of a link as fast as one NIC: nothing is slowed, 100 ps each.
  TinyProgram t(2, {0, 1});
  t.send(0, "first", {true, "pp", 1, "x"}, Stream::kSendNext);
  t.receive(0, "third", {false, "pp", -1, "z", program::Channel::kGradient}, Stream::kRecvPrev);
  t.work(0, "between", {"z"}, "w");
  t.send(0, "fourth", {true, "pp", -1, "w", program::Channel::kGradient}, Stream::kSendPrev);
  t.receive(1, "second", {false, "pp", -1, "y"}, Stream::kRecvPrev);
  t.send(1, "back", {true, "pp", 1, "y", program::Channel::kGradient}, Stream::kSendNext);
  t.receive(1, "last", {false, "pp", 1, "v", program::Channel::kGradient}, Stream::kRecvNext);
  t.group("pp", {0, 1});
  DemandCosts costs({});
  costs.transfers["message"] = transfer(100, 0, 0, 0, kWhole);
  costs.links = {{kWhole, "spine", "both ways"}};
  costs.message_crossings = {{0, kWeightUnit}};
  const program::CheckedProgram p = t.checked();
  EXPECT_EQ(end_of(p, costs, 1, "second"), 100);
  EXPECT_EQ(end_of(p, costs, 0, "third"), 200);
  EXPECT_EQ(end_of(p, costs, 1, "last"), 300);
}

TEST(Contention, WhatIsFreeHoldsNothing) {
  // Rank 1 comes to the reduction 40 ps late; were reductions free, rank 0's kernel would not be slowed meanwhile.
  TinyProgram t(2, {0, 1});
  t.work(1, "before", {}, "g");
  for (const std::size_t program : {0U, 1U}) t.all_reduce(program, "reduce", "dp", "g", Stream::kDp);
  for (const std::size_t program : {0U, 1U}) t.work(program, "matmul", {}, "x");
  t.group("dp", {0, 1});
  DemandCosts costs({{"before", 40}});
  costs.local["matmul"] = {Duration(100), kWhole, 0};
  costs.transfers["reduce"] = transfer(10, kWhole / 2, 0, 0, 0);
  const program::CheckedProgram p = t.checked();
  const Simulation simulation(p, costs, true);
  EXPECT_EQ(simulation.run({.free = Free::kDp}).classes[0].time.slowed, Duration(0));
  EXPECT_EQ(simulation.step({.free = Free::kDp}), Duration(140));
}

// What the table of collectives says is what the accounting says, and counts ranks once.
TEST(Contention, CommunicationAddsUpToWhatWasExposed) {
  TinyProgram t(2, {0, 0, 1, 1});
  for (const std::size_t s : {0U, 1U}) {
    t.work(s, "compute", {}, "x");
    t.all_reduce(s, "reduce", "dp", "x", Stream::kDp);
    t.work(s, "use", {"x"}, "u");
  }
  t.send(0, "send", {true, "pp", 1, "u"}, Stream::kSendNext);
  t.receive(1, "receive", {false, "pp", -1, "y"}, Stream::kRecvPrev);
  t.work(1, "end", {"y"}, "e");
  for (const std::uint32_t i : {0U, 2U}) t.group("dp", {i, i + 1});
  for (const std::uint32_t i : {0U, 1U}) t.group("pp", {i, i + 2});
  DemandCosts costs({{"compute", 50}, {"use", 10}, {"end", 10}});
  costs.transfers["reduce"] = transfer(30, 0, 0, kWhole, 0);
  costs.transfers["message"] = transfer(20, 0, 0, kWhole / 2, 0);
  const Prediction prediction = simulate(t.checked(), costs, {});
  std::int64_t accounted = 0;
  for (const ClassResult& c : prediction.classes) {
    for (const Duration d : c.time.exposed) accounted += d.ps * c.ranks;
  }
  std::int64_t listed = 0;
  for (const CommunicationUse& use : prediction.communication) {
    listed += use.exposed.ps * 4;
    EXPECT_EQ(use.ranks, 4);
    EXPECT_EQ(use.transfers, 2);
    EXPECT_EQ(use.moving, use.cost.time);
  }
  EXPECT_GT(accounted, 0);
  EXPECT_EQ(listed, accounted);
}

TEST(Contention, SlowdownIsToldApartAndFreeOfIt) {
  DemandCosts costs({});
  costs.local["matmul"] = {Duration(100), 0, kWhole};
  costs.transfers["reduce"] = transfer(30, 0, kWhole / 2, 0, 0);
  const program::CheckedProgram p = matmul_beside_reduce();
  const Prediction prediction = simulate(p, costs, {});
  EXPECT_EQ(prediction.classes[0].time.compute, Duration(115));
  EXPECT_EQ(prediction.classes[0].time.slowed, Duration(15));
  EXPECT_EQ(Simulation(p, costs, true).step({.free = Free::kSlowdown}), Duration(100));
}

}  // namespace
}  // namespace stepcast::sim
