// Discrete-event execution of a workload. A host thread per rank issues ops in list order and runs ahead until a host
// read; an op starts when it is issued, its stream is free and its edges are done; a communication op holds its stream
// from its own start, and its transfers run once all their ops have started.
//
// An op counts down what it waits for: its issue, the op before on its stream, its edges. The host's issue times up to
// the next host read depend on nothing else, so they are computed in one sweep; an op that is otherwise free earlier
// sleeps until its issue.
//
// An instant is worked off to a fixed point: all completions, and whatever starts and ends at once because of them.
// Only then speeds are solved (contention.h), once, and ends of what runs are scheduled.
#include "sim/engine/engine.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"
#include "sim/engine/contention.h"
#include "sim/engine/event_queue.h"

namespace stepcast::sim {
namespace {

// What an event does. The rest of Event::what is the rank of an op, or the generation of what ends.
enum What : std::uint32_t {
  kStart,        // of an op
  kOpEnd,        // of a local op whose time is its own
  kTransferEnd,  // of a transfer whose time is its own
  kLocalEnd,     // of a local op at a place of the contention
  kFlowEnd,      // of a flow of the contention
  kWhatCount,
};

class Simulator {
 public:
  Simulator(const Workload& w, const EngineOptions& options)
      : w_(w), alone_(w, options), watch_(options.watch), times_(w), cursor_(w.ranks().size()) {
    if (options.contention) contention_.emplace(w, options.free != Free::kSlowdown);
    for (const Lane& lane : w.lanes()) {
      const TransferTimes waiting{{}, {}, static_cast<std::uint32_t>(lane.participants.size())};
      std::fill_n(times_.transfers.begin() + lane.first, lane.count, waiting);
    }
  }

  Timeline run() {
    look();
    for (std::uint32_t rank = 0; rank < cursor_.size(); ++rank) issue_first(rank);
    do {
      Event event;
      while (queue_.pop_now(event)) {
        prefetch();
        handle(event);
      }
      if (contention_) settle();
      if (finished_ - seen_ >= kOpsBetweenLooks) look();
    } while (queue_.advance());
    look();
    CHECK(finished_ == w_.op_count(), finished_, w_.op_count(), waiting_ops());
    return std::move(times_);
  }

 private:
  void look() {
    if (watch_) watch_(finished_ - seen_);
    seen_ = finished_;
  }

  // Times of what comes next in this instant: with thousands of ranks none of them is in a cache.
  void prefetch() const {
    constexpr std::size_t kFar = 12;
    constexpr std::size_t kNear = 6;
    if (const Event* far = queue_.ahead(kFar); far != nullptr && far->what % kWhatCount == kLocalEnd) {
      __builtin_prefetch(&contention_->local(far->subject));
    }
    const Event* near = queue_.ahead(kNear);
    if (near == nullptr) return;
    if (near->what % kWhatCount == kLocalEnd) {
      __builtin_prefetch(&times_.ops[contention_->local(near->subject).op], 1);
    } else if (near->what % kWhatCount <= kOpEnd) {
      __builtin_prefetch(&times_.ops[near->subject], 1);
    }
  }

  void handle(const Event& event) {
    const std::uint32_t rest = event.what / kWhatCount;
    switch (event.what % kWhatCount) {
      case kStart:
        start(rest, event.subject);
        break;
      case kOpEnd:
        finish(rest, event.subject);
        break;
      case kTransferEnd:
        finish_transfer(event.subject);
        break;
      case kLocalEnd:
        if (!contention_->is_current_local(event.subject, rest)) break;
        finish(event.subject / program::kStreamCount, contention_->end_local(event.subject));
        break;
      default:
        if (!contention_->is_current_flow(event.subject, rest)) break;
        finish_transfer(contention_->end_flow(event.subject));
    }
  }

  void settle() {
    contention_->settle(
        queue_.now(),
        [&](SimTime end, std::uint32_t place, std::uint32_t generation) {
          queue_.schedule(end, kLocalEnd + kWhatCount * generation, place);
        },
        [&](SimTime end, std::uint32_t flow, std::uint32_t generation) {
          queue_.schedule(end, kFlowEnd + kWhatCount * generation, flow);
        });
  }

  // Sets up the rank's ops, and issues those before its first host read: nothing has ended yet that they could wait
  // for.
  void issue_first(std::uint32_t rank) {
    const SimulatedRank& r = w_.ranks()[rank];
    const RankShape& shape = w_.shape_of(r);
    SimTime host = queue_.now();
    bool issuing = true;
    for (std::uint32_t op = 0; op < shape.op_count(); ++op) {
      const PricedOp& priced = shape.ops[op];
      const auto waits = static_cast<std::uint8_t>(priced.waits + (issuing ? 0 : 1));  // for its issue
      if (issuing) host = host + alone_.launch(priced);
      times_.ops[r.first_op + op] = {host, {}, {}, priced.part_count, waits};
      if (!issuing) continue;
      cursor_[rank] = op + 1;
      if (waits == 0) start_when_issued(rank, r.first_op + op);
      issuing = !priced.is_host_read;
    }
  }

  // The host goes on at the current instant, up to and including the next host read.
  void issue_from(std::uint32_t rank) {
    const SimulatedRank& r = w_.ranks()[rank];
    const RankShape& shape = w_.shape_of(r);
    SimTime host = queue_.now();
    while (cursor_[rank] < shape.op_count()) {
      const std::uint32_t op = cursor_[rank]++;
      host = host + alone_.launch(shape.ops[op]);
      times_.ops[r.first_op + op].issue = host;
      release(rank, r.first_op + op);
      if (shape.ops[op].is_host_read) return;
    }
  }

  // Starting an op never ends one, so nothing recurses however long a chain of zero-length ops is.
  void release(std::uint32_t rank, std::uint32_t op) {
    if (--times_.ops[op].waits == 0) start_when_issued(rank, op);
  }

  void start_when_issued(std::uint32_t rank, std::uint32_t op) {
    const SimTime issue = times_.ops[op].issue;
    if (issue > queue_.now()) {
      queue_.schedule(issue, kStart + kWhatCount * rank, op);
    } else {
      start(rank, op);
    }
  }

  void start(std::uint32_t rank, std::uint32_t op) {
    times_.ops[op].begin = queue_.now();
    const SimulatedRank& r = w_.ranks()[rank];
    const RankShape& shape = w_.shape_of(r);
    const std::uint32_t own = op - r.first_op;
    prefetch_after(shape, own, op);
    const std::span<const RankShape::Part> parts = shape.parts_of(own);
    if (parts.empty()) {
      start_local(rank, op, shape, own);
      return;
    }
    for (const RankShape::Part& part : parts) {
      const std::uint32_t t = w_.transfer_of(r, part);
      if (contention_ && !shape.slots[part.slot].message) {
        contention_->hold(rank, held_by(t));
      }
      if (--times_.transfers[t].missing == 0) start_transfer(t);
    }
  }

  // A rank's ops start nearly in the order of its list, but between two of them come those of all other ranks.
  void prefetch_after(const RankShape& shape, std::uint32_t own, std::uint32_t op) const {
    __builtin_prefetch(times_.ops.begin() + op + 2, 1);
    __builtin_prefetch(times_.ops.begin() + op + 4, 1);
    __builtin_prefetch(shape.ops.data() + own + 1);
  }

  void start_local(std::uint32_t rank, std::uint32_t op, const RankShape& shape, std::uint32_t own) {
    const PricedOp& priced = shape.ops[own];
    const Duration alone = alone_.local(shape, own, op);
    if (contention_ && alone.ps > 0) {
      contention_->start_local(rank, priced.stream, op, priced.local, alone, queue_.now());
    } else {
      queue_.schedule(queue_.now() + alone, kOpEnd + kWhatCount * rank, op);
    }
  }

  void start_transfer(std::uint32_t t) {
    times_.transfers[t].start = queue_.now();
    const Duration alone = alone_.transfer(t);
    if (contention_) hold_for_message(t);
    if (contention_ && alone.ps > 0) {
      contention_->start_flow(t, alone, queue_.now());
    } else {
      queue_.schedule(queue_.now() + alone, kTransferEnd, t);
    }
  }

  Share held_by(std::uint32_t t) const { return alone_.is_free_transfer(t) ? 0 : w_.price_of(t).cost.multiprocessors; }

  // A receive is issued long before its message comes, because the host runs ahead; stacks issue it about when it is
  // needed. So messages hold multiprocessors only while they move.
  void hold_for_message(std::uint32_t t) {
    const Lane& lane = w_.lane_of_transfer(t);
    if (!w_.is_message(lane)) return;
    for (const Participant& p : lane.participants) contention_->hold(p.rank, held_by(t));
  }

  void finish_transfer(std::uint32_t t) {
    times_.transfers[t].end = queue_.now();
    const Lane& lane = w_.lane_of_transfer(t);
    for (const Participant& p : lane.participants) __builtin_prefetch(&times_.ops[w_.op_of(p, t - lane.first)], 1);
    for (const Participant& p : lane.participants) {
      const std::uint32_t op = w_.op_of(p, t - lane.first);
      if (contention_) contention_->hold(p.rank, -held_by(t));
      if (--times_.ops[op].parts_left == 0) finish(p.rank, op);
    }
  }

  void finish(std::uint32_t rank, std::uint32_t op) {
    times_.ops[op].end = queue_.now();
    ++finished_;
    const SimulatedRank& r = w_.ranks()[rank];
    const RankShape& shape = w_.shape_of(r);
    const std::uint32_t own = op - r.first_op;
    for (const std::uint32_t next : shape.successors_of(own)) release(rank, r.first_op + next);
    if (shape.ops[own].is_host_read) issue_from(rank);
  }

  // For the message of a broken invariant.
  std::string waiting_ops() const {
    std::string text = "; waiting:";
    int shown = 0;
    for (std::uint32_t rank = 0; rank < w_.ranks().size(); ++rank) {
      const std::uint32_t first = w_.ranks()[rank].first_op;
      for (std::uint32_t op = 0; op < cursor_[rank] && shown < 20; ++op) {
        // An op whose own turn has come, or that has begun and waits for a partner, says more than those behind it.
        const OpTimes& t = times_.ops[first + op];
        if (t.waits > 0 || t.parts_left == 0) continue;
        text += "\n  " + w_.describe(rank, op);
        ++shown;
      }
    }
    return text;
  }

  const Workload& w_;
  AloneTimes alone_;
  const Watch& watch_;
  Timeline times_;
  EventQueue queue_;
  std::vector<std::uint32_t> cursor_;  // by rank: the next op its host issues
  std::optional<Contention> contention_;
  std::uint32_t finished_ = 0;
  std::uint32_t seen_ = 0;  // of finished_ at the last look
};

}  // namespace

Timeline run_engine(const Workload& w, const EngineOptions& options) { return Simulator(w, options).run(); }

}  // namespace stepcast::sim
