#include "topology/fabric_graph.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/connected_components.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "topology/fabric_ends.h"

namespace stepcast::topology {
namespace {

// The length of a path: cables first, then latency.
struct Length {
  std::int64_t cables = 0;
  std::int64_t latency_ps = 0;
  auto operator<=>(const Length&) const = default;
};
constexpr Length kUnreachable = {std::numeric_limits<std::int32_t>::max(), 0};
Length operator+(const Length& a, const Length& b) { return {a.cables + b.cables, a.latency_ps + b.latency_ps}; }

struct Link {
  Length length;
  std::int32_t direction = 0;  // 2 x cable, + 1 from b to a
};
using CableGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Link>;

// Keeps cables that lead to a switch: from the root of a search, then on between switches.
struct LeadsToSwitch {
  const CableGraph* graph = nullptr;
  std::size_t switches = 0;
  bool operator()(const CableGraph::edge_descriptor& edge) const { return boost::target(edge, *graph) < switches; }
};

// Towards one attachment point, by switch.
struct Tree {
  std::vector<Length> length;
  std::vector<std::int32_t> next;  // the direction of the next cable
  std::vector<double> rate;        // of the slowest cable
};

}  // namespace

struct FabricGraph::Graph {
  const FabricLayout& layout;
  FabricEnds ends;
  std::vector<double> rate;                 // by direction, efficiency included
  std::vector<std::int32_t> target;         // vertex, by direction
  std::vector<std::int32_t> link;           // position among the shared links, by direction; -1: none
  std::vector<double> link_capacity;        // by position
  std::vector<std::int32_t> vertex_of_nic;  // node x nics_per_node + nic; -1: no cable
  CableGraph cables;
  // Trees are made when they are first asked for.
  mutable std::vector<std::unique_ptr<const Tree>> trees;  // by attachment

  Graph(const Cluster& cluster, const FabricLayout& l)
      : layout(l), ends(ends_of(cluster, l)), cables(ends.switches.size() + ends.attachments.size()) {
    for (const FabricCable& cable : ends.cables) {
      const CableSpec& spec = cluster.fabric.cables[static_cast<std::size_t>(cable.spec)];
      for (const std::int32_t end : {cable.b, cable.a}) {
        rate.push_back(spec.rate.value * cluster.node.nic.efficiency);
        target.push_back(end);
      }
    }
    for (std::size_t direction = 0; direction < target.size(); ++direction) {
      const CableSpec& spec = cluster.fabric.cables[direction / 2];
      boost::add_edge(vertex(target[direction ^ 1]), vertex(target[direction]),
                      Link{{1, spec.latency.ps}, static_cast<std::int32_t>(direction)}, cables);
    }
    trees.resize(ends.attachments.size());
    attach_nics();
  }

  static std::size_t vertex(std::int32_t v) { return static_cast<std::size_t>(v); }
  std::int32_t origin(std::int32_t direction) const { return target[vertex(direction ^ 1)]; }

  // A NIC's own cables come before those of its node.
  void attach_nics() {
    const std::size_t per_node = vertex(layout.nics_per_node);
    vertex_of_nic.assign(vertex(layout.devices / layout.per_node.size) * per_node, -1);
    for (std::size_t i = 0; i < ends.attachments.size(); ++i) {
      const Attachment& at = ends.attachments[i];  // by node; the node itself (-1) before its NICs
      const auto v = ends.switch_count() + static_cast<std::int32_t>(i);
      const std::size_t first = vertex(at.node) * per_node;
      if (at.nic >= 0) {
        vertex_of_nic[first + vertex(at.nic)] = v;
      } else {
        std::fill_n(vertex_of_nic.begin() + static_cast<std::ptrdiff_t>(first), per_node, v);
      }
    }
  }

  std::int32_t attachment_of(std::int32_t device) const {
    const std::int32_t node = layout.node_of(device);
    return vertex_of_nic[vertex(node) * vertex(layout.nics_per_node) + vertex(layout.nic_of(device).nic)];
  }

  // First device and end of those that hand traffic over to one another within the node.
  std::pair<std::int32_t, std::int32_t> peers_of(std::int32_t device) const {
    const std::int32_t size = std::min(layout.per_domain.size, layout.per_node.size);
    const std::int32_t first = device / size * size;
    return {first, first + size};
  }

  bool used_by_several(std::int32_t v) const {
    if (ends.is_switch(v)) return false;
    const Attachment& at = ends.attachment(v);
    if (at.nic < 0) return layout.per_node.size > 1;
    std::uint32_t unused = 0;
    return layout.nic_link(at.node * layout.per_node.size + at.nic * layout.devices_per_nic, unused);
  }

  void add_links(const Cluster& cluster, std::vector<SharedLink>& links) {
    link.assign(target.size(), -1);
    for (std::size_t direction = 0; direction < target.size(); ++direction) {
      const std::int32_t from = target[direction ^ 1];
      const std::int32_t to = target[direction];
      const bool between_switches = ends.is_switch(from) && ends.is_switch(to);
      if (!between_switches && !used_by_several(from) && !used_by_several(to)) continue;
      const CableSpec& spec = cluster.fabric.cables[direction / 2];
      link[direction] = static_cast<std::int32_t>(links.size());
      const bool back = (direction & 1) != 0;
      links.push_back(
          {Tier::kLeaf, (back ? spec.b : spec.a) + " to " + (back ? spec.a : spec.b), BytesPerSecond(rate[direction])});
    }
    for (const SharedLink& shared : links) link_capacity.push_back(shared.capacity.value);
  }

  // The shortest way on from `v` to the root of the tree, and the cable to take.
  std::pair<Length, std::int32_t> step(std::int32_t v, std::int32_t root, const std::vector<Length>& lengths) const {
    Length best = kUnreachable;
    std::vector<std::pair<std::int32_t, std::int32_t>> equal;  // (vertex, direction)
    for (const auto& edge : boost::make_iterator_range(boost::out_edges(vertex(v), cables))) {
      const Link& cable = cables[edge];
      const std::int32_t to = target[vertex(cable.direction)];
      if (to != root && !ends.is_switch(to)) continue;
      const Length rest = to == root ? Length{} : lengths[vertex(to)];
      if (rest.cables >= kUnreachable.cables) continue;
      const Length length = cable.length + rest;
      if (length > best) continue;
      if (length < best) equal.clear();
      best = length;
      equal.emplace_back(to, cable.direction);
    }
    if (equal.empty()) return {best, -1};
    std::sort(equal.begin(), equal.end());
    const Attachment& at = ends.attachment(root);
    return {best, equal[vertex(at.node + std::max(0, at.nic)) % equal.size()].second};
  }

  double rate_from(std::int32_t direction, std::int32_t root, const Tree& tree) const {
    const std::int32_t to = target[vertex(direction)];
    return to == root ? rate[vertex(direction)] : std::min(rate[vertex(direction)], tree.rate[vertex(to)]);
  }

  const Tree& tree_to(std::int32_t root) const {
    std::unique_ptr<const Tree>& slot = trees[vertex(root - ends.switch_count())];
    if (!slot) slot = make_tree(root);
    return *slot;
  }

  std::unique_ptr<const Tree> make_tree(std::int32_t root) const {
    const std::size_t switches = ends.switches.size();
    const boost::filtered_graph<CableGraph, LeadsToSwitch> reachable(cables, LeadsToSwitch{&cables, switches});
    std::vector<Length> lengths(boost::num_vertices(cables), kUnreachable);
    boost::dijkstra_shortest_paths(reachable, vertex(root),
                                   boost::weight_map(boost::get(&Link::length, reachable))
                                       .distance_map(lengths.data())
                                       .distance_compare(std::less<Length>())
                                       .distance_combine(std::plus<Length>())
                                       .distance_inf(kUnreachable)
                                       .distance_zero(Length{}));
    auto tree = std::make_unique<Tree>();
    tree->length.assign(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(switches));
    tree->next.assign(switches, -1);
    tree->rate.assign(switches, 0);
    std::vector<std::int32_t> order(switches);
    for (std::size_t i = 0; i < switches; ++i) order[i] = static_cast<std::int32_t>(i);
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return std::pair(tree->length[vertex(a)], a) < std::pair(tree->length[vertex(b)], b);
    });
    // Nearest first, so that the rate from the next switch on is known.
    for (const std::int32_t v : order) {
      const std::int32_t direction = step(v, root, tree->length).second;
      if (direction < 0) continue;
      tree->next[vertex(v)] = direction;
      tree->rate[vertex(v)] = rate_from(direction, root, *tree);
    }
    return tree;
  }

  // The best way from any NIC of the sender's peers to one attachment point; the sender's own where equal.
  bool nearest_source(std::int32_t sender, std::int32_t root, Route& route) const {
    const auto [first, end] = peers_of(sender);
    Length best = kUnreachable;
    const Tree& tree = tree_to(root);
    const auto consider = [&](std::int32_t device) {
      const std::int32_t source = attachment_of(device);
      if (source < 0 || source == root) return;
      const auto [length, direction] = step(source, root, tree.length);
      if (direction < 0 || length >= best) return;
      best = length;
      const auto hops = static_cast<std::int32_t>(length.cables - 1);
      route = {source, root, hops, Duration(length.latency_ps) + layout.hop_latency * hops,
               rate_from(direction, root, tree)};
    };
    consider(sender);
    for (std::int32_t device = first; device < end; ++device) consider(device);
    return best.cables < kUnreachable.cables;
  }

  // Nodes without cables, and pairs of nodes that no path joins. Every connected part of the switches is one meeting
  // place, and so is every cable between two nodes: two nodes reach each other when they share one.
  void check_joined() const {
    ProblemList problems;
    const auto wrong = [&](const std::string& message, const std::string& help) {
      problems.add(ErrorKind::kInput, message, {"", 0, "fabric.cables"}, {help});
    };
    const auto places = meeting_places();
    std::map<std::vector<std::int32_t>, std::int32_t> first_with;
    const std::int32_t size = std::min(layout.per_domain.size, layout.per_node.size);
    for (std::int32_t first = 0; first < layout.devices; first += size) {
      std::set<std::int32_t> met;
      for (std::int32_t device = first; device < first + size; ++device) {
        const std::int32_t at = attachment_of(device);
        if (at >= 0)
          met.insert(places[vertex(at - ends.switch_count())].begin(), places[vertex(at - ends.switch_count())].end());
      }
      if (met.empty())
        wrong("no cable leads to node " + std::to_string(layout.node_of(first)), a_cable_of(layout.node_of(first)));
      first_with.try_emplace({met.begin(), met.end()}, layout.node_of(first));
    }
    for (auto a = first_with.begin(); a != first_with.end(); ++a) {
      for (auto b = std::next(a); b != first_with.end(); ++b) {
        std::vector<std::int32_t> common;
        std::set_intersection(a->first.begin(), a->first.end(), b->first.begin(), b->first.end(),
                              std::back_inserter(common));
        if (!common.empty() || a->first.empty() || b->first.empty() || a->second == b->second) continue;
        const auto [low, high] = std::minmax(a->second, b->second);
        wrong("no cables lead from node " + std::to_string(low) + " to node " + std::to_string(high),
              "join their switches, or both nodes to one switch; traffic does not pass other nodes");
      }
    }
    problems.throw_if_any();
  }

  // What would join a node to the others.
  std::string a_cable_of(std::int32_t node) const {
    const std::string end = ends.switches.empty() ? "a switch" : ends.switches.front();
    return "such as {a: node" + std::to_string(node) + ", b: " + end + ", rate: 400 Gb/s}";
  }

  std::vector<std::vector<std::int32_t>> meeting_places() const {
    boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS> switches(ends.switches.size());
    for (const FabricCable& cable : ends.cables) {
      if (ends.is_switch(cable.a) && ends.is_switch(cable.b))
        boost::add_edge(vertex(cable.a), vertex(cable.b), switches);
    }
    std::vector<std::int32_t> component(ends.switches.size());
    std::int32_t count = component.empty() ? 0 : boost::connected_components(switches, component.data());
    std::vector<std::vector<std::int32_t>> places(ends.attachments.size());
    const auto meet = [&](std::int32_t v, std::int32_t place) {
      if (!ends.is_switch(v)) places[vertex(v - ends.switch_count())].push_back(place);
    };
    for (const FabricCable& cable : ends.cables) {
      const std::int32_t at_switch = ends.is_switch(cable.a) ? cable.a : ends.is_switch(cable.b) ? cable.b : -1;
      const std::int32_t place = at_switch >= 0 ? component[vertex(at_switch)] : count++;
      meet(cable.a, place);
      meet(cable.b, place);
    }
    return places;
  }
};

FabricGraph::FabricGraph(const Cluster& cluster, const FabricLayout& layout, std::vector<SharedLink>& links)
    : graph_(std::make_unique<Graph>(cluster, layout)) {
  graph_->check_joined();
  graph_->add_links(cluster, links);
}
FabricGraph::~FabricGraph() = default;

FabricGraph::Route FabricGraph::route(std::int32_t sender, std::int32_t receiver) const {
  Route route;
  const std::int32_t own = graph_->attachment_of(receiver);
  if (own >= 0 && graph_->nearest_source(sender, own, route)) return route;
  bool found = false;
  const auto [first, end] = graph_->peers_of(receiver);
  for (std::int32_t device = first; device < end; ++device) {
    Route other;
    const std::int32_t at = graph_->attachment_of(device);
    if (at < 0 || at == own || !graph_->nearest_source(sender, at, other)) continue;
    const auto key = [](const Route& r) { return std::pair(r.hops, r.latency); };
    if (!found || key(other) < key(route)) route = other;
    found = true;
  }
  if (found) return route;
  throw Error(ErrorKind::kUnsupported,
              "no cables lead from device " + std::to_string(sender) + " to device " + std::to_string(receiver),
              {"", 0, "fabric.cables"});
}

void FabricGraph::append_links(const Route& route, std::vector<std::uint32_t>& links) const {
  const Tree& tree = graph_->tree_to(route.target);
  std::int32_t direction = graph_->step(route.source, route.target, tree.length).second;
  while (true) {
    CHECK(direction >= 0, route.source, route.target);
    const std::int32_t link = graph_->link[Graph::vertex(direction)];
    if (link >= 0) links.push_back(static_cast<std::uint32_t>(link));
    const std::int32_t at = graph_->target[Graph::vertex(direction)];
    if (at == route.target) return;
    direction = tree.next[Graph::vertex(at)];
  }
}

FabricGraph::Bound FabricGraph::bound_of(std::span<const std::int32_t> members) const {
  Bound bound{.rate = std::numeric_limits<double>::infinity(), .latency = {}, .spread = 0};
  std::vector<std::int64_t> pairs(graph_->link_capacity.size(), 0);  // by link
  std::vector<std::uint32_t> links;
  for (const std::int32_t a : members) {
    for (const std::int32_t b : members) {
      if (graph_->layout.tier_between(a, b) < Tier::kLeaf) continue;
      const Route pair = route(a, b);
      bound.rate = std::min(bound.rate, pair.rate);
      bound.latency = std::max(bound.latency, pair.latency);
      links.clear();
      append_links(pair, links);
      for (const std::uint32_t link : links) ++pairs[link];
    }
  }
  // A pair carries an n-th of what a member sends.
  for (std::size_t link = 0; link < pairs.size(); ++link) {
    if (pairs[link] == 0) continue;
    const double rate =
        graph_->link_capacity[link] * static_cast<double>(members.size()) / static_cast<double>(pairs[link]);
    bound.spread = bound.spread == 0 ? rate : std::min(bound.spread, rate);
  }
  return bound;
}

}  // namespace stepcast::topology
