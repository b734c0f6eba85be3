// Walks the compute stream of one rank and explains its gaps. The blocker of an op is the latest of the ends it waited
// for (edges, the op before on its stream) and its issue; ties go to ops, for the host was then not what held it up
// alone.
#include "sim/accounting.h"

#include <algorithm>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace stepcast::sim {
namespace {

using program::Pass;
using program::Stream;

class Accountant {
 public:
  Accountant(const Workload& w, const AloneTimes& alone, const Timeline& times, std::uint32_t rank,
             ExposedByLane* by_lane)
      : w_(w),
        alone_(alone),
        times_(times),
        by_lane_(by_lane),
        number_(rank),
        rank_(w.ranks()[rank]),
        shape_(w.shape_of(rank_)) {
    std::optional<std::uint32_t> read;
    for (std::uint32_t op = 0; op < shape_.op_count(); ++op) {
      last_host_read_.push_back(read.value_or(kNoOp));
      if (shape_.ops[op].is_host_read) read = op;
    }
  }

  TimeParts run(Duration step) {
    std::int64_t done = 0;  // everything before is accounted for
    for (std::uint32_t op = 0; op < shape_.op_count(); ++op) {
      if (shape_.ops[op].stream != Stream::kCompute) continue;
      explain(op, done, begin(op));
      add_compute_op(op);
      done = end(op);
    }
    account_tail(done, step.ps);
    CHECK(parts_.sum() == step, parts_.sum().ps, step.ps, w_.describe(number_, 0));
    return parts_;
  }

 private:
  std::int64_t issue(std::uint32_t op) const { return times_.ops[rank_.first_op + op].issue.ps; }
  std::int64_t begin(std::uint32_t op) const { return times_.ops[rank_.first_op + op].begin.ps; }
  std::int64_t end(std::uint32_t op) const { return times_.ops[rank_.first_op + op].end.ps; }
  Duration& exposed(Exposed kind) { return parts_.exposed[static_cast<std::size_t>(kind)]; }

  // Time on the compute stream: computing, unless a stack put communication there.
  void add_compute_op(std::uint32_t op) {
    if (program::is_communication(shape_.ops[op].op->kind)) {
      add_transfers(op, begin(op), end(op));
      return;
    }
    const bool optimizer = shape_.program->calls[shape_.resolution->call_of[op]].tag.pass == Pass::kOptimizer;
    const Duration took(end(op) - begin(op));
    (optimizer ? parts_.optimizer : parts_.compute) += took;
    parts_.slowed += took - alone_.local(shape_, op, rank_.first_op + op);
  }

  // After the last compute op the step goes on for the rank's own communication, then for others.
  void account_tail(std::int64_t done, std::int64_t step) {
    std::optional<std::uint32_t> last;
    for (std::uint32_t op = 0; op < shape_.op_count(); ++op) {
      if (end(op) > (last ? end(*last) : done)) last = op;
    }
    const std::int64_t own_end = last ? end(*last) : done;
    parts_.bubble += Duration(step - own_end);
    if (!last) return;
    add_busy(*last, std::max(done, begin(*last)), own_end);
    explain(*last, done, begin(*last));
  }

  // Attributes [from, to), in which no compute op ran, to what held up the start of `op` (to <= begin(op)).
  void explain(std::uint32_t op, std::int64_t from, std::int64_t to) {
    while (to > from) {
      const std::optional<std::uint32_t> blocker = blocker_of(op);
      if (blocker) {
        to = add_busy(*blocker, std::max(from, begin(*blocker)), to);
        op = *blocker;
        continue;
      }
      // The host came last: it was issuing ever since the step began or the last host read let it go on.
      const std::uint32_t read = last_host_read_[op];
      const std::int64_t resumed = std::max(from, read == kNoOp ? 0 : end(read));
      parts_.host += Duration(std::max<std::int64_t>(0, to - resumed));
      to = std::min(to, resumed);
      if (read == kNoOp || to <= from) return;
      to = add_busy(read, std::max(from, begin(read)), to);
      op = read;
    }
  }

  // The op whose end let `op` begin; nothing when its issue came later than all ends.
  std::optional<std::uint32_t> blocker_of(std::uint32_t op) const {
    std::optional<std::uint32_t> latest;
    const auto consider = [&](std::uint32_t before) {
      if (end(before) >= issue(op) && (!latest || end(before) > end(*latest))) latest = before;
    };
    for (const std::uint32_t before : shape_.resolution->predecessors(op)) consider(before);
    if (shape_.ops[op].stream_previous != kNoOp) consider(shape_.ops[op].stream_previous);
    return latest;
  }

  // Attributes [from, to), a part of the time `op` held its stream, and returns where that part starts (`to` if empty).
  std::int64_t add_busy(std::uint32_t op, std::int64_t from, std::int64_t to) {
    if (from >= to) return to;
    if (program::is_communication(shape_.ops[op].op->kind)) {
      add_transfers(op, from, to);
    } else {
      const std::optional<Exposed> kind = exposed_on(shape_.ops[op].stream);
      CHECK(kind.has_value(), w_.describe(number_, op), from, to);
      exposed(*kind) += Duration(to - from);
    }
    return from;
  }

  // Of [from, to): exposed while one of the op's transfers runs, bubble while it waits for a partner.
  void add_transfers(std::uint32_t op, std::int64_t from, std::int64_t to) {
    spans_.clear();
    for (const RankShape::Part& part : shape_.parts_of(op)) {
      const std::uint32_t t = w_.transfer_of(rank_, part);
      spans_.push_back({times_.transfers[t].start.ps, times_.transfers[t].end.ps, t});
    }
    std::sort(spans_.begin(), spans_.end());
    std::int64_t moving = 0;
    std::int64_t covered = from;
    for (const auto& [start, stop, transfer] : spans_) {
      const std::int64_t low = std::max(start, covered);
      const std::int64_t high = std::min(stop, to);
      if (high <= low) continue;
      moving += high - low;
      covered = high;
      if (by_lane_ != nullptr) {
        (*by_lane_)[{w_.lane_number(transfer), w_.price_number(transfer)}] += high - low;
      }
    }
    exposed(exposed_by(w_.program(), *shape_.ops[op].op)) += Duration(moving);
    parts_.bubble += Duration(to - from - moving);
  }

  const Workload& w_;
  const AloneTimes& alone_;
  const Timeline& times_;
  ExposedByLane* by_lane_;
  std::uint32_t number_;
  const SimulatedRank& rank_;
  const RankShape& shape_;
  TimeParts parts_;
  std::vector<std::uint32_t> last_host_read_;  // by op: the host read issued before it, or kNoOp
  std::vector<std::tuple<std::int64_t, std::int64_t, std::uint32_t>> spans_;  // start, end, transfer
};

}  // namespace

TimeParts account(const Workload& w, const AloneTimes& alone, const Timeline& times, std::uint32_t rank, Duration step,
                  ExposedByLane* exposed) {
  return Accountant(w, alone, times, rank, exposed).run(step);
}

}  // namespace stepcast::sim
