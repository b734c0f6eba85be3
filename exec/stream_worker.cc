// The worker of one stream of a rank (rank_run.h): kernels run here, communication arrives here.
#include <cstddef>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "exec/op_arguments.h"
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

void arrive_collective(RankRun& run, const Op& op, const IssuedOp& issued, SimTime begin,
                       const std::shared_ptr<Completion>& completion, StepContext& context) {
  const program::Program& p = context.checked.program();
  const program::Membership& own = program::membership(p, run.rank, *op.group);
  CollectiveArrival arrival = collective_arguments(p, run.rank, op, issued.op, issued.memory.operands);
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
  kernels::KernelContext k =
      kernel_context(p, run.rank, run.resolution, issued.op, issued.memory.operands, context.step);
  k.state = run.states[static_cast<std::size_t>(op.stream)];
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
