// Exact folding: the coarsest equitable partition of ranks, so that one representative per class is simulated and every
// other rank of the class has the same times to the picosecond.
//
// Two ranks share a class when they have equal rank programs, device classes and timing indices, and when for every
// role their groups have equal path classes and equal multisets of member classes, and for every p2p (role, offset)
// their peers share a class over equal paths. Signatures are compared whole; a hash only sorts.
#pragma once

#include <cstdint>
#include <vector>

#include "program/check.h"
#include "sim/cost/cost.h"

namespace stepcast::sim {

struct Folding {
  std::vector<std::uint32_t> class_of_rank;     // by RankId; classes numbered by their first rank
  std::vector<program::RankId> representative;  // by class: its first rank
  std::vector<std::int64_t> ranks;              // by class
};

Folding fold(const program::CheckedProgram& p, const CostModel& costs);
Folding no_fold(const program::CheckedProgram& p);  // every rank its own class

}  // namespace stepcast::sim
