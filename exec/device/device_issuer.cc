// See device_issuer.h.
#include "exec/device/device_issuer.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "exec/op_arguments.h"

namespace stepcast::exec {
namespace {

using program::Op;
using program::OpKind;

// Asking costs about as much as giving an op to a stream, so it is done once for so many.
constexpr std::uint32_t kHarvestEvery = 8;
// How long the host waits before it looks whether the job has been stopped and what other streams have done.
constexpr Duration kSlice{2'000'000'000};  // 2 ms
constexpr int kPoisonByte = 0xff;

}  // namespace

DeviceIssuer::DeviceIssuer(DeviceRank& rank, Job& job, std::int64_t step)
    : rank_(rank), device_(*rank.device), job_(job), step_(step), done_of_(rank.resolution.op_count()) {
  rank_.progress.wait_for_more = [this] {
    rank_.status.set_host(HostPhase::kBlocked, rank_.at);
    return wait_for_one();
  };
}

DeviceIssuer::~DeviceIssuer() { rank_.progress.wait_for_more = nullptr; }

const Op& DeviceIssuer::op_at(std::uint32_t op) const {
  return program::op_at(rank_.checked.program(), rank_.rank_program, rank_.resolution, op);
}

bool DeviceIssuer::over(std::uint32_t op) const {
  return rank_.progress.of(op_at(op).stream) > rank_.plan.loaded.position[op];
}

void DeviceIssuer::check_stop() const {
  if (job_.stop_token().stop_requested()) throw Stopped{};
}

void DeviceIssuer::run() {
  device_.begin_thread();
  if (rank_.plan.loaded.streams.empty()) return;
  start_clock();
  for (std::uint32_t op = 0; op < rank_.resolution.op_count(); ++op) {
    check_stop();
    issue(op);
    if (op_at(op).kind == OpKind::kHostRead) {
      rank_.status.set_host(HostPhase::kBlocked, op);
      block_until_over(op);
    } else if (op % kHarvestEvery == 0) {
      harvest();
    }
  }
  rank_.status.set_host(HostPhase::kFinished, 0);
  while (wait_for_one()) {
  }
  rank_.events.give(origin_);
}

// Events tell differences only, so one is made now. The host sees it late rather than early, so that no op seems to
// begin before it was issued.
void DeviceIssuer::start_clock() {
  origin_ = rank_.events.take();
  device_.record(rank_.plan.loaded.streams.front(), origin_);
  while (!device_.wait_for(origin_, kSlice)) check_stop();
  origin_time_ = job_.now();
}

SimTime DeviceIssuer::time_of(EventNumber event) { return origin_time_ + device_.elapsed(origin_, event); }

void DeviceIssuer::issue(std::uint32_t op) {
  rank_.at = op;
  rank_.status.set_host(HostPhase::kIssuing, op);
  const Op& what = op_at(op);
  if (graph_ < rank_.plan.waits.graphs.size() && rank_.plan.waits.graphs[graph_].begin == op) begin_graph();
  wait_for_ops(what.stream, rank_.plan.waits.waits_of(op));
  OpMemory memory = rank_.allocator.issue(op, rank_.progress, rank_.plan.waits.covered[op]);
  place_parts(rank_.checked.program(), rank_.id, what, memory.operands);
  rank_.recorder.issued(op, job_.now(), rank_.allocator.allocated());
  Pending given{.op = op, .begin = rank_.events.take(), .end = rank_.events.take(), .done = {}, .closing = {}};
  device_.record(what.stream, given.begin);
  for (const PoisonRange& range : memory.poison) device_.fill(what.stream, range.data, kPoisonByte, range.bytes);
  enqueue(op, what, memory);
  device_.record(what.stream, given.end);
  done_of_[op] = given.end;
  if (!in_graph_) given.done = given.end;
  pending(what.stream).push_back(given);
  if (in_graph_ && rank_.plan.waits.graphs[graph_].end == op + 1) end_graph();
}

void DeviceIssuer::wait_for_ops(program::Stream s, std::span<const std::uint32_t> ops) {
  for (const std::uint32_t before : ops) {
    if (!over(before)) device_.wait(s, done_of_[before]);
  }
}

void DeviceIssuer::enqueue(std::uint32_t op, const Op& what, const OpMemory& memory) {
  if (program::is_collective(what.kind)) return enqueue_collective(op, what, memory);
  if (program::is_communication(what.kind)) return enqueue_messages(what, memory);
  // A join is its edges; a host_read is for the host, which waits for it to be over.
  if (what.kind != OpKind::kJoin && what.kind != OpKind::kHostRead) enqueue_kernel(op, what, memory);
}

void DeviceIssuer::enqueue_collective(std::uint32_t op, const Op& what, const OpMemory& memory) {
  const program::Program& p = rank_.checked.program();
  const program::Membership& own = program::membership(p, rank_.id, *what.group);
  CollectiveArrival arrival = collective_arguments(p, rank_.id, what, op, memory.operands);
  check_sizes(arrival, own.index);
  device_.collective(what.stream, {.communicator = rank_.layout.of_collective(own.group, what.channel),
                                   .member = own.index,
                                   .spec = std::move(arrival.spec),
                                   .buffers = arrival.buffers});
}

void DeviceIssuer::enqueue_messages(const Op& what, const OpMemory& memory) {
  const program::Program& p = rank_.checked.program();
  std::vector<Message> messages;
  for (const program::P2pPart& part : what.parts) {
    const std::uint32_t communicator = rank_.layout.of_link(link_of(p, rank_.id, part));
    const kernels::Tensor& operand = memory.operands[part.operand];
    messages.push_back({.communicator = communicator,
                        .member = rank_.layout.position(communicator, rank_.id),
                        .peer = rank_.layout.position(communicator, peer_of(p, rank_.id, part)),
                        .send = part.send,
                        .data = operand.data,
                        .bytes = operand.type.bytes()});
  }
  device_.messages(what.stream, messages);
}

void DeviceIssuer::enqueue_kernel(std::uint32_t op, const Op& what, const OpMemory& memory) {
  const kernels::Kernel kernel = rank_.options.kernel_of(what.kind);
  if (kernel == nullptr) {
    throw Error(ErrorKind::kExecution, "no kernel for " + std::string(program::to_string(what.kind)));
  }
  if (rank_.options.before_kernel) rank_.options.before_kernel(rank_.id, step_);
  device_.run(what.stream, kernel,
              kernel_context(rank_.checked.program(), rank_.id, rank_.resolution, op, memory.operands, step_));
}

void DeviceIssuer::begin_graph() {
  const GraphRange& range = rank_.plan.waits.graphs[graph_];
  wait_for_ops(range.streams.front(), range.waits);
  device_.begin_graph(range.number, range.streams);
  in_graph_ = true;
}

void DeviceIssuer::end_graph() {
  const GraphRange& range = rank_.plan.waits.graphs[graph_];
  device_.end_graph();
  for (const program::Stream s : range.streams) {
    const EventNumber closing = rank_.events.take();
    device_.record(s, closing);
    pending(s).back().closing = closing;
    for (auto op = pending(s).rbegin(); op != pending(s).rend() && op->op >= range.begin; ++op) {
      op->done = done_of_[op->op] = closing;
    }
  }
  in_graph_ = false;
  ++graph_;
}

// Of each stream, the ops at its head that are over; how many there are.
int DeviceIssuer::harvest() {
  if (in_graph_) return 0;
  const std::uint32_t issuing = rank_.at;
  int found = 0;
  for (const program::Stream s : rank_.plan.loaded.streams) {
    while (!pending(s).empty()) {
      rank_.at = pending(s).front().op;
      if (!device_.happened(*pending(s).front().done)) break;
      finish(s);
      ++found;
    }
    show_head(s);
  }
  rank_.at = issuing;
  return found;
}

void DeviceIssuer::finish(program::Stream s) {
  const Pending over = pending(s).front();
  const SimTime begin = time_of(over.begin);
  // Two events of one instant may come out in either order.
  rank_.recorder.ran(over.op, begin, {.transfer = begin, .end = std::max(begin, time_of(over.end))});
  rank_.events.give(over.begin);
  rank_.events.give(over.end);
  if (over.closing) rank_.events.give(*over.closing);
  pending(s).pop_front();
  head_runs_[static_cast<std::size_t>(s)] = false;
  rank_.progress.completed[static_cast<std::size_t>(s)].fetch_add(1, std::memory_order_release);
  rank_.status.op_completed();
  job_.op_completed();
}

// What the status board says of a stream: its oldest op, and whether it runs or waits for an edge.
void DeviceIssuer::show_head(program::Stream s) {
  if (pending(s).empty()) {
    rank_.status.set_stream(s, StreamPhase::kIdle, 0);
    return;
  }
  bool& runs = head_runs_[static_cast<std::size_t>(s)];
  if (runs) return;
  const Pending& head = pending(s).front();
  const bool graph = head.done != head.end;
  runs = graph || device_.happened(head.begin);
  const auto predecessors = rank_.resolution.predecessors(head.op);
  const auto awaited =
      std::find_if(predecessors.begin(), predecessors.end(), [&](std::uint32_t b) { return !over(b); });
  if (!runs && awaited != predecessors.end()) {
    rank_.status.set_stream(s, StreamPhase::kWaitingEdge, head.op, *awaited);
    return;
  }
  const bool communicates = program::is_communication(op_at(head.op).kind);
  rank_.status.set_stream(s, communicates ? StreamPhase::kWaitingPeers : StreamPhase::kRunning, head.op);
}

// Of all streams, the op that was issued first and is not known to be over; null where there is none. An error that a
// device tells of while its host waits is most likely of that op.
const DeviceIssuer::Pending* DeviceIssuer::oldest() const {
  const Pending* first = nullptr;
  for (const std::deque<Pending>& queue : pending_) {
    if (!queue.empty() && (first == nullptr || queue.front().op < first->op)) first = &queue.front();
  }
  return first;
}

// Waits until another op is over; false when none is pending, or only those of an open graph. Throws Stopped.
bool DeviceIssuer::wait_for_one() {
  if (in_graph_) return false;
  const std::uint32_t issuing = rank_.at;
  while (harvest() == 0) {
    const Pending* first = oldest();
    if (first == nullptr) return false;
    rank_.at = first->op;
    device_.wait_for(*first->done, kSlice);
    check_stop();
    device_.check_communication();
  }
  rank_.at = issuing;
  return true;
}

void DeviceIssuer::block_until_over(std::uint32_t op) {
  CHECK(!in_graph_, "a host_read in a graph", op);
  for (harvest(); !over(op); harvest()) {
    rank_.at = oldest()->op;
    if (!device_.wait_for(done_of_[op], kSlice)) device_.check_communication();
    check_stop();
  }
}

}  // namespace stepcast::exec
