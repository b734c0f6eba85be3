// Random spread of op times.
#pragma once

#include <cstdint>

namespace stepcast::sim {

// Every op's time alone is multiplied by exp(sigma z), z standard normal, drawn by (seed, sample, op).
struct JitterOptions {
  double compute_sigma = 0;
  double communication_sigma = 0;
  std::int32_t samples = 200;
  std::uint64_t seed = 0;
};

}  // namespace stepcast::sim
