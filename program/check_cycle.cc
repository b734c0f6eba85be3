// Cycles of the matched graph: a topological sort (Kahn, 1962) says whether there is one; a depth-first search finds
// one and a breadth-first search from its nodes shortens it, so that what is printed can be read.
#include <algorithm>
#include <optional>

#include "base/check.h"
#include "program/check_graph.h"
#include "program/check_parts.h"

namespace stepcast::program {
namespace {

// Successor lists by node.
struct Successors {
  std::vector<std::size_t> begin;  // per event, plus one past the end
  std::vector<std::uint32_t> nodes;

  std::span<const std::uint32_t> of(std::uint32_t node) const {
    return std::span(nodes).subspan(begin[node], begin[node + 1] - begin[node]);
  }
};

// Counts the edges of each node, then places them. Edges within one node are kept: matched ops that wait for each other
// are a cycle of one.
Successors successors_of(const MatchedGraph& g) {
  Successors s;
  s.begin.assign(std::size_t{g.event_count()} + 1, 0);
  g.for_each_edge([&](const EventEdge& e) { ++s.begin[g.node_of(e.from) + 1]; });
  for (std::size_t i = 1; i < s.begin.size(); ++i) s.begin[i] += s.begin[i - 1];
  s.nodes.resize(s.begin.back());
  std::vector<std::size_t> next(s.begin.begin(), s.begin.end() - 1);
  g.for_each_edge([&](const EventEdge& e) { s.nodes[next[g.node_of(e.from)]++] = g.node_of(e.to); });
  return s;
}

// Nodes that no topological order reaches: those on cycles and after them.
std::vector<bool> unsorted_nodes(const MatchedGraph& g, const Successors& s) {
  std::vector<std::uint32_t> waits(g.event_count(), 0);
  for (const std::uint32_t node : s.nodes) ++waits[node];
  std::vector<std::uint32_t> ready;
  for (std::uint32_t event = 0; event < g.event_count(); ++event) {
    if (g.node_of(event) == event && waits[event] == 0) ready.push_back(event);
  }
  std::vector<bool> unsorted(g.event_count(), true);
  while (!ready.empty()) {
    const std::uint32_t node = ready.back();
    ready.pop_back();
    unsorted[node] = false;
    for (const std::uint32_t next : s.of(node)) {
      if (--waits[next] == 0) ready.push_back(next);
    }
  }
  for (std::uint32_t event = 0; event < g.event_count(); ++event) {
    if (g.node_of(event) != event) unsorted[event] = false;
  }
  return unsorted;
}

// Nodes of some cycle, in order; `inside` marks the nodes to search.
std::vector<std::uint32_t> any_cycle(const Successors& s, const std::vector<bool>& inside) {
  enum class Mark : std::uint8_t { kNew, kOpen, kDone };
  std::vector<Mark> marks(inside.size(), Mark::kNew);
  std::vector<std::pair<std::uint32_t, std::size_t>> path;  // node, next successor to look at
  for (std::uint32_t root = 0; root < inside.size(); ++root) {
    if (!inside[root] || marks[root] != Mark::kNew) continue;
    path.assign(1, {root, 0});
    marks[root] = Mark::kOpen;
    while (!path.empty()) {
      auto& [node, position] = path.back();
      const auto successors = s.of(node);
      if (position == successors.size()) {
        marks[node] = Mark::kDone;
        path.pop_back();
        continue;
      }
      const std::uint32_t next = successors[position++];
      if (!inside[next] || marks[next] == Mark::kDone) continue;
      if (marks[next] == Mark::kOpen) {
        std::vector<std::uint32_t> cycle;
        auto it = std::find_if(path.begin(), path.end(), [&](const auto& step) { return step.first == next; });
        for (; it != path.end(); ++it) cycle.push_back(it->first);
        return cycle;
      }
      marks[next] = Mark::kOpen;
      path.emplace_back(next, 0);
    }
  }
  return {};
}

// The shortest cycle through `start` that is shorter than `limit`, else empty.
std::vector<std::uint32_t> shortest_through(const Successors& s, const std::vector<bool>& inside, std::uint32_t start,
                                            std::size_t limit) {
  std::vector<std::optional<std::uint32_t>> from(inside.size());
  std::vector<std::uint32_t> frontier{start};
  for (std::size_t length = 1; length < limit && !frontier.empty(); ++length) {
    std::vector<std::uint32_t> next_frontier;
    for (const std::uint32_t node : frontier) {
      for (const std::uint32_t next : s.of(node)) {
        if (next == start) {
          std::vector<std::uint32_t> cycle;
          for (std::uint32_t at = node; at != start; at = *from[at]) cycle.push_back(at);
          cycle.push_back(start);
          std::reverse(cycle.begin(), cycle.end());
          return cycle;
        }
        if (!inside[next] || from[next]) continue;
        from[next] = node;
        next_frontier.push_back(next);
      }
    }
    frontier = std::move(next_frontier);
  }
  return {};
}

std::vector<std::uint32_t> readable_cycle(const Successors& s, const std::vector<bool>& inside) {
  constexpr std::size_t kTries = 32;  // bounds the time on graphs with long cycles
  std::vector<std::uint32_t> best = any_cycle(s, inside);
  const std::vector<std::uint32_t> first = best;
  const std::size_t stride = std::max<std::size_t>(1, first.size() / kTries);
  for (std::size_t i = 0; i < first.size(); i += stride) {
    std::vector<std::uint32_t> cycle = shortest_through(s, inside, first[i], best.size());
    if (!cycle.empty()) best = std::move(cycle);
  }
  return best;
}

// The edge behind each step of the cycle, the last leading back to its first node.
std::vector<EventEdge> edges_of(const MatchedGraph& g, const std::vector<std::uint32_t>& cycle) {
  std::vector<std::optional<std::size_t>> position(g.event_count());
  for (std::size_t i = 0; i < cycle.size(); ++i) position[cycle[i]] = i;
  std::vector<std::optional<EventEdge>> found(cycle.size());
  g.for_each_edge([&](const EventEdge& e) {
    const auto& i = position[g.node_of(e.from)];
    if (i && !found[*i] && g.node_of(e.to) == cycle[(*i + 1) % cycle.size()]) found[*i] = e;
  });
  std::vector<EventEdge> edges;
  for (const auto& edge : found) {
    CHECK(edge.has_value());
    edges.push_back(*edge);
  }
  return edges;
}

std::string event_name(const MatchedGraph& g, std::uint32_t event) {
  const Instance& i = g.instance_of(event);
  return "rank " + std::to_string(i.name) + " " +
         path_of(g.program(), i.program, g.resolutions()[i.program.value], g.op_of(event));
}

std::string reason_text(const MatchedGraph& g, const EventEdge& e) {
  const Instance& i = g.instance_of(e.to);
  const Op& op =
      op_at(g.program(), g.program().rank_programs[i.program], g.resolutions()[i.program.value], g.op_of(e.to));
  switch (e.reason) {
    case WaitReason::kStream:
      return "the one before it on stream " + std::string(to_string(op.stream));
    case WaitReason::kData:
      return op.kind == OpKind::kJoin ? "which its join names" : "whose data it reads or overwrites";
    case WaitReason::kHost:
      return "which the host waits for before it issues more";
    case WaitReason::kIssueOrder:
      return "the collective issued before it";
    case WaitReason::kPartner:
      return "a part of the same exchange or its partner";
  }
  return {};
}

}  // namespace

bool has_cycle(const MatchedGraph& graph) {
  const std::vector<bool> unsorted = unsorted_nodes(graph, successors_of(graph));
  return std::find(unsorted.begin(), unsorted.end(), true) != unsorted.end();
}

namespace {

// The ops of the cycle in order, each once, from the lowest event on: entering one of a node's matched ops, leaving by
// another.
std::vector<std::uint32_t> listed_events(const MatchedGraph& graph, const std::vector<EventEdge>& edges) {
  std::vector<std::uint32_t> events;
  const auto add = [&](std::uint32_t event) {
    if (events.empty() || event_name(graph, events.back()) != event_name(graph, event)) events.push_back(event);
  };
  for (std::size_t i = 0; i < edges.size(); ++i) {
    add(edges[(i + edges.size() - 1) % edges.size()].to);
    add(edges[i].from);
  }
  std::rotate(events.begin(), std::min_element(events.begin(), events.end()), events.end());
  if (events.size() > 1 && event_name(graph, events.front()) == event_name(graph, events.back())) events.pop_back();
  return events;
}

}  // namespace

std::vector<Problem> find_deadlock(const MatchedGraph& graph) {
  const Successors successors = successors_of(graph);
  const std::vector<bool> unsorted = unsorted_nodes(graph, successors);
  if (std::find(unsorted.begin(), unsorted.end(), true) == unsorted.end()) return {};
  const std::vector<EventEdge> edges = edges_of(graph, readable_cycle(successors, unsorted));
  const std::vector<std::uint32_t> events = listed_events(graph, edges);
  Problem problem;
  problem.message = "deadlock: ";
  for (const std::uint32_t event : events) problem.message += event_name(graph, event) + " -> ";
  problem.message += event_name(graph, events.front());
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const std::string entry = event_name(graph, edges[(i + edges.size() - 1) % edges.size()].to);
    const std::string from = event_name(graph, edges[i].from);
    const std::string to = event_name(graph, edges[i].to);
    if (entry != from) problem.help.push_back(entry + " is matched with " + from);
    if (from != to) problem.help.push_back(to + " waits for " + from + ", " + reason_text(graph, edges[i]));
  }
  return {problem};
}

}  // namespace stepcast::program
