// The plan that the speed of the project is judged by: Llama 3.1 405B on 16,384 GPUs, and the same model on more of
// them.
#pragma once

#include <cstdint>

#include "plan/scenario.h"

namespace stepcast::bench {

// scenarios/runs/llama-3.1-405b-h100x16384.yaml with that many GPUs: data parallelism and the global batch grow with
// them, so that every rank has the same ops. A multiple of 128, the ranks of one pipeline.
plan::Scenario large_scenario(std::int64_t gpus);

}  // namespace stepcast::bench
