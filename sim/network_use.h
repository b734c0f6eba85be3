// What communication moved in a step: by kind and size, and by tier of links.
#pragma once

#include <vector>

#include "sim/accounting.h"
#include "sim/engine/workload.h"
#include "sim/prediction.h"

namespace stepcast::sim {

// Exposed time comes from the accounting, by class of ranks.
std::vector<CommunicationUse> communication_use(const Workload& w, const Timeline& times, const Folding& folding,
                                                const std::vector<ExposedByLane>& exposed);

// With contention no link carries more than it can: a transfer's speed changes, and its mean over the whole of it may
// add up to more with those of others.
std::vector<TierUse> tier_use(const Workload& w, const Timeline& times, const Folding& folding,
                              const VendorRates& rates, Duration step, bool contention);

}  // namespace stepcast::sim
