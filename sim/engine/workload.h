// What both engines take: one step of the simulated ranks as flat arrays of priced ops, with the communication of
// different ranks already matched into transfers.
//
// One representative per class takes part in the collectives of its groups as all ranks of its class do, so a folded
// group has one participant per distinct class of its members, and a message goes from the class of the sender to the
// class of the receiver. The partition is equitable (folding.h), hence every rank of a class sees the same
// participants.
//
// Matching is static: the n-th op of a rank in one slot (a role and channel of collectives; a role, offset, direction
// and channel of messages) takes part in the n-th transfer of the slot's lane.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "program/check.h"
#include "sim/cost/cost.h"
#include "sim/engine/large_table.h"
#include "sim/engine/rank_shape.h"
#include "sim/exposed.h"
#include "sim/folding.h"

namespace stepcast::sim {

// The representative of one class; its ops are [first_op, first_op + op_count) of the workload.
struct SimulatedRank {
  program::RankId rank;
  std::uint32_t shape = 0;
  std::uint32_t first_op = 0;
  std::uint32_t first_slot = 0;  // its lanes are lanes_of_slots[first_slot + slot]
};

// A rank's slot whose ops take part in a lane.
struct Participant {
  std::uint32_t rank = 0;  // position in ranks()
  std::uint32_t slot = 0;
};

// Collectives of one group and channel, or messages of one sender, role, offset and channel, in sequence. Transfer
// `first + n` starts when the n-th op of every participant has begun and ends for all of them together.
struct Lane {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::vector<Participant> participants;  // an exchange that sends to its own class takes part twice
  std::uint32_t loads = 0;                // position in link_loads()
  Exposed exposed = Exposed::kDp;
};

class Workload {
 public:
  Workload(const program::CheckedProgram& p, const CostModel& costs, const Folding& folding);

  const std::vector<RankShape>& shapes() const { return shapes_; }
  const std::vector<SimulatedRank>& ranks() const { return ranks_; }
  const RankShape& shape_of(const SimulatedRank& rank) const { return shapes_[rank.shape]; }
  std::uint32_t op_count() const { return op_count_; }

  const std::vector<Lane>& lanes() const { return lanes_; }
  const Lane& lane_of(const SimulatedRank& rank, std::uint32_t slot) const {
    return lanes_[lanes_of_slots_[rank.first_slot + slot]];
  }
  std::uint32_t transfer_count() const { return static_cast<std::uint32_t>(transfers_.size()); }
  // The transfer of one part of a rank's ops.
  std::uint32_t transfer_of(const SimulatedRank& rank, const RankShape::Part& part) const {
    return lane_of(rank, part.slot).first + part.sequence;
  }
  std::uint32_t lane_number(std::uint32_t transfer) const { return transfers_[transfer].lane; }
  const Lane& lane_of_transfer(std::uint32_t transfer) const { return lanes_[transfers_[transfer].lane]; }
  bool is_message(const Lane& lane) const {
    const Participant& p = lane.participants.front();
    return shape_of(ranks_[p.rank]).slots[p.slot].message;
  }
  const TransferPrice& price_of(std::uint32_t transfer) const { return prices_[transfers_[transfer].price]; }
  std::uint32_t price_number(std::uint32_t transfer) const { return transfers_[transfer].price; }
  const std::vector<TransferPrice>& prices() const { return prices_; }
  // The op, among all ops of the workload, by which a participant takes part in a lane's n-th transfer.
  std::uint32_t op_of(const Participant& p, std::uint32_t sequence) const {
    const SimulatedRank& rank = ranks_[p.rank];
    return rank.first_op + shape_of(rank).slots[p.slot].ops[sequence];
  }

  // What lanes put on shared links, by Lane::loads; 0 is nothing.
  const std::vector<std::vector<LinkLoad>>& link_loads() const { return link_loads_; }
  const std::vector<SharedLink>& links() const { return links_; }  // by link class
  DeviceLimits limits(std::uint32_t rank) const { return shape_of(ranks_[rank]).limits; }

  const program::Program& program() const { return checked_->program(); }
  // "rank 3 F.c0.m1.L2.attn.qkv", for messages.
  std::string describe(std::uint32_t rank, std::uint32_t op_in_rank) const;

 private:
  friend class WorkloadBuilder;

  const program::CheckedProgram* checked_ = nullptr;
  std::vector<RankShape> shapes_;
  std::vector<SimulatedRank> ranks_;
  std::uint32_t op_count_ = 0;
  std::vector<Lane> lanes_;
  std::vector<std::uint32_t> lanes_of_slots_;
  std::vector<TransferPrice> prices_;
  struct Transfer {
    std::uint32_t lane = 0;
    std::uint32_t price = kNoOp;
  };
  std::vector<Transfer> transfers_;
  std::vector<std::vector<LinkLoad>> link_loads_;
  std::vector<SharedLink> links_;
};

// Ops are numbered in 32 bits, and kNoOp is none of them: throws Error (kInput) for more.
void check_op_count(std::uint64_t ops);

// When everything happened. What else the engine counts is kept beside the times that it touches with them.
struct OpTimes {
  SimTime issue;
  SimTime begin;
  SimTime end;
  std::uint32_t parts_left;  // its transfers that have not ended
  std::uint8_t waits;        // what it still waits for before it starts
};

struct TransferTimes {
  SimTime start;
  SimTime end;
  std::uint32_t missing;  // participants that have not started
};

struct Timeline {
  LargeTable<OpTimes> ops;              // by workload op
  LargeTable<TransferTimes> transfers;  // by transfer

  explicit Timeline(const Workload& w) : ops(w.op_count()), transfers(w.transfer_count()) {}
};

}  // namespace stepcast::sim
