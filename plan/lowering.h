// Lowering: a resolved scenario becomes a Program, one rank program per pipeline rank, shared by all its tp and dp
// ranks.
#pragma once

#include <cstdint>

#include "plan/scenario.h"
#include "program/program.h"
#include "topology/mesh.h"

namespace stepcast::plan {

// The scenario must have passed plan/rules. Throws Error (kUnsupported) for what is known but not lowered yet.
program::Program lower(const Scenario& s);

// The ranks of the scenario on its parallel axes tp, cp, dp and pp, in its rank order.
topology::DeviceMesh mesh_of(const Scenario& s);

// The same with dp split in two axes for HSDP: dp_shard, the faster one, and dp_replicate.
topology::DeviceMesh hybrid_mesh_of(const Scenario& s);

// Ops a step would have, about: 40 per layer and microbatch, whatever the shape. lower() refuses more than kMostOps
// (kUnsupported): the step would take minutes and more memory than a laptop has.
inline constexpr double kMostOps = 2e7;
double estimated_ops(const models::Architecture& model, std::int64_t microbatches);

// The same training on one rank: degrees 1, no sharding, no recompute, every microbatch of the global batch in order.
// Its loss and gradients are what every parallel plan of `s` must reproduce.
Scenario single_rank_reference(const Scenario& s);

}  // namespace stepcast::plan
