// What both engines take: one step of the simulated ranks as flat arrays of priced ops, with the communication of
// different ranks already matched into transfers.
//
// One representative per class takes part in the collectives of its groups as all ranks of its class do, so a folded
// group has one participant per distinct class of its members, and a message goes from the class of the sender to the
// class of the receiver. The partition is equitable (folding.h), hence every rank of a class sees the same
// participants.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "program/check.h"
#include "sim/cost/cost.h"
#include "sim/folding.h"

namespace stepcast::sim {

inline constexpr std::uint32_t kNoOp = std::numeric_limits<std::uint32_t>::max();

// What every rank of one rank program shares. Ops are numbered as in its Resolution.
struct RankShape {
  const program::RankProgram* program = nullptr;
  const program::Resolution* resolution = nullptr;
  std::vector<const program::Op*> ops;
  std::vector<Duration> launch;                // host time before the op is issued
  std::vector<std::uint32_t> stream_previous;  // the op before on the same stream, or kNoOp

  std::uint32_t op_count() const { return static_cast<std::uint32_t>(ops.size()); }
};

// The representative of one class; its ops are [first_op, first_op + op_count) of the workload.
struct SimulatedRank {
  program::RankId rank;
  std::uint32_t shape = 0;
  std::uint32_t first_op = 0;
};

// One collective, or one message: starts when all its ops have begun and ends for all of them together.
struct Transfer {
  Duration duration;
  std::vector<std::uint32_t> ops;  // distinct workload ops, in the order they were matched
};

class Workload {
 public:
  Workload(const program::CheckedProgram& p, const CostModel& costs, const Folding& folding);

  const std::vector<RankShape>& shapes() const { return shapes_; }
  const std::vector<SimulatedRank>& ranks() const { return ranks_; }
  const RankShape& shape_of(const SimulatedRank& rank) const { return shapes_[rank.shape]; }
  std::uint32_t op_count() const { return static_cast<std::uint32_t>(duration_.size()); }
  // Time on its stream of a local op; zero for communication, whose time is its transfers'.
  Duration duration(std::uint32_t op) const { return duration_[op]; }
  const std::vector<Transfer>& transfers() const { return transfers_; }
  // Transfers the op takes part in: none for a local op, one per message for an exchange.
  std::span<const std::uint32_t> transfers_of(std::uint32_t op) const {
    return std::span(transfer_ids_).subspan(transfer_begin_[op], transfer_begin_[op + 1] - transfer_begin_[op]);
  }
  // Index into ranks() of the rank that issues the op.
  std::uint32_t rank_of(std::uint32_t op) const { return rank_of_[op]; }
  const program::Program& program() const { return checked_->program(); }
  // "rank 3 F.c0.m1.L2.attn.qkv", for messages.
  std::string describe(std::uint32_t op) const;

 private:
  friend class WorkloadBuilder;

  const program::CheckedProgram* checked_ = nullptr;
  std::vector<RankShape> shapes_;
  std::vector<SimulatedRank> ranks_;
  std::vector<Duration> duration_;
  std::vector<std::uint32_t> rank_of_;
  std::vector<Transfer> transfers_;
  std::vector<std::uint32_t> transfer_begin_;
  std::vector<std::uint32_t> transfer_ids_;
};

// Ops are numbered in 32 bits, and kNoOp is none of them: throws Error (kInput) for more.
void check_op_count(std::uint64_t ops);

// When everything happened. Op entries are by workload op, transfer entries by transfer.
struct Timeline {
  std::vector<SimTime> issue;
  std::vector<SimTime> begin;
  std::vector<SimTime> end;
  std::vector<SimTime> transfer_start;
  std::vector<SimTime> transfer_end;

  explicit Timeline(const Workload& w)
      : issue(w.op_count()),
        begin(w.op_count()),
        end(w.op_count()),
        transfer_start(w.transfers().size()),
        transfer_end(w.transfers().size()) {}
};

}  // namespace stepcast::sim
