#include "topology/routing.h"

#include "base/check.h"

namespace stepcast::topology {
namespace {

// 1 - e^-q q^q / q!, as a product of factors q / (i e): no power overflows.
double share_filled(std::int32_t flows_per_link) {
  constexpr double kE = 2.718281828459045;
  double all_at_mean = 1;  // the probability that a link holds exactly its mean
  for (std::int32_t i = 1; i <= flows_per_link; ++i) all_at_mean *= flows_per_link / (i * kE);
  return 1 - all_at_mean;
}

}  // namespace

double routing_efficiency_of(Routing routing, std::int32_t queue_pairs) {
  CHECK(queue_pairs >= 1, queue_pairs);
  switch (routing) {
    case Routing::kAdaptive:
    case Routing::kStatic:
      return 1;
    case Routing::kEcmp:
      return share_filled(1);
    case Routing::kEnhancedEcmp:
      return share_filled(queue_pairs);
  }
  CHECK(false, static_cast<int>(routing));
  return 1;
}

}  // namespace stepcast::topology
