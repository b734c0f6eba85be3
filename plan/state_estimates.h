// Model states in closed form: what people compute by hand, and what DeepSpeed's estimators print. Neither counts
// activations, buckets or contexts; the memory of a plan is read off its Program.
#pragma once

#include <cstdint>

namespace stepcast::plan {

// Bytes of one parameter's weight, gradient and optimizer states.
struct StateBytes {
  double weight = 2;
  double gradient = 4;
  double optimizer = 12;  // fp32 master copy and two moments
};

inline constexpr StateBytes kMegatronBf16{2, 4, 12};    // bf16, gradients accumulated in fp32: 18 (Megatron-LM #654)
inline constexpr StateBytes kDeepSpeedMixed{2, 2, 12};  // 16-bit gradients: 16 (Rajbhandari et al., ZeRO, 2020)

// Bytes a device holds of one of its own parameters. `zero` 0 to 3 shards the optimizer's states, then gradients, then
// weights over `shards` data-parallel ranks: over those only, not over all devices.
double state_bytes_per_parameter(const StateBytes& bytes, int zero, std::int64_t shards);

// Bytes of one device and of one node's host memory.
struct StateEstimate {
  double device = 0;
  double host = 0;
};

// deepspeed/runtime/zero/stage_1_and_2.py, estimate_zero2_model_states_mem_needs, with its buffer factor of 1.5:
// offloaded optimizer 2N on each device and max(4 devices, 16) N on the host; else 4N + 16N / devices.
StateEstimate deepspeed_zero2_states(double parameters, std::int64_t devices_per_node, std::int64_t nodes,
                                     bool offload_optimizer);

enum class Zero3Offload : std::uint8_t { kNone, kOptimizer, kOptimizerAndParameters };

// deepspeed/runtime/zero/stage3.py, estimate_zero3_model_states_mem_needs, for a model that is sharded as it is made
// (zero.Init): a device holds one layer, `largest_layer` parameters of 4 bytes, and its part of what is not offloaded.
StateEstimate deepspeed_zero3_states(double parameters, double largest_layer, std::int64_t devices_per_node,
                                     std::int64_t nodes, Zero3Offload offload);

}  // namespace stepcast::plan
