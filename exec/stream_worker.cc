// The worker of one stream of a rank (rank_run.h): kernels run here, communication arrives here.
#include <cstddef>
#include <cstring>
#include <numeric>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "exec/rank_run.h"

namespace stepcast::exec {
namespace {

using program::Op;
using program::OpKind;

void wait_for_edges(RankRun& run, const Op& op, std::uint32_t flat, StepContext& context) {
  const program::Program& p = context.checked.program();
  for (const std::uint32_t before : run.resolution.predecessors(flat)) {
    run.status.set_stream(op.stream, StreamPhase::kWaitingEdge, flat, before);
    const program::Stream other = program::op_at(p, run.rank_program, run.resolution, before).stream;
    run.stream(other).wait_completed(run.loaded.position[before] + 1, context.job);
  }
}

// An in-place gather or reduce-scatter has one operand, the whole: what the member gives or takes is its own part of
// it.
void narrow_in_place(CollectiveArrival& arrival, std::size_t member, program::DType dtype) {
  const std::vector<std::int64_t>& counts = arrival.spec.counts;
  CHECK(member < counts.size(), member, counts.size());
  const auto own = counts.begin() + static_cast<std::ptrdiff_t>(member);
  const std::int64_t offset = std::accumulate(counts.begin(), own, std::int64_t{0}) * program::size_of(dtype);
  void* part = static_cast<std::byte*>(arrival.buffers.out) + offset;
  if (arrival.spec.kind == program::OpKind::kAllGather) {
    arrival.buffers.in = part;
    arrival.in_elements = *own;
  } else {
    arrival.buffers.out = part;
    arrival.out_elements = *own;
  }
}

// Of all parts that the operand holds, the one that is reduced.
void narrow_to_part(CollectiveArrival& arrival, std::int64_t part, program::DType dtype) {
  arrival.in_elements = arrival.out_elements = arrival.spec.elements;
  void* own = static_cast<std::byte*>(arrival.buffers.out) + part * arrival.spec.elements * program::size_of(dtype);
  arrival.buffers = {own, own};
}

void arrive_collective(RankRun& run, const Op& op, const IssuedOp& issued, SimTime begin,
                       const std::shared_ptr<Completion>& completion, StepContext& context) {
  const program::Program& p = context.checked.program();
  const program::Membership& own = program::membership(p, run.rank, *op.group);
  const std::vector<kernels::Tensor>& operands = issued.memory.operands;
  const kernels::Tensor& in = operands.front();
  const kernels::Tensor& out = operands.back();  // the same in place
  std::vector<program::TensorType> types;
  for (const kernels::Tensor& operand : operands) types.push_back(operand.type);
  CollectiveArrival arrival;
  arrival.rank = run.rank;
  arrival.op = issued.op;
  arrival.spec = collective_spec(op, types, static_cast<std::int64_t>(p.groups[own.group].members.size()));
  arrival.buffers = {in.data, out.data};
  arrival.in_elements = in.type.shape.elements();
  arrival.out_elements = out.type.shape.elements();
  if (operands.size() == 1 && !arrival.spec.counts.empty()) narrow_in_place(arrival, own.index, in.type.dtype);
  if (op.index_role) {
    const auto part = static_cast<std::int64_t>(program::membership(p, run.rank, *op.index_role).index);
    narrow_to_part(arrival, part, in.type.dtype);
  }
  arrival.begin = begin;
  arrival.completion = completion;
  context.communicators.collective(own.group, op.channel).arrive(own.index, std::move(arrival), context.comm);
}

void arrive_messages(RankRun& run, const Op& op, const IssuedOp& issued, SimTime begin,
                     const std::shared_ptr<Completion>& completion, StepContext& context) {
  const program::Program& p = context.checked.program();
  for (const program::P2pPart& part : op.parts) {
    const program::RankId peer = peer_of(p, run.rank, part);
    const program::GroupId group = program::membership(p, run.rank, part.role).group;
    const kernels::Tensor& operand = issued.memory.operands[part.operand];
    MessageArrival arrival{run.rank, issued.op, operand.type, operand.data, begin, completion};
    if (part.send) {
      context.communicators.link(group, run.rank, peer, part.channel).send(std::move(arrival), context.comm);
    } else {
      context.communicators.link(group, peer, run.rank, part.channel).receive(std::move(arrival), context.comm);
    }
  }
}

Transfer communicate(RankRun& run, const Op& op, const IssuedOp& issued, SimTime begin, StepContext& context) {
  const bool collective = program::is_collective(op.kind);
  const auto completion = std::make_shared<Completion>(collective ? 1 : op.parts.size());
  run.status.set_stream(op.stream, StreamPhase::kWaitingPeers, issued.op);
  if (collective) {
    arrive_collective(run, op, issued, begin, completion, context);
  } else {
    arrive_messages(run, op, issued, begin, completion, context);
  }
  const Transfer moved = completion->wait_done(context.job);
  run.status.set_stream(op.stream, StreamPhase::kTransferring, issued.op);
  completion->sleep_until(context.job, moved.end);
  return moved;
}

void run_kernel(RankRun& run, const Op& op, const IssuedOp& issued, StepContext& context) {
  const program::Program& p = context.checked.program();
  const kernels::Kernel kernel = context.options.kernel_of(op.kind);
  if (kernel == nullptr) {
    throw Error(ErrorKind::kExecution, "no kernel for " + std::string(program::to_string(op.kind)));
  }
  kernels::KernelContext k;
  k.operands = issued.memory.operands;
  k.attributes = &op.attributes;
  k.kind = op.kind;
  const std::optional<std::size_t> result = program::accumulable_operand(op.kind);
  k.accumulate = result && *result < op.operands.size() && op.operands[*result].access == program::Access::kAccumulate;
  k.step = context.step;
  k.seed = p.seed;
  k.state = run.states[static_cast<std::size_t>(op.stream)];
  const program::Tag& tag = run.rank_program.calls[run.resolution.call_of[issued.op]].tag;
  k.layer = tag.layer.value_or(0);
  k.microbatch = tag.microbatch.value_or(0);
  if (op.sample_role) k.sample_index = program::membership(p, run.rank, *op.sample_role).index;
  if (op.index_role) {
    const program::Membership& own = program::membership(p, run.rank, *op.index_role);
    k.index = own.index;
    k.index_count = static_cast<std::int64_t>(p.groups[own.group].members.size());
  }
  if (context.options.before_kernel) context.options.before_kernel(run.rank, context.step);
  kernel(k);
}

Transfer execute(RankRun& run, const Op& op, const IssuedOp& issued, SimTime begin, StepContext& context) {
  for (const PoisonRange& range : issued.memory.poison) {
    std::memset(range.data, 0xff, static_cast<std::size_t>(range.bytes));
  }
  if (program::is_communication(op.kind)) return communicate(run, op, issued, begin, context);
  run.status.set_stream(op.stream, StreamPhase::kRunning, issued.op);
  // A join is its edges; a host_read is for the host, which waits for it to complete.
  if (op.kind != OpKind::kJoin && op.kind != OpKind::kHostRead) run_kernel(run, op, issued, context);
  return Transfer{begin, context.job.now()};
}

}  // namespace

void run_stream(RankRun& run, program::Stream s, StepContext& context) {
  const program::Program& p = context.checked.program();
  OpStream& stream = run.stream(s);
  run.placement.place_this_thread(run.rank);
  if (kernels::StreamState* state = run.states[static_cast<std::size_t>(s)]) state->begin_thread();
  while (const std::optional<IssuedOp> issued = stream.pop(context.job)) {
    const Op& op = program::op_at(p, run.rank_program, run.resolution, issued->op);
    wait_for_edges(run, op, issued->op, context);
    const SimTime begin = context.job.now();
    const Transfer moved = execute(run, op, *issued, begin, context);
    run.recorder.ran(issued->op, begin, moved);
    run.status.set_stream(s, StreamPhase::kIdle, issued->op);
    stream.complete();
    run.status.op_completed();
    context.job.op_completed();
  }
}

}  // namespace stepcast::exec
