// Walks a rank program once per shape. Every answer of the cost model is checked to be a length of time and shares of
// something.
#include "sim/engine/rank_shape.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "program/ops/rules.h"

namespace stepcast::sim {
namespace {

using program::OpKind;
using program::RankId;

constexpr Duration kUnknown(-1);

void check_price(const TransferCost& c) {
  CHECK(c.time.ps >= 0 && c.multiprocessors >= 0 && c.memory >= 0 && c.port >= 0 && c.nic >= 0, c.time.ps,
        c.multiprocessors, c.memory, c.port, c.nic);
}

// The same problems, with the op that could not be priced.
Error about_op(const Error& fault, const std::string& op, const std::string& rank_program) {
  std::vector<Problem> problems = fault.problems();
  for (Problem& problem : problems) problem.message = op + " of " + rank_program + ": " + problem.message;
  return Error(problems);
}

void link_successors(RankShape& shape) {
  const std::uint32_t n = shape.op_count();
  const auto for_each_edge = [&](auto&& visit) {
    for (std::uint32_t op = 0; op < n; ++op) {
      if (shape.ops[op].stream_previous != kNoOp) visit(shape.ops[op].stream_previous, op);
      for (const std::uint32_t before : shape.resolution->predecessors(op)) visit(before, op);
    }
  };
  for_each_edge([&](std::uint32_t before, std::uint32_t op) {
    ++shape.ops[before].successor_count;
    ++shape.ops[op].waits;
    CHECK(shape.ops[op].waits < 200, op);
  });
  std::uint32_t total = 0;
  for (PricedOp& op : shape.ops) {
    op.first_successor = total;
    total += op.successor_count;
    op.successor_count = 0;
  }
  shape.successors.resize(total);
  for_each_edge([&](std::uint32_t before, std::uint32_t op) {
    PricedOp& from = shape.ops[before];
    shape.successors[from.first_successor + from.successor_count++] = op;
  });
}

}  // namespace

ShapeBuilder::ShapeBuilder(const program::CheckedProgram& p, const CostModel& costs, const Folding& folding)
    : checked_(p), program_(p.program()), costs_(costs), folding_(folding), uses_(p.program().rank_programs.size()) {
  std::size_t total = 0;
  first_.reserve(program_.segments.size() + 1);
  for (const program::Segment& s : program_.segments) {
    first_.push_back(total);
    total += s.ops.size();
  }
  first_.push_back(total);
  launch_.assign(total, kUnknown);
}

std::uint32_t ShapeBuilder::shape_of(RankId rank) {
  const program::Rank& r = program_.ranks[rank];
  std::optional<RankUses>& uses = uses_[r.program.value];
  if (!uses) uses = rank_uses(program_, program_.rank_programs[r.program]);
  const DeviceClass device = costs_.device_class(r.device);
  std::vector<std::uint32_t> key{r.program.value, device};
  for (const program::RoleId role : uses->collectives) {
    const program::GroupId group = program::membership(program_, rank, role).group;
    key.push_back(folding_.group_path[folding_.class_of_group[group.value]]);
    key.push_back(static_cast<std::uint32_t>(program_.groups[group].members.size()));
  }
  for (const program::P2pPart& part : uses->messages) {
    const program::GroupId group = program::membership(program_, rank, part.role).group;
    key.push_back(static_cast<std::uint32_t>(program_.groups[group].members.size()));
    if (part.send) key.push_back(pair_path(rank, program::peer_of(program_, rank, part)));
  }
  const std::uint32_t number = keys_.number(key);
  if (number == shapes.size()) {
    RankShape shape;
    shape.id = r.program;
    shape.program = &program_.rank_programs[r.program];
    shape.resolution = &checked_.resolution(r.program);
    shape.limits = costs_.limits(device);
    add_ops(shape, rank, device);
    link_successors(shape);
    shapes.push_back(std::move(shape));
  }
  return number;
}

void ShapeBuilder::add_ops(RankShape& shape, RankId rank, DeviceClass device) {
  const program::RankProgram& r = *shape.program;
  std::array<std::uint32_t, program::kStreamCount> last;
  last.fill(kNoOp);
  const std::uint32_t total = shape.resolution->op_count();
  shape.ops.reserve(total);
  auto graph = r.graphs.begin();
  for (std::uint32_t call = 0; call < r.calls.size(); ++call) {
    while (graph != r.graphs.end() && call >= graph->end) ++graph;
    const bool in_graph = graph != r.graphs.end() && call >= graph->begin;
    const bool starts_graph = in_graph && call == graph->begin;
    const program::SegmentId segment = r.calls[call].segment;
    const std::vector<program::Op>& ops = program_.segments[segment].ops;
    for (std::uint32_t i = 0; i < ops.size(); ++i) {
      const program::Op& op = ops[i];
      PricedOp priced;
      priced.op = &op;
      priced.stream = op.stream;
      priced.is_host_read = op.kind == OpKind::kHostRead;
      priced.stream_previous = std::exchange(last[static_cast<std::size_t>(op.stream)], shape.op_count());
      if (!in_graph) {
        priced.launch = launch(segment, i);
      } else if (starts_graph && i == 0) {
        priced.launch = costs_.graph_launch_time();
      }
      const auto parts = [&shape] { return static_cast<std::uint32_t>(shape.parts.size()); };
      priced.first_part = parts();
      try {
        const bool communicates = program::is_communication(op.kind);
        if (communicates) add_communication(shape, rank, op, segment, i);
        if (!communicates && op.kind != OpKind::kJoin) priced.local = local(segment, i, device);
      } catch (const Error& fault) {
        throw about_op(fault, program::op_path(program_, r, call, i), r.name);
      }
      priced.part_count = parts() - priced.first_part;
      shape.ops.push_back(priced);
    }
  }
  CHECK(shape.op_count() == total, shape.op_count(), total);
}

void ShapeBuilder::add_communication(RankShape& shape, RankId rank, const program::Op& op, program::SegmentId segment,
                                     std::uint32_t in_segment) {
  const auto add = [&](const CommunicationSlot& wanted, std::optional<std::uint32_t> price) {
    CommunicationSlot& slot = slot_of(shape, wanted);
    shape.parts.push_back(
        {static_cast<std::uint32_t>(&slot - shape.slots.data()), static_cast<std::uint32_t>(slot.ops.size())});
    slot.ops.push_back(shape.op_count());
    if (price) slot.prices.push_back(*price);
  };
  if (program::is_collective(op.kind)) {
    const program::GroupId group = program::membership(program_, rank, op.group.value()).group;
    const PathClass path = folding_.group_path[folding_.class_of_group[group.value]];
    const auto members = static_cast<std::int64_t>(program_.groups[group].members.size());
    add({.role = op.group.value(), .channel = op.channel, .exposed = exposed_by(program_, op)},
        collective(segment, in_segment, path, members));
    return;
  }
  for (const program::P2pPart& part : op.parts) {
    const program::GroupId group = program::membership(program_, rank, part.role).group;
    const auto size = static_cast<std::int64_t>(program_.groups[group].members.size());
    const CommunicationSlot wanted{.role = part.role,
                                   .channel = part.channel,
                                   .message = true,
                                   .send = part.send,
                                   .offset = program::member_position(part.offset, size),
                                   .exposed = exposed_by(program_, op)};
    if (!part.send) {
      add(wanted, std::nullopt);
      continue;
    }
    const Bytes bytes(program_.segments[segment].type_of(op.operands[part.operand]).bytes());
    const bool by_copy_engine = op.attributes.multiprocessors == 0;
    add(wanted, message(bytes, pair_path(rank, program::peer_of(program_, rank, part)), by_copy_engine));
  }
}

CommunicationSlot& ShapeBuilder::slot_of(RankShape& shape, const CommunicationSlot& wanted) {
  for (CommunicationSlot& slot : shape.slots) {
    if (slot.role == wanted.role && slot.channel == wanted.channel && slot.message == wanted.message &&
        slot.send == wanted.send && slot.offset == wanted.offset) {
      return slot;
    }
  }
  return shape.slots.emplace_back(wanted);
}

PathClass ShapeBuilder::pair_path(RankId sender, RankId receiver) const {
  const std::array<std::int32_t, 2> pair{program_.ranks[sender].device, program_.ranks[receiver].device};
  return costs_.path_class(pair);
}

std::vector<program::TensorType> ShapeBuilder::operand_types(program::SegmentId segment, std::uint32_t op) const {
  const program::Segment& s = program_.segments[segment];
  std::vector<program::TensorType> types;
  types.reserve(s.ops[op].operands.size());
  for (const program::Operand& o : s.ops[op].operands) types.push_back(s.type_of(o));
  return types;
}

LocalCost ShapeBuilder::local(program::SegmentId segment, std::uint32_t op, DeviceClass device) {
  std::vector<std::optional<LocalCost>>& known = local_[device];
  if (known.empty()) known.resize(first_.back());
  std::optional<LocalCost>& price = known[index_of(segment, op)];
  if (!price) {
    price = costs_.local_cost(program_.segments[segment].ops[op], operand_types(segment, op), device);
    CHECK(price->time.ps >= 0 && price->multiprocessors >= 0 && price->memory >= 0, price->time.ps);
  }
  return *price;
}

std::uint32_t ShapeBuilder::collective(program::SegmentId segment, std::uint32_t op, PathClass path,
                                       std::int64_t members) {
  const auto next = static_cast<std::uint32_t>(prices.size());
  const auto [it, is_new] = collective_.try_emplace({index_of(segment, op), path, members}, next);
  if (is_new) {
    const program::Op& what = program_.segments[segment].ops[op];
    const std::vector<program::TensorType> types = operand_types(segment, op);
    prices.push_back({costs_.collective_cost(what, types, path, members), what.kind,
                      program::work_of(what, types).message, members});
    check_price(prices.back().cost);
  }
  return it->second;
}

std::uint32_t ShapeBuilder::message(Bytes bytes, PathClass path, bool by_copy_engine) {
  const auto next = static_cast<std::uint32_t>(prices.size());
  const auto [it, is_new] = message_.try_emplace({bytes.count, path, by_copy_engine}, next);
  if (is_new) {
    const TransferCost cost = by_copy_engine ? costs_.peer_copy_cost(bytes, path) : costs_.message_cost(bytes, path);
    prices.push_back({cost, OpKind::kSend, bytes, 2});
    check_price(prices.back().cost);
  }
  return it->second;
}

Duration ShapeBuilder::launch(program::SegmentId segment, std::uint32_t op) {
  Duration& price = launch_[index_of(segment, op)];
  if (price == kUnknown) {
    price = costs_.launch_time(program_.segments[segment].ops[op]);
    CHECK(price.ps >= 0, price.ps);
  }
  return price;
}

}  // namespace stepcast::sim
