// What every rank shares that runs one rank program on equal devices over equal paths: its ops in issue order, their
// prices, and which of them communicate where.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/units.h"
#include "program/check.h"
#include "sim/cost/cost.h"
#include "sim/exposed.h"
#include "sim/folding.h"
#include "sim/rank_uses.h"
#include "sim/row_numbers.h"

namespace stepcast::sim {

inline constexpr std::uint32_t kNoOp = std::numeric_limits<std::uint32_t>::max();

// A price asked for once, and what it was asked for.
struct TransferPrice {
  TransferCost cost;
  program::OpKind kind = program::OpKind::kAllReduce;  // of messages: kSend
  Bytes message;
  std::int64_t members = 2;
};

// Where a rank program communicates: one role and channel of collectives, or one direction of messages.
struct CommunicationSlot {
  program::RoleId role;
  program::Channel channel = program::Channel::kMain;
  bool message = false;
  bool send = false;
  std::int64_t offset = 0;  // of messages: 0 <= offset < group size
  Exposed exposed = Exposed::kDp;
  std::vector<std::uint32_t> ops{};     // of the rank program, in sequence
  std::vector<std::uint32_t> prices{};  // like ops: numbers of TransferPrices; a receive has none
};

// One op of a rank, as the engine meets it: all it reads lies in one cache line.
struct alignas(64) PricedOp {
  const program::Op* op = nullptr;
  LocalCost local;                        // of communication: nothing
  Duration launch;                        // host time before the op is issued
  std::uint32_t stream_previous = kNoOp;  // the op before on the same stream
  std::uint32_t first_part = 0;           // in RankShape::parts
  std::uint32_t part_count = 0;
  std::uint32_t first_successor = 0;  // in RankShape::successors
  std::uint32_t successor_count = 0;
  std::uint8_t waits = 0;  // the predecessors it has, at most two per stream
  program::Stream stream = program::Stream::kCompute;
  bool is_host_read = false;
};
static_assert(sizeof(PricedOp) == 64);

struct RankShape {
  program::RankProgramId id;
  const program::RankProgram* program = nullptr;
  const program::Resolution* resolution = nullptr;
  DeviceLimits limits;
  std::vector<PricedOp> ops;
  std::vector<CommunicationSlot> slots;

  // An op's part in a transfer: one for a collective or message, several for an exchange.
  struct Part {
    std::uint32_t slot = 0;
    std::uint32_t sequence = 0;
  };
  std::vector<Part> parts;

  // Who waits for an op: the next op of its stream and the targets of its edges.
  std::vector<std::uint32_t> successors;

  std::uint32_t op_count() const { return static_cast<std::uint32_t>(ops.size()); }
  std::span<const Part> parts_of(std::uint32_t op) const {
    return std::span(parts).subspan(ops[op].first_part, ops[op].part_count);
  }
  std::span<const std::uint32_t> successors_of(std::uint32_t op) const {
    return std::span(successors).subspan(ops[op].first_successor, ops[op].successor_count);
  }
};

// Makes shapes, asking the cost model once per distinct question: a step repeats the same few segments thousands of
// times.
class ShapeBuilder {
 public:
  ShapeBuilder(const program::CheckedProgram& p, const CostModel& costs, const Folding& folding);

  // The number of the shape of a rank; ranks that are priced alike share it.
  std::uint32_t shape_of(program::RankId rank);

  std::vector<RankShape> shapes;
  std::vector<TransferPrice> prices;

 private:
  void add_ops(RankShape& shape, program::RankId rank, DeviceClass device);
  void add_communication(RankShape& shape, program::RankId rank, const program::Op& op, program::SegmentId segment,
                         std::uint32_t in_segment);
  CommunicationSlot& slot_of(RankShape& shape, const CommunicationSlot& wanted);
  LocalCost local(program::SegmentId segment, std::uint32_t op, DeviceClass device);
  std::uint32_t collective(program::SegmentId segment, std::uint32_t op, PathClass path, std::int64_t members);
  std::uint32_t message(Bytes bytes, PathClass path, bool by_copy_engine);
  Duration launch(program::SegmentId segment, std::uint32_t op);
  std::size_t index_of(program::SegmentId segment, std::uint32_t op) const { return first_[segment.value] + op; }
  std::vector<program::TensorType> operand_types(program::SegmentId segment, std::uint32_t op) const;
  PathClass pair_path(program::RankId sender, program::RankId receiver) const;

  const program::CheckedProgram& checked_;
  const program::Program& program_;
  const CostModel& costs_;
  const Folding& folding_;
  std::vector<std::optional<RankUses>> uses_;  // by rank program; made when asked for
  RowNumbers keys_;
  std::vector<std::size_t> first_;  // of a segment's ops among all segments' ops; one past the end
  std::vector<Duration> launch_;    // by segment op; below zero until asked
  std::map<DeviceClass, std::vector<std::optional<LocalCost>>> local_;
  std::map<std::tuple<std::size_t, PathClass, std::int64_t>, std::uint32_t> collective_;
  std::map<std::tuple<std::int64_t, PathClass, bool>, std::uint32_t> message_;
};

}  // namespace stepcast::sim
