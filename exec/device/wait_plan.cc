// See wait_plan.h. One pass over the ops in issue order.
#include "exec/device/wait_plan.h"

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <utility>

namespace stepcast::exec {
namespace {

std::size_t index_of(program::Stream s) { return static_cast<std::size_t>(s); }

void take_over(StreamCounts& clock, const StreamCounts& other) {
  for (std::size_t s = 0; s < clock.size(); ++s) clock[s] = std::max(clock[s], other[s]);
}

class Planner {
 public:
  Planner(const program::Program& p, const program::RankProgram& r, const program::Resolution& res,
          const LoadedProgram& loaded)
      : program_(p), rank_program_(r), resolution_(res), loaded_(loaded) {}

  void add(std::uint32_t op) {
    const std::size_t own = index_of(stream_of(op));
    plan_.wait_begin.push_back(static_cast<std::uint32_t>(plan_.waits.size()));
    const auto predecessors = resolution_.predecessors(op);
    // The latest first: it is the one that may know of the others.
    for (auto before = predecessors.rbegin(); before != predecessors.rend(); ++before) {
      if (learn(clocks_[own], *before)) plan_.waits.push_back(*before);
    }
    plan_.covered.push_back(clocks_[own]);
    clocks_[own][own] = loaded_.position[op] + 1;
  }

  // Whether it is one.
  bool begin_graph(const GraphRange& range) {
    std::set<std::uint32_t, std::greater<>> outer;
    for (std::uint32_t op = range.begin; op < range.end; ++op) {
      for (const std::uint32_t before : resolution_.predecessors(op)) {
        if (before < range.begin) outer.insert(before);
      }
    }
    GraphRange graph = range;
    StreamCounts all{};
    for (const program::Stream s : range.streams) take_over(all, clocks_[index_of(s)]);
    for (const std::uint32_t before : outer) {
      if (learn(all, before)) graph.waits.push_back(before);
    }
    StreamCounts first = clocks_[index_of(stream_of(range.begin))];
    for (const std::uint32_t before : resolution_.predecessors(range.begin)) learn(first, before);
    for (std::size_t s = 0; s < all.size(); ++s) {
      if (all[s] > first[s]) return false;
    }
    for (const program::Stream s : range.streams) clocks_[index_of(s)] = all;
    plan_.graphs.push_back(std::move(graph));
    return true;
  }

  // What comes next on one of them follows what came before on all.
  void meet(const std::vector<program::Stream>& streams) {
    StreamCounts all{};
    for (const program::Stream s : streams) take_over(all, clocks_[index_of(s)]);
    for (const program::Stream s : streams) clocks_[index_of(s)] = all;
  }

  WaitPlan take() {
    plan_.wait_begin.push_back(static_cast<std::uint32_t>(plan_.waits.size()));
    return std::move(plan_);
  }

 private:
  program::Stream stream_of(std::uint32_t op) const {
    return program::op_at(program_, rank_program_, resolution_, op).stream;
  }

  // Whether `before` had to be waited for.
  bool learn(StreamCounts& clock, std::uint32_t before) const {
    const std::size_t other = index_of(stream_of(before));
    if (clock[other] > loaded_.position[before]) return false;
    take_over(clock, plan_.covered[before]);
    clock[other] = loaded_.position[before] + 1;
    return true;
  }

  const program::Program& program_;
  const program::RankProgram& rank_program_;
  const program::Resolution& resolution_;
  const LoadedProgram& loaded_;
  std::array<StreamCounts, program::kStreamCount> clocks_{};  // by stream
  WaitPlan plan_;
};

}  // namespace

WaitPlan plan_waits(const program::Program& p, const program::RankProgram& r, const program::Resolution& res,
                    const LoadedProgram& loaded, std::span<const GraphRange> possible_graphs) {
  Planner planner(p, r, res, loaded);
  auto next = possible_graphs.begin();
  const GraphRange* open = nullptr;
  for (std::uint32_t op = 0; op < res.op_count(); ++op) {
    if (next != possible_graphs.end() && next->begin == op) {
      if (planner.begin_graph(*next)) open = &*next;
      ++next;
    }
    planner.add(op);
    if (open == nullptr || open->end != op + 1) continue;
    planner.meet(open->streams);
    open = nullptr;
  }
  return planner.take();
}

}  // namespace stepcast::exec
