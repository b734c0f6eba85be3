// The formulas as DeepSpeed has them.
#include "plan/state_estimates.h"

#include <algorithm>

#include "base/check.h"

namespace stepcast::plan {
namespace {

constexpr double kBufferFactor = 1.5;  // additional_buffer_factor

}  // namespace

double state_bytes_per_parameter(const StateBytes& bytes, int zero, std::int64_t shards) {
  CHECK(zero >= 0 && zero <= 3 && shards >= 1, zero, shards);
  const auto part = [&](double whole, int from) { return zero >= from ? whole / static_cast<double>(shards) : whole; };
  return part(bytes.weight, 3) + part(bytes.gradient, 2) + part(bytes.optimizer, 1);
}

StateEstimate deepspeed_zero2_states(double parameters, std::int64_t devices_per_node, std::int64_t nodes,
                                     bool offload_optimizer) {
  CHECK(devices_per_node >= 1 && nodes >= 1, devices_per_node, nodes);
  const auto devices = static_cast<double>(devices_per_node * nodes);
  if (offload_optimizer) return {2 * parameters, parameters * std::max(4 * devices, 16.0) * kBufferFactor};
  return {4 * parameters + 16 * parameters / devices,
          parameters * 4 * static_cast<double>(devices_per_node) * kBufferFactor};
}

StateEstimate deepspeed_zero3_states(double parameters, double largest_layer, std::int64_t devices_per_node,
                                     std::int64_t nodes, Zero3Offload offload) {
  CHECK(devices_per_node >= 1 && nodes >= 1, devices_per_node, nodes);
  const auto devices = static_cast<double>(devices_per_node * nodes);
  const double layer = 4 * largest_layer;
  const double node_parameters = parameters / static_cast<double>(nodes);
  switch (offload) {
    case Zero3Offload::kOptimizerAndParameters:
      return {layer, 18 * node_parameters * kBufferFactor};
    case Zero3Offload::kOptimizer:
      return {layer + 2 * parameters / devices, 16 * node_parameters * kBufferFactor};
    case Zero3Offload::kNone:
      break;
  }
  return {layer + 18 * parameters / devices, largest_layer * 4 * static_cast<double>(devices_per_node) * kBufferFactor};
}

}  // namespace stepcast::plan
