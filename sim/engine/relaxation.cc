// The engine's oracle: without contention every time is the longest path to it in the graph of issues, begins,
// transfers and ends, found here by one pass in topological order. Nothing but the prepared workload is shared with the
// engine.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sim/engine/engine.h"

namespace stepcast::sim {
namespace {

// Nodes 3i, 3i+1, 3i+2 are issue, begin and end of op i; node 3n+t is the end of transfer t. A node's value is the
// largest value of its predecessors plus its own weight.
class LongestPaths {
 public:
  LongestPaths(const Workload& w, const AloneTimes& alone)
      : w_(w), alone_(alone), weight_(3 * std::size_t{w.op_count()} + w.transfer_count()), value_(weight_.size()) {
    CHECK(weight_.size() < kNoOp, weight_.size());  // nodes are numbered in 32 bits
    for (const SimulatedRank& rank : w.ranks()) add_rank(rank);
    for (std::uint32_t t = 0; t < w.transfer_count(); ++t) {
      weight_[transfer(t)] = alone.transfer(t);
      const Lane& lane = w.lane_of_transfer(t);
      for (const Participant& p : lane.participants) {
        const std::uint32_t op = w.op_of(p, t - lane.first);
        edges_.emplace_back(begin(op), transfer(t));
        edges_.emplace_back(transfer(t), end(op));
      }
    }
    relax();
  }

  Timeline times() const {
    Timeline times(w_);
    for (std::uint32_t op = 0; op < w_.op_count(); ++op) {
      times.ops[op].issue = SimTime(value_[issue(op)]);
      times.ops[op].begin = SimTime(value_[begin(op)]);
      times.ops[op].end = SimTime(value_[end(op)]);
    }
    for (std::uint32_t t = 0; t < w_.transfer_count(); ++t) {
      times.transfers[t].end = SimTime(value_[transfer(t)]);
      times.transfers[t].start = SimTime(value_[transfer(t)] - weight_[transfer(t)].ps);
    }
    return times;
  }

 private:
  static std::uint32_t issue(std::uint32_t op) { return 3 * op; }
  static std::uint32_t begin(std::uint32_t op) { return 3 * op + 1; }
  static std::uint32_t end(std::uint32_t op) { return 3 * op + 2; }
  std::uint32_t transfer(std::uint32_t t) const { return 3 * w_.op_count() + t; }

  void add_rank(const SimulatedRank& rank) {
    const RankShape& shape = w_.shape_of(rank);
    const std::uint32_t first = rank.first_op;
    for (std::uint32_t i = 0; i < shape.op_count(); ++i) {
      const std::uint32_t op = first + i;
      weight_[issue(op)] = alone_.launch(shape.ops[i]);
      if (shape.parts_of(i).empty()) weight_[end(op)] = alone_.local(shape, i, op);
      if (i > 0) {
        const bool blocks = shape.ops[i - 1].is_host_read;
        edges_.emplace_back(blocks ? end(op - 1) : issue(op - 1), issue(op));
      }
      edges_.emplace_back(issue(op), begin(op));
      edges_.emplace_back(begin(op), end(op));
      if (shape.ops[i].stream_previous != kNoOp)
        edges_.emplace_back(end(first + shape.ops[i].stream_previous), begin(op));
      for (const std::uint32_t before : shape.resolution->predecessors(i)) {
        edges_.emplace_back(end(first + before), begin(op));
      }
    }
  }

  void relax() {
    std::vector<std::size_t> out(value_.size() + 1, 0);
    std::vector<std::uint32_t> waits(value_.size(), 0);
    for (const auto& [from, to] : edges_) {
      ++out[from + 1];
      ++waits[to];
    }
    for (std::size_t v = 0; v < value_.size(); ++v) out[v + 1] += out[v];
    std::vector<std::uint32_t> target(edges_.size());
    std::vector<std::size_t> fill(out.begin(), out.end() - 1);
    for (const auto& [from, to] : edges_) target[fill[from]++] = to;
    std::vector<std::uint32_t> ready;
    for (std::uint32_t v = 0; v < value_.size(); ++v) {
      if (waits[v] == 0) ready.push_back(v);
    }
    std::size_t done = 0;
    for (; !ready.empty(); ++done) {
      const std::uint32_t v = ready.back();
      ready.pop_back();
      value_[v] = (SimTime(value_[v]) + weight_[v]).ps;
      for (std::size_t e = out[v]; e < out[v + 1]; ++e) {
        value_[target[e]] = std::max(value_[target[e]], value_[v]);
        if (--waits[target[e]] == 0) ready.push_back(target[e]);
      }
    }
    CHECK(done == value_.size(), done, value_.size());
  }

  const Workload& w_;
  const AloneTimes& alone_;
  std::vector<Duration> weight_;
  std::vector<std::int64_t> value_;  // ps
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
};

}  // namespace

Timeline relax_times(const Workload& w, const EngineOptions& options) {
  CHECK(!options.contention, "relaxation knows no contention");
  return LongestPaths(w, AloneTimes(w, options)).times();
}

}  // namespace stepcast::sim
