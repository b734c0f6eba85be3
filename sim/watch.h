// How a caller looks in on a long simulation.
#pragma once

#include <cstdint>
#include <functional>

namespace stepcast::sim {

// Called with the ops that ended since the last call, every kOpsBetweenLooks or so, and once before the first op. What
// it throws ends the simulation and reaches the caller. It changes no result. Several simulations that run at once call
// it at once.
using Watch = std::function<void(std::int64_t ops)>;

// Some 20 ms.
inline constexpr std::int64_t kOpsBetweenLooks = 1 << 16;

}  // namespace stepcast::sim
