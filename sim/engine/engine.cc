// Discrete-event execution of a workload. A host thread per rank issues ops in list order and runs ahead until a host
// read; an op starts when it is issued, its stream is free and its edges are done; a communication op holds its stream
// from its own start, and its transfers run once all their ops have started.
//
// An op counts down what it waits for: its issue, the op before on its stream, its edges. The host's issue times up to
// the next host read depend on nothing else, so they are computed in one sweep; an op that is otherwise free earlier
// sleeps until its issue.
#include "sim/engine/engine.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"
#include "sim/engine/event_queue.h"

namespace stepcast::sim {
namespace {

enum class Handler : std::uint32_t { kStart, kEnd, kTransferEnd };
// Within an instant, what completes comes before what starts.
constexpr std::uint32_t kCompletions = 0;
constexpr std::uint32_t kStarts = 1;

// Who waits for an op of a shape: the next op of its stream and the targets of its edges.
struct Successors {
  std::vector<std::uint32_t> begin;
  std::vector<std::uint32_t> ops;
  std::vector<std::uint32_t> waits;  // by op: the predecessors it has
};

Successors successors_of(const RankShape& shape) {
  const std::uint32_t n = shape.op_count();
  Successors s{std::vector<std::uint32_t>(n + 1, 0), {}, std::vector<std::uint32_t>(n, 0)};
  const auto for_each_edge = [&](auto&& visit) {
    for (std::uint32_t op = 0; op < n; ++op) {
      if (shape.stream_previous[op] != kNoOp) visit(shape.stream_previous[op], op);
      for (const std::uint32_t before : shape.resolution->predecessors(op)) visit(before, op);
    }
  };
  for_each_edge([&](std::uint32_t before, std::uint32_t op) {
    ++s.begin[before + 1];
    ++s.waits[op];
  });
  for (std::uint32_t op = 0; op < n; ++op) s.begin[op + 1] += s.begin[op];
  s.ops.resize(s.begin[n]);
  std::vector<std::uint32_t> fill(s.begin.begin(), s.begin.end() - 1);
  for_each_edge([&](std::uint32_t before, std::uint32_t op) { s.ops[fill[before]++] = op; });
  return s;
}

class Simulator {
 public:
  explicit Simulator(const Workload& w) : w_(w), times_(w), waits_(w.op_count()), parts_left_(w.op_count()) {
    for (const RankShape& shape : w.shapes()) successors_.push_back(successors_of(shape));
    for (const SimulatedRank& rank : w.ranks()) {
      const Successors& s = successors_[rank.shape];
      for (std::uint32_t op = 0; op < s.waits.size(); ++op) {
        waits_[rank.first_op + op] = s.waits[op] + 1;  // and its issue
        parts_left_[rank.first_op + op] = static_cast<std::uint32_t>(w.transfers_of(rank.first_op + op).size());
      }
    }
    for (const Transfer& t : w.transfers()) missing_.push_back(static_cast<std::uint32_t>(t.ops.size()));
    cursor_.assign(w.ranks().size(), 0);
  }

  Timeline run() {
    for (std::uint32_t rank = 0; rank < cursor_.size(); ++rank) issue_from(rank);
    Event event;
    while (queue_.pop(event)) {
      const auto subject = static_cast<std::uint32_t>(event.payload);
      switch (static_cast<Handler>(event.handler)) {
        case Handler::kStart:
          start(subject);
          break;
        case Handler::kEnd:
          finish(subject);
          break;
        case Handler::kTransferEnd:
          finish_transfer(subject);
          break;
      }
    }
    CHECK(finished_ == w_.op_count(), finished_, w_.op_count(), waiting_ops());
    return std::move(times_);
  }

 private:
  // The host goes on at the current instant, up to and including the next host read.
  void issue_from(std::uint32_t rank) {
    const SimulatedRank& r = w_.ranks()[rank];
    const RankShape& shape = w_.shape_of(r);
    SimTime host = queue_.now();
    while (cursor_[rank] < shape.op_count()) {
      const std::uint32_t op = cursor_[rank]++;
      host = host + shape.launch[op];
      times_.issue[r.first_op + op] = host;
      release(r.first_op + op);
      if (shape.ops[op]->kind == program::OpKind::kHostRead) return;
    }
  }

  // Starting an op never ends one, so nothing recurses however long a chain of zero-length ops is.
  void release(std::uint32_t op) {
    if (--waits_[op] > 0) return;
    if (times_.issue[op] > queue_.now()) {
      queue_.schedule(times_.issue[op], kStarts, static_cast<std::uint32_t>(Handler::kStart), op);
    } else {
      start(op);
    }
  }

  void start(std::uint32_t op) {
    times_.begin[op] = queue_.now();
    const std::span<const std::uint32_t> transfers = w_.transfers_of(op);
    if (transfers.empty()) complete_after(w_.duration(op), Handler::kEnd, op);
    for (const std::uint32_t t : transfers) {
      if (--missing_[t] > 0) continue;
      times_.transfer_start[t] = queue_.now();
      complete_after(w_.transfers()[t].duration, Handler::kTransferEnd, t);
    }
  }

  void complete_after(Duration d, Handler handler, std::uint32_t subject) {
    queue_.schedule(queue_.now() + d, kCompletions, static_cast<std::uint32_t>(handler), subject);
  }

  void finish_transfer(std::uint32_t t) {
    times_.transfer_end[t] = queue_.now();
    for (const std::uint32_t op : w_.transfers()[t].ops) {
      if (--parts_left_[op] == 0) finish(op);
    }
  }

  void finish(std::uint32_t op) {
    times_.end[op] = queue_.now();
    ++finished_;
    const std::uint32_t rank = w_.rank_of(op);
    const SimulatedRank& r = w_.ranks()[rank];
    const Successors& s = successors_[r.shape];
    const std::uint32_t own = op - r.first_op;
    for (std::uint32_t i = s.begin[own]; i < s.begin[own + 1]; ++i) release(r.first_op + s.ops[i]);
    if (w_.shape_of(r).ops[own]->kind == program::OpKind::kHostRead) issue_from(rank);
  }

  std::string waiting_ops() const {
    std::string text = "; waiting:";
    int shown = 0;
    for (std::uint32_t op = 0; op < w_.op_count() && shown < 20; ++op) {
      const bool issued = op - w_.ranks()[w_.rank_of(op)].first_op < cursor_[w_.rank_of(op)];
      // An op whose own turn has come, or that has begun and waits for a partner, says more than those queued behind
      // it.
      if (!issued || waits_[op] > 0 || parts_left_[op] == 0) continue;
      text += "\n  " + w_.describe(op);
      ++shown;
    }
    return text;
  }

  const Workload& w_;
  Timeline times_;
  EventQueue queue_;
  std::vector<Successors> successors_;     // by shape
  std::vector<std::uint32_t> waits_;       // by op: what it still waits for before it starts
  std::vector<std::uint32_t> parts_left_;  // by op: its transfers that have not ended
  std::vector<std::uint32_t> missing_;     // by transfer: ops that have not started
  std::vector<std::uint32_t> cursor_;      // by rank: the next op its host issues
  std::uint32_t finished_ = 0;
};

}  // namespace

Timeline run_engine(const Workload& w) { return Simulator(w).run(); }

}  // namespace stepcast::sim
