// The matched graph: what must be over before what may start, across ranks.
//
// Every op is a start event and an end event. They are one node for most ops. Matched collectives, and a send with its
// receive, are contracted into one node, since each waits for all. An exchange of several parts has two nodes: each of
// its parts is matched on its own, so its end waits for the starts of all its partners, and its own start for none.
#pragma once

#include <cstdint>
#include <vector>

#include "program/check_match.h"

namespace stepcast::program {

// Why one op waits for another.
enum class WaitReason : std::uint8_t { kStream, kData, kHost, kIssueOrder, kPartner };

// One copy of a rank program in the graph.
struct Instance {
  RankProgramId program;
  std::uint32_t name = 0;         // rank number, where the instance is one rank
  std::uint32_t first_event = 0;  // start events of its ops, in flat order, then ends of its exchanges
};

struct EventEdge {
  std::uint32_t from = 0;  // an end event
  std::uint32_t to = 0;    // a start event (kPartner: an end event)
  WaitReason reason = WaitReason::kStream;
};

class MatchedGraph {
 public:
  // One instance per rank program: all its ranks at once. Where this graph has no cycle the graph of ranks has none,
  // for it maps onto this one edge by edge.
  static MatchedGraph of_programs(const Program& p, const std::vector<Resolution>& resolutions, const Matching& m);
  // One instance per rank.
  static MatchedGraph of_ranks(const Program& p, const std::vector<Resolution>& resolutions, const Matching& m);

  std::uint32_t event_count() const { return static_cast<std::uint32_t>(parent_.size()); }
  // The node an event is contracted into: the number of one of its events.
  std::uint32_t node_of(std::uint32_t event) const { return parent_[event]; }
  // Calls `visit` for every edge, instance by instance in issue order, then the partners of exchanges.
  template <class Visit>
  void for_each_edge(const Visit& visit) const;

  const Instance& instance_of(std::uint32_t event) const;
  // Flat op an event belongs to.
  std::uint32_t op_of(std::uint32_t event) const;
  const std::vector<Resolution>& resolutions() const { return resolutions_; }
  const Program& program() const { return program_; }

 private:
  MatchedGraph(const Program& p, const std::vector<Resolution>& resolutions);
  void add_instance(RankProgramId program, std::uint32_t name);
  void contract(const Matching& m, bool ranks);
  void contract_collectives(const Matching& m, const GroupClass& c, const std::vector<std::uint32_t>& members,
                            bool ranks);
  void contract_messages(const std::vector<MessageMatch>& messages, const std::vector<std::uint32_t>& members,
                         bool ranks);
  void contract_pair(const std::vector<MessageOps>& messages, const Instance& sender, const Instance& receiver);
  std::uint32_t find(std::uint32_t event);
  void unite(std::uint32_t a, std::uint32_t b);
  std::uint32_t start_of(const Instance& i, std::uint32_t op) const { return i.first_event + op; }
  std::uint32_t end_of(const Instance& i, std::uint32_t op) const {
    const std::vector<std::uint32_t>& ends = ends_[i.program.value];
    return i.first_event + (ends.empty() ? op : ends[op]);
  }
  template <class Visit>
  void visit_instance(const Instance& instance, const Visit& visit) const;

  const Program& program_;
  const std::vector<Resolution>& resolutions_;
  // By rank program: its ops that have an end event of their own, ascending.
  std::vector<std::vector<std::uint32_t>> exchanges_;
  std::vector<std::vector<std::uint32_t>> ends_;  // as `ends_of` gives them
  std::vector<Instance> instances_;
  std::vector<std::uint32_t> parent_;  // union-find; flattened once built
  std::vector<EventEdge> partners_;
};

// Empty, or the message and help of a cycle: the ops that wait for each other, in order.
std::vector<Problem> find_deadlock(const MatchedGraph& graph);
// Whether the graph has a cycle.
bool has_cycle(const MatchedGraph& graph);

}  // namespace stepcast::program

#include "program/check_graph_edges.h"
