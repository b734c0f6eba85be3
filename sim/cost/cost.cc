// Shares of capacities, and names as reports print them.
#include "sim/cost/cost.h"

#include <cmath>

namespace stepcast::sim {

Share share_of(double part, double whole) {
  if (!(part > 0) || whole <= 0) return 0;
  return static_cast<Share>(std::ceil(part / whole * static_cast<double>(kWhole)));
}

std::string_view to_string(Algorithm algorithm) {
  constexpr std::string_view kNames[] = {"none",      "ring",           "tree",          "nvls",
                                         "nvls_tree", "collnet_direct", "collnet_chain", "pat",
                                         "p2p",       "user_buffers",   "copy_engines"};
  return kNames[static_cast<std::size_t>(algorithm)];
}

std::string_view to_string(Protocol protocol) {
  constexpr std::string_view kNames[] = {"none", "ll", "ll128", "simple"};
  return kNames[static_cast<std::size_t>(protocol)];
}

}  // namespace stepcast::sim
