// Breadth-first over overfull links from what was touched, then progressive filling of what was reached.
#include "sim/engine/link_flows.h"

#include <algorithm>

#include "base/check.h"

namespace stepcast::sim {

// The rate at which all flows of a link that are not fixed yet can go on together.
Share LinkFlows::share_of(const Link& link) {
  const __int128 share = link.residual / link.demand;
  return share > kWhole ? kWhole : static_cast<Share>(share);
}

LinkFlows::LinkFlows(std::vector<Share> capacities) : links_(capacities.size()) {
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    CHECK(capacities[i] > 0, i, capacities[i]);
    links_[i].capacity = capacities[i];
  }
}

void LinkFlows::touch(std::uint32_t link) {
  if (links_[link].touched) return;
  links_[link].touched = true;
  touched_.push_back(link);
}

std::uint32_t LinkFlows::add(std::span<const FlowUse> uses) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(flows_.size()));
    flows_.emplace_back();
  }
  const std::uint32_t id = free_.back();
  free_.pop_back();
  Flow& flow = flows_[id];
  flow.uses.assign(uses.begin(), uses.end());
  flow.rate = kWhole;
  flow.active = true;
  for (const FlowUse& use : uses) {
    CHECK(use.demand > 0 && use.link < links_.size(), use.demand, use.link);
    Link& link = links_[use.link];
    link.load += use.demand;
    link.flows.push_back(id);
    if (link.overfull()) touch(use.link);
  }
  return id;
}

void LinkFlows::remove(std::uint32_t id) {
  Flow& flow = flows_[id];
  CHECK(flow.active, id);
  for (const FlowUse& use : flow.uses) {
    Link& link = links_[use.link];
    if (link.overfull()) touch(use.link);
    link.load -= use.demand;
    const auto at = std::find(link.flows.begin(), link.flows.end(), id);
    CHECK(at != link.flows.end() && link.load >= 0, id, use.link);
    *at = link.flows.back();
    link.flows.pop_back();
  }
  flow.active = false;
  free_.push_back(id);
}

void LinkFlows::reach(std::uint32_t id) {
  if (flows_[id].reached) return;
  flows_[id].reached = true;
  flows_[id].next_rate = 0;
  component_flows_.push_back(id);
}

// Flows of touched links, and of every overfull link that a reached flow uses.
void LinkFlows::collect() {
  for (const std::uint32_t link : touched_) {
    links_[link].touched = false;
    for (const std::uint32_t flow : links_[link].flows) reach(flow);
  }
  touched_.clear();
  for (std::size_t next = 0; next < component_flows_.size(); ++next) {
    for (const FlowUse& use : flows_[component_flows_[next]].uses) {
      Link& link = links_[use.link];
      if (!link.overfull() || link.reached) continue;
      link.reached = true;
      link.demand = link.load;
      link.residual = static_cast<__int128>(link.capacity) * kWhole;
      component_links_.push_back(use.link);
      for (const std::uint32_t flow : link.flows) reach(flow);
    }
  }
}

void LinkFlows::fix(std::uint32_t id, Share rate) {
  Flow& flow = flows_[id];
  flow.next_rate = rate;
  for (const FlowUse& use : flow.uses) {
    Link& link = links_[use.link];
    if (!link.reached) continue;
    link.demand -= use.demand;
    link.residual -= static_cast<__int128>(use.demand) * rate;
  }
}

// Each round fills at least one link: at most as many rounds as links.
void LinkFlows::fill() {
  std::vector<std::uint32_t> open = component_links_;
  while (!open.empty()) {
    std::erase_if(open, [&](std::uint32_t link) { return links_[link].demand == 0; });
    Share least = kWhole;
    for (const std::uint32_t link : open) least = std::min(least, share_of(links_[link]));
    if (least >= kWhole) break;
    // Judged before any of them is fixed, so that links that fill together do not depend on their order.
    std::vector<std::uint32_t> full;
    for (const std::uint32_t link : open) {
      if (share_of(links_[link]) == least) full.push_back(link);
    }
    // A flow always moves: a link that rounding leaves nothing to is shared a little over its capacity.
    const Share rate = std::max<Share>(1, least);
    for (const std::uint32_t link : full) {
      for (const std::uint32_t flow : links_[link].flows) {
        if (flows_[flow].next_rate == 0) fix(flow, rate);
      }
    }
  }
}

void LinkFlows::solve(std::vector<std::uint32_t>& changed) {
  if (touched_.empty()) return;
  collect();
  fill();
  std::sort(component_flows_.begin(), component_flows_.end());
  for (const std::uint32_t id : component_flows_) {
    Flow& flow = flows_[id];
    const Share rate = flow.next_rate == 0 ? kWhole : flow.next_rate;
    if (rate != flow.rate) changed.push_back(id);
    flow.rate = rate;
    flow.reached = false;
  }
  for (const std::uint32_t link : component_links_) links_[link].reached = false;
  component_flows_.clear();
  component_links_.clear();
}

}  // namespace stepcast::sim
