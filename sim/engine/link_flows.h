// Flows on links: max-min fair rates in whole numbers.
//
// A flow needs a share of each link it uses to run at full speed, and runs at one speed on all of them. Speeds rise
// together until a link is full; the flows on it keep what they have, the others rise on, at most to full speed
// (progressive filling; Bertsekas and Gallager, Data Networks, 1992, section 6.5.2). A link whose flows fit at full
// speed never limits any, so that only overfull links tie flows together and are looked at.
//
// Rates are floors of quotients of sums over a link. They come out equal for a link and for the class of links it
// stands for, as long as a flow of a folded run counts as often as its class passes the link.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/cost/cost.h"

namespace stepcast::sim {

struct FlowUse {
  std::uint32_t link = 0;
  Share demand = 0;  // at full speed; above zero
};

class LinkFlows {
 public:
  explicit LinkFlows(std::vector<Share> capacities);

  // Numbers are reused after remove().
  std::uint32_t add(std::span<const FlowUse> uses);
  void remove(std::uint32_t flow);
  Share rate(std::uint32_t flow) const { return flows_[flow].rate; }

  // Solves for everything that add() and remove() touched since the last call. Appends the flows, among those that
  // remain, whose rate is another than before (new ones: than full speed), in ascending order.
  void solve(std::vector<std::uint32_t>& changed);

 private:
  struct Flow {
    std::vector<FlowUse> uses;
    Share rate = kWhole;
    Share next_rate = 0;  // of the present solve; 0: not fixed yet
    bool active = false;
    bool reached = false;
  };
  struct Link {
    Share capacity = 0;
    Share load = 0;  // sum of demands
    std::vector<std::uint32_t> flows;
    Share demand = 0;       // of the present solve: of flows not fixed yet
    __int128 residual = 0;  // of the present solve: capacity x kWhole less what fixed flows take
    bool reached = false;
    bool touched = false;

    bool overfull() const { return load > capacity; }
  };

  static Share share_of(const Link& link);
  void touch(std::uint32_t link);
  void reach(std::uint32_t flow);
  void collect();
  void fill();
  void fix(std::uint32_t flow, Share rate);

  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_;
  std::vector<Link> links_;
  std::vector<std::uint32_t> touched_;
  std::vector<std::uint32_t> component_flows_;
  std::vector<std::uint32_t> component_links_;
};

}  // namespace stepcast::sim
