// Building the matched graph: instances, contraction by union-find, partners of exchanges.
#include "program/check_graph.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "program/check_parts.h"

namespace stepcast::program {

namespace {

// By flat op, the number of its end among the events of an instance; empty where no op is an exchange.
std::vector<std::uint32_t> ends_of(const std::vector<std::uint32_t>& exchanges, std::uint32_t ops) {
  if (exchanges.empty()) return {};
  std::vector<std::uint32_t> ends(ops);
  std::iota(ends.begin(), ends.end(), 0U);
  for (std::uint32_t i = 0; i < exchanges.size(); ++i) ends[exchanges[i]] = ops + i;
  return ends;
}

}  // namespace

MatchedGraph::MatchedGraph(const Program& p, const std::vector<Resolution>& resolutions)
    : program_(p), resolutions_(resolutions) {
  for (std::size_t i = 0; i < p.rank_programs.size(); ++i) {
    const RankProgram& r = p.rank_programs[RankProgramId(i)];
    exchanges_.emplace_back();
    std::vector<bool> without(p.segments.size(), false);  // seen to have no exchange
    for (std::uint32_t call = 0; call < r.calls.size(); ++call) {
      const SegmentId id = r.calls[call].segment;
      if (without[id.value]) continue;
      const std::size_t before = exchanges_.back().size();
      std::uint32_t flat = resolutions[i].first_op[call];
      for (const Op& op : p.segments[id].ops) {
        if (op.parts.size() > 1) exchanges_.back().push_back(flat);
        ++flat;
      }
      without[id.value] = exchanges_.back().size() == before;
    }
    ends_.push_back(ends_of(exchanges_.back(), resolutions[i].op_count()));
  }
}

void MatchedGraph::add_instance(RankProgramId program, std::uint32_t name) {
  const std::size_t first = parent_.size();
  const std::size_t events = resolutions_[program.value].op_count() + exchanges_[program.value].size();
  CHECK(first + events < std::numeric_limits<std::uint32_t>::max(), first, events);
  instances_.push_back({program, name, static_cast<std::uint32_t>(first)});
  parent_.resize(first + events);
  std::iota(parent_.begin() + static_cast<std::ptrdiff_t>(first), parent_.end(), static_cast<std::uint32_t>(first));
}

MatchedGraph MatchedGraph::of_programs(const Program& p, const std::vector<Resolution>& resolutions,
                                       const Matching& m) {
  MatchedGraph graph(p, resolutions);
  for (std::uint32_t i = 0; i < p.rank_programs.size(); ++i) graph.add_instance(RankProgramId(i), i);
  graph.contract(m, false);
  return graph;
}

MatchedGraph MatchedGraph::of_ranks(const Program& p, const std::vector<Resolution>& resolutions, const Matching& m) {
  MatchedGraph graph(p, resolutions);
  for (std::uint32_t i = 0; i < p.ranks.size(); ++i) graph.add_instance(p.ranks[RankId(i)].program, i);
  graph.contract(m, true);
  return graph;
}

const Instance& MatchedGraph::instance_of(std::uint32_t event) const {
  const auto after = std::upper_bound(instances_.begin(), instances_.end(), event,
                                      [](std::uint32_t e, const Instance& i) { return e < i.first_event; });
  CHECK(after != instances_.begin() && event < parent_.size(), event);
  return *std::prev(after);
}

std::uint32_t MatchedGraph::op_of(std::uint32_t event) const {
  const Instance& i = instance_of(event);
  const std::uint32_t local = event - i.first_event;
  const std::uint32_t ops = resolutions_[i.program.value].op_count();
  return local < ops ? local : exchanges_[i.program.value][local - ops];
}

std::uint32_t MatchedGraph::find(std::uint32_t event) {
  while (parent_[event] != event) {
    parent_[event] = parent_[parent_[event]];
    event = parent_[event];
  }
  return event;
}

void MatchedGraph::unite(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t x = find(a);
  const std::uint32_t y = find(b);
  // The lower number stays, so that nodes do not depend on the order of unions.
  if (x != y) parent_[std::max(x, y)] = std::min(x, y);
}

// With `ranks`, every group; else one group of each class, its members being rank programs.
void MatchedGraph::contract(const Matching& m, bool ranks) {
  std::vector<std::uint32_t> members;  // instance by member
  for (std::size_t c = 0; c < m.classes.size(); ++c) {
    const GroupClass& group_class = m.classes[c];
    const std::size_t groups = ranks ? group_class.groups.size() : 1;
    for (std::size_t g = 0; g < groups; ++g) {
      members.clear();
      for (std::size_t i = 0; i < group_class.members.size(); ++i) {
        members.push_back(ranks ? program_.groups[group_class.groups[g]].members[i].value
                                : group_class.members[i].value);
      }
      contract_collectives(m, group_class, members, ranks);
      contract_messages(m.messages[c], members, ranks);
    }
  }
  // Parents have lower numbers, so that one pass in order flattens the trees.
  for (std::uint32_t event = 0; event < parent_.size(); ++event) parent_[event] = parent_[parent_[event]];
}

void MatchedGraph::contract_collectives(const Matching& m, const GroupClass& c,
                                        const std::vector<std::uint32_t>& members, bool ranks) {
  // Without ranks, members of one program are one instance.
  const std::size_t count = ranks ? members.size() : c.distinct.size();
  for (std::size_t key = static_cast<std::size_t>(c.role.value) * kChannelCount, end = key + kChannelCount; key < end;
       ++key) {
    const std::vector<std::uint32_t>& first = m.lists[c.members[0].value].collectives[key];
    for (std::size_t n = 1; n < count; ++n) {
      const std::size_t i = ranks ? n : c.distinct[n];
      const std::vector<std::uint32_t>& own = m.lists[c.members[i].value].collectives[key];
      CHECK(own.size() == first.size(), own.size(), first.size());
      for (std::size_t k = 0; k < own.size(); ++k) {
        unite(start_of(instances_[members[0]], first[k]), start_of(instances_[members[i]], own[k]));
      }
    }
  }
}

void MatchedGraph::contract_messages(const std::vector<MessageMatch>& messages,
                                     const std::vector<std::uint32_t>& members, bool ranks) {
  for (const MessageMatch& match : messages) {
    // Without ranks, pairs of the same two programs are one pair of instances.
    const std::size_t count = ranks ? match.pairs.size() : 1;
    for (std::size_t i = 0; i < count; ++i) {
      const auto [sender, receiver] = match.pairs[i];
      contract_pair(match.ops, instances_[members[sender]], instances_[members[receiver]]);
    }
  }
}

void MatchedGraph::contract_pair(const std::vector<MessageOps>& messages, const Instance& sender,
                                 const Instance& receiver) {
  for (const MessageOps& message : messages) {
    const std::uint32_t send_start = start_of(sender, message.send);
    const std::uint32_t send_end = end_of(sender, message.send);
    const std::uint32_t receive_start = start_of(receiver, message.receive);
    const std::uint32_t receive_end = end_of(receiver, message.receive);
    if (send_start == send_end && receive_start == receive_end) {
      unite(send_start, receive_start);
    } else {
      // Each end waits for the partner's start; where the partner is a single message its start is its end.
      partners_.push_back({send_start, receive_end, WaitReason::kPartner});
      partners_.push_back({receive_start, send_end, WaitReason::kPartner});
    }
  }
}

}  // namespace stepcast::program
